// A running engine on a real PostgreSQL. Its connections break, become silent or are ended by the server, or it loses its lease while it
// works. Everything that it has accepted is stored once, and after another server took over, it accepts nothing.

import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { laneOf } from "../../src/engine/board/lanes.ts";
import type { NewTaskRow } from "../../src/engine/board/store.ts";
import type { Store } from "../../src/engine/store.ts";
import { type Engine, openEngine } from "../../src/server/engine.ts";
import { openDatabase } from "../../src/store/postgres/database.ts";
import { postgresMissing, startMsMax, TestPostgres } from "../support/postgres.ts";
import { type Loss, openProxy } from "../support/postgres-proxy.ts";
import { untilElsewhere } from "../support/until.ts";
import { policy } from "./world.ts";

/** Longer than any test: the test itself ends such a lease. */
const longMs = 600_000;
const holder = "ann";

const newTask = (id: string): NewTaskRow => ({
  id,
  step: "single",
  lanes: [laneOf("a")],
  input: "null",
  policy: policy({ failures: 0, lost: 0, delayMs: 0 }),
  priority: 0,
});

interface Opened {
  readonly engine: Engine;
  readonly store: Store;
}

if (postgresMissing !== undefined)
  it("an engine survives the faults of its connections to PostgreSQL", (context) => context.skip(`needs ${postgresMissing}`));
