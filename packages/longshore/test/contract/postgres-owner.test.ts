// Which server may write to a PostgreSQL schema, and the outcome of commits whose connection breaks. On a real PostgreSQL.

import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type RowStore, Unavailable } from "../../src/engine/rows.ts";
import { type Property, propertyTable } from "../../src/engine/tables/endings.ts";
import type { ReadTx } from "../../src/engine/tx.ts";
import { openDatabase, type PostgresDatabase } from "../../src/store/postgres/database.ts";
import { openMembers } from "../../src/store/postgres/members.ts";
import { holding, lockOf } from "../../src/store/postgres/owner.ts";
import { postgresMissing, startMsMax, TestPostgres } from "../support/postgres.ts";
import { type Loss, openProxy } from "../support/postgres-proxy.ts";
import { untilElsewhere } from "../support/until.ts";

/** Longer than any test: the tests themselves end leases. */
const leaseMs = 600_000;

if (postgresMissing !== undefined) it("one server at a time writes to PostgreSQL", (context) => context.skip(`needs ${postgresMissing}`));
else
  describe("the owner of a PostgreSQL schema", () => {
    let server: TestPostgres;
    beforeAll(async () => {
      server = await TestPostgres.start();
    }, startMsMax);
    afterAll(() => server.remove(), startMsMax);

    async function open(url: string, node = "first", forMs = leaseMs): Promise<PostgresDatabase> {
      const database = await openDatabase({ url, node, leaseMs: forMs });
      onTestFinished(() => database.close());
      return database;
    }

    async function setup(forMs = leaseMs) {
      const proxy = await openProxy(server.port);
      onTestFinished(() => proxy.close());
      const url = server.newUrl();
      const database = await open(url.replace(`:${server.port}/`, `:${proxy.port}/`), "first", forMs);
      const { rows } = database;
      return { proxy, url, database, rows, put: (name: string) => put(rows, name), names: () => names(server, url) };
    }

    it.each<[Loss, boolean]>([
      ["request", false],
      ["response", true],
      ["late request", false],
    ])("knows after a lost %s whether it was committed, and continues", async (loss, isCommitted) => {
      const { proxy, put: write, names: found } = await setup();
      await write("before");
      proxy.lose(loss);
      const outcome = await write("lost").catch((error: unknown) => error);
      expect(outcome instanceof Unavailable).toBe(!isCommitted);
      await proxy.deliver();
      await write("after");
      expect(await found()).toEqual(isCommitted ? ["after", "before", "lost"] : ["after", "before"]);
    });

    it("can repeat a commit that was lost", async () => {
      const { proxy, put: write, names: found } = await setup();
      for (const loss of ["request", "late request", "request"] as const) {
        proxy.lose(loss);
        await expect(write("again")).rejects.toBeInstanceOf(Unavailable);
      }
      await write("again");
      await proxy.deliver();
      expect(await found()).toEqual(["again"]);
    });

    it("prevents the start of a second server, with its own name in the error", async () => {
      const { url } = await setup();
      await expect(open(url, "second")).rejects.toMatchObject({ code: "LONGSHORE_CONFLICT", message: expect.stringContaining("(first)") });
    });

    it("allows another server to start when it has closed", async () => {
      const { url, database, put: write, names: found } = await setup();
      expect(database.wasServed).toBe(false);
      await write("one");
      await database.close();
      const second = await open(url, "second");
      expect(second.wasServed).toBe(true);
      await put(second.rows, "two");
      expect(await found()).toEqual(["one", "two"]);
    });

    it.each([
      [
        "whose lock is gone with its connection",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'longshore lease' AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid::bigint = hashtext('SCHEMA/0') & 4294967295)",
      ],
      ["whose lease is over", "UPDATE SCHEMA.shard SET expires_at = now() - interval '1 second'"],
    ])("%s writes nothing after another server took over", async (_title, end) => {
      const { proxy, url, database, put: write, names: found } = await setup();
      await write("one");
      // It could get its lock again, or notice on its own that it is too late.
      proxy.refuse();
      await server.query(end.replaceAll("SCHEMA", schemaOf(url)));
      const second = await takeOver(() => open(url, "second"));
      expect(database.rows.isGone()).toBeNull();
      await expect(write("late")).rejects.toThrow("Another Longshore server has taken over");
      expect(database.rows.isGone()).toMatchObject({ code: "LONGSHORE_STORE_UNAVAILABLE" });
      await expect(write("later")).rejects.toThrow("Another Longshore server has taken over");
      await put(second.rows, "two");
      expect(await found()).toEqual(["one", "two"]);
    });

    it("that hangs is replaced by one of several servers, and the others are notified at once", async () => {
      const { proxy, url } = await setup();
      proxy.refuse();
      await server.query(`UPDATE ${schemaOf(url)}.shard SET expires_at = now() - interval '1 second'`);
      const tried = await Promise.allSettled(Array.from({ length: 4 }, (_, at) => open(url, `node-${at}`)));
      const refused = tried.filter((each) => each.status === "rejected").map(({ reason }) => (reason as { code?: unknown }).code);
      expect(refused).toEqual(["LONGSHORE_CONFLICT", "LONGSHORE_CONFLICT", "LONGSHORE_CONFLICT"]);
      // A session that waits for the lock would get it before the next server that checks for it.
      const sessions = `SELECT pid FROM pg_locks WHERE ${holding(lockOf(schemaOf(url)))}`;
      expect(await server.query(sessions.replace("granted", "true"))).toHaveLength(1);
    });

    it("is replaced when it hangs while it sends a commit", async () => {
      const { proxy, url, rows, names: found, put: write } = await setup(500);
      await write("one");
      proxy.lose("half request");
      const stuck = Promise.resolve(rows.commit(() => rows.table(propertyTable).insert([{ name: "stuck", value: "x".repeat(50_000) }])));
      stuck.catch(() => {});
      const writers = `SELECT pid FROM pg_locks WHERE relation = '${schemaOf(url)}.shard'::regclass AND mode = 'RowExclusiveLock'`;
      await untilElsewhere(async () => (await server.query(writers)).length > 0);
      // Like a stopped process: it has its sessions but does nothing with them.
      proxy.refuse();
      proxy.silence("lease", "write");
      const second = await takeOver(() => open(url, "second", 500));
      await put(second.rows, "two");
      expect(await found()).toEqual(["one", "two"]);
    });

    it("shares its PostgreSQL with the owner of the same schema in another database", async () => {
      const { proxy, url } = await setup();
      await server.query("CREATE DATABASE neighbour");
      const neighbour = await open(url.replace("/postgres?", "/neighbour?"));
      await put(neighbour.rows, "there");
      const members = await openMembers(url);
      onTestFinished(() => members.close());
      expect(await members.look()).toMatchObject({ isFree: false });
      proxy.refuse();
      const sessions = `SELECT pid FROM pg_locks WHERE ${holding(lockOf(schemaOf(url)))}`;
      await server.query(`SELECT pg_terminate_backend(pid) FROM (${sessions}) AS own`);
      await untilElsewhere(async () => (await members.look()).isFree);
      await server.query(`UPDATE ${schemaOf(url)}.shard SET expires_at = now() - interval '1 second'`);
      await put((await open(url, "second")).rows, "here");
      expect(neighbour.rows.isOwned()).toBe(true);
    });

    it("is unavailable while PostgreSQL is, and then continues automatically", async () => {
      const { put: write, rows, names: found } = await setup();
      await write("before");
      await server.down();
      await expect(write("refused")).rejects.toBeInstanceOf(Unavailable);
      await expect(get(rows, "before")).rejects.toBeInstanceOf(Unavailable);
      expect(rows.isGone()).toBeNull();
      await server.up();
      await write("after");
      expect((await get(rows, "after"))?.name).toBe("after");
      expect(await found()).toEqual(["after", "before"]);
    });

    it("relies on memory only while its lease lasts", async () => {
      const { rows, close } = await openDatabase({ url: server.newUrl(), node: "short", leaseMs: 500 });
      onTestFinished(() => close());
      await put(rows, "one");
      expect(rows.isOwned()).toBe(true);
      await server.down();
      await untilElsewhere(() => !rows.isOwned());
      await server.up();
      await untilElsewhere(() => rows.isOwned());
      await put(rows, "two");
    });

    it("relies on memory only while it has its lock, and gets it again when its connection is lost", async () => {
      const { rows, url } = await setup();
      const schema = schemaOf(url);
      const locks = `SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid::bigint = hashtext('${schema}/0') & 4294967295`;
      const [before] = await server.query(locks);
      // Another session waits for the lock, and gets it as soon as the owner loses it.
      const other = await server.connect();
      onTestFinished(() => other.end());
      const taken = other.query(`SELECT pg_advisory_lock(hashtext('longshore'), hashtext('${schema}/0'))`);
      await untilElsewhere(async () => (await server.query(locks)).length === 2);
      expect(rows.isOwned()).toBe(true);
      await server.query(`SELECT pg_terminate_backend(${before?.pid})`);
      await taken;
      await untilElsewhere(() => !rows.isOwned());
      await other.query("SELECT pg_advisory_unlock_all()");
      await untilElsewhere(() => rows.isOwned());
      await put(rows, "after");
    });

    it("reports the version of the rows that a reader has loaded", async () => {
      const { put: write, rows, proxy } = await setup();
      const versions: unknown[] = [];
      const load = async () => versions.push(await versionOf(rows), rows.version?.());
      await load();
      await write("one");
      await load();
      // Decided by a query, which also changes the version.
      proxy.lose("response");
      await write("two");
      await load();
      const [before, , one, known, two, settled] = versions as number[];
      expect([one, known, two]).toEqual([(before as number) + 1, one, settled]);
      expect(two).toBeGreaterThan(one as number);
    });

    it("fails only the row that cannot be stored", async () => {
      const { put: write, names: found } = await setup();
      // Too long for an index, and random, so that it is not compressible.
      const refused = await write(randomBytes(20_000).toString("hex")).catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(Error);
      expect(refused).not.toBeInstanceOf(Unavailable);
      await write("after");
      expect(await found()).toEqual(["after"]);
    });
  });

function schemaOf(url: string): string {
  return new URL(url).searchParams.get("schema") as string;
}

/** Other sessions do not see the end of a session at once. */
async function takeOver(open: () => Promise<PostgresDatabase>): Promise<PostgresDatabase> {
  for (;;) {
    try {
      return await open();
    } catch (error) {
      if ((error as { code?: unknown }).code !== "LONGSHORE_CONFLICT") throw error;
    }
  }
}

async function put(rows: RowStore, name: string): Promise<void> {
  await rows.commit(() => rows.table(propertyTable).insert([{ name, value: "" }]));
}

async function get(rows: RowStore, name: string): Promise<Property | null> {
  const tx: ReadTx = { isOperation: false, loaded: new Map() };
  const read = () => rows.table(propertyTable).get(tx, name);
  try {
    return read();
  } catch (missing) {
    await rows.load(tx, [missing as never]);
    return read();
  }
}

async function versionOf(rows: RowStore): Promise<unknown> {
  const tx: ReadTx = { isOperation: false, loaded: new Map() };
  try {
    rows.table(propertyTable).get(tx, "any");
  } catch (missing) {
    return rows.load(tx, [missing as never]);
  }
  throw new Error("The row was not missing.");
}

async function names(server: TestPostgres, url: string): Promise<unknown[]> {
  return (await server.query(`SELECT name FROM ${schemaOf(url)}.property ORDER BY name`)).map(({ name }) => name);
}