else
  describe("an engine on PostgreSQL", () => {
    let server: TestPostgres;
    beforeAll(async () => {
      server = await TestPostgres.start();
    }, startMsMax);
    afterAll(() => server.remove(), startMsMax);

    async function open(url: string, options: { leaseMs?: number; responseMs?: number; node?: string } = {}): Promise<Opened> {
      const { leaseMs = longMs, node = "first", responseMs } = options;
      let store: Store | undefined;
      const openStore = async (): Promise<Store> => {
        const { rows, blobs, clock, wasServed, close } = await openDatabase({ url, node, leaseMs, responseMs });
        store = { shown: "PostgreSQL", wasServed, rows, contents: blobs, clock, checkRest: () => {}, inWords: (error) => error, close };
        return store;
      };
      const engine = await openEngine({ directory: null, openStore });
      onTestFinished(() => engine.close().catch(() => {}));
      return { engine, store: store as Store };
    }

    async function setup(options: { leaseMs?: number; responseMs?: number } = {}) {
      const proxy = await openProxy(server.port);
      onTestFinished(() => proxy.close());
      const url = server.newUrl();
      const first = await open(url.replace(`:${server.port}/`, `:${proxy.port}/`), options);
      return { ...first, proxy, url, schema: new URL(url).searchParams.get("schema") as string };
    }

    /** Other sessions do not see the end of a session at once, and a lease must end first. */
    const takeOver = (url: string): Promise<Opened> =>
      untilElsewhere(() =>
        open(url, { node: "second" }).catch((error: { code?: unknown }) => {
          if (error.code !== "LONGSHORE_CONFLICT") throw error;
          return false;
        }),
      );

    async function held({ board }: Engine, id: string) {
      await board.post([newTask(id)]);
      const [task] = await board.claim({ reach: { names: ["a"], labels: [] }, holder, termMs: 60_000, max: 1 });
      return { taskId: id, grant: task?.grant as number, holder };
    }

    const stateOf = async (schema: string, id: string) =>
      (await server.query(`SELECT state FROM ${schema}.task WHERE id = '${id}'`))[0]?.state ?? null;

    /** Ends sessions: the one with the lock of the schema, or all sessions of a role that only this test uses. */
    const endSessions = (schema: string, role: string) =>
      server.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'longshore ${role}' AND pid IN (${sessionsOf(schema, role)})`,
      );

    const sessionsOf = (schema: string, role: string) =>
      role === "lease"
        ? `SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid::bigint = hashtext('${schema}/0') & 4294967295`
        : "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'";

    it.each<[Loss, string]>([
      ["response", "ok"],
      ["request", "refused"],
    ])("settles a completion whose %s is lost with its connection", async (loss, expected) => {
      const { engine, proxy, schema } = await setup();
      const hold = await held(engine, "t");
      proxy.lose(loss);
      const verdict = await engine.board.complete(hold, '"done"').catch(refused);
      expect(verdict).toBe(expected);
      expect(await stateOf(schema, "t")).toBe(expected === "ok" ? "done" : "held");
      const repeated = () => engine.board.complete(hold, '"done"').catch(refused);
      // Refused while the store pauses after a failure.
      expect(await untilElsewhere(async () => notRefused(await repeated()))).toBe(expected === "ok" ? "again" : "ok");
      expect((await engine.reader.task("t"))?.state).toBe("done");
    });

    it("finds out what was committed after its writing connection was silent", async () => {
      const { engine, proxy, schema } = await setup({ responseMs: 200 });
      const hold = await held(engine, "t");
      proxy.silence("write");
      const verdict = await engine.board.complete(hold, '"done"').catch(refused);
      expect(verdict).toBe("refused");
      // The delayed statements arrive, and the fence refuses all of them.
      proxy.wake();
      expect(
        await untilElsewhere(async () => notRefused(await engine.board.fail(hold, { error: "no", retryable: false }).catch(refused))),
      ).toBe("ok");
      expect(await stateOf(schema, "t")).toBe("failed");
    });

    it("remains the owner when its lease connection is silent", async () => {
      const { store, proxy, url } = await setup({ leaseMs: 1_500 });
      const before = await leaseSession(server, url);
      proxy.silence("lease");
      const after = await untilElsewhere(async () => {
        const session = await leaseSession(server, url);
        return session !== undefined && session !== before ? session : false;
      });
      expect(after).not.toBe(before);
      await untilElsewhere(() => store.rows.isOwned());
      expect(store.rows.isGone()).toBeNull();
      await expect(open(url, { node: "second" })).rejects.toMatchObject({ code: "LONGSHORE_CONFLICT" });
    });

    it("no longer relies on its memory when the session with its lock ends", async () => {
      const { engine, store, proxy, schema } = await setup();
      const hold = await held(engine, "t");
      expect(store.rows.isOwned()).toBe(true);
      // It would have the lock again within a millisecond.
      proxy.refuse();
      await endSessions(schema, "lease");
      await untilElsewhere(() => !store.rows.isOwned());
      // It still owns the data, and a commit confirms every response.
      expect((await engine.board.extend(hold)).verdict).toBe("ok");
      expect((await engine.reader.task("t"))?.state).toBe("held");
    });

    it("loses no accepted data when PostgreSQL ends its connections under load", async () => {
      const { engine, schema } = await setup();
      const accepted: string[] = [];
      let count = 0;
      let more = true;
      const caller = async () => {
        while (more) {
          const id = `t${count++}`;
          await engine.board.post([newTask(id)]).then(() => accepted.push(id), refused);
          await new Promise((resolve) => setImmediate(resolve));
        }
      };
      const callers = Array.from({ length: 5 }, caller);
      for (let ended = 0; ended < 5; ended++) {
        const reached = accepted.length + 20;
        await untilElsewhere(() => accepted.length >= reached);
        await endSessions(schema, "write");
      }
      more = false;
      await Promise.all(callers);
      const stored = new Set((await server.query(`SELECT id FROM ${schema}.task`)).map(({ id }) => id));
      expect(accepted.filter((id) => !stored.has(id))).toEqual([]);
    });

    it("accepts nothing after another server took over during its commits", async () => {
      const { engine, store, proxy, url, schema } = await setup();
      const accepted: { id: string; asked: number }[] = [];
      let more = true;
      let [count, takenAt] = [0, Number.POSITIVE_INFINITY];
      const caller = async () => {
        while (more) {
          const [id, asked] = [`t${count++}`, performance.now()];
          await engine.board.post([newTask(id)]).then(() => accepted.push({ id, asked }), refused);
          await new Promise((resolve) => setImmediate(resolve));
        }
      };
      const callers = Array.from({ length: 3 }, caller);
      await untilElsewhere(() => accepted.length > 20);
      // The first engine has lost its lock but continues to commit: only the fence of a commit shows the loss.
      proxy.refuse();
      await server.query(`UPDATE ${schema}.shard SET expires_at = now() - interval '1 second'`);
      await endSessions(schema, "lease");
      const second = await takeOver(url).then((opened) => {
        takenAt = performance.now();
        return opened;
      });
      await untilElsewhere(() => store.rows.isGone() !== null);
      more = false;
      await Promise.all(callers);
      const stored = new Set((await server.query(`SELECT id FROM ${schema}.task`)).map(({ id }) => id));
      expect(accepted.filter(({ id }) => !stored.has(id))).toEqual([]);
      expect(accepted.filter(({ asked }) => asked > takenAt)).toEqual([]);
      await expect(engine.reader.task("t0")).rejects.toMatchObject({ code: "LONGSHORE_STORE_UNAVAILABLE" });
      const why =
        "Another Longshore server has taken over this data, because this server did not renew its lease in time. This server writes nothing more.";
      await expect(engine.board.post([newTask("late")])).rejects.toMatchObject({ message: why });
      expect((await second.engine.reader.task(accepted[0]?.id as string))?.state).toBe("queued");
    });

    it("that was disconnected until another took over accepts nothing when it is connected again", async () => {
      const { engine, store, proxy, url, schema } = await setup({ leaseMs: 600 });
      const hold = await held(engine, "t");
      const other = await held(engine, "u");
      proxy.silence("write", "lease", "read");
      // The take-over ends the session with the lock. On a new connection, the first engine could get the lock again before the second has it.
      proxy.refuse();
      // It is being sent when the lease ends.
      const late = engine.board.complete(hold, '"late"').catch(refused);
      const second = await takeOver(url);
      expect(store.rows.isOwned()).toBe(false);
      proxy.wake();
      expect(await late).toBe("refused");
      expect(store.rows.isGone()).toMatchObject({ code: "LONGSHORE_STORE_UNAVAILABLE" });
      for (const ask of [
        () => engine.board.complete(other, '"late"'),
        () => engine.board.extend(other),
        () => engine.board.complete({ ...other, grant: 7 }, '"stale"'),
        () => engine.board.claim({ reach: { names: ["nothing"], labels: [] }, holder, termMs: 1_000, max: 1 }),
        () => engine.reader.task("t"),
      ])
        expect(await ask().catch(refused)).toBe("refused");
      expect([await stateOf(schema, "t"), await stateOf(schema, "u")]).toEqual(["held", "held"]);
      // The next owner continues the holds.
      expect(await second.engine.board.complete(hold, '"done"')).toBe("ok");
    });
  });

function refused(error: unknown): "refused" {
  if ((error as { code?: unknown }).code !== "LONGSHORE_STORE_UNAVAILABLE") throw error;
  return "refused";
}

function notRefused<T>(answer: T | "refused"): T | false {
  return answer === "refused" ? false : answer;
}

/** The session with the lock. */
async function leaseSession(server: TestPostgres, url: string): Promise<unknown> {
  const schema = new URL(url).searchParams.get("schema");
  const [row] = await server.query(
    `SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid::bigint = hashtext('${schema}/0') & 4294967295 AND granted`,
  );
  return row?.pid;
}
