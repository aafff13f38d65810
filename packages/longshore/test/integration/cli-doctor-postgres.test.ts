// `longshore doctor --store` on real servers: a good one, ones with bad settings, full ones, and one behind a pooler.

import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { longshore, startServer } from "../support/cli.ts";
import { postgresMissing, startMsMax, TestPostgres } from "../support/postgres.ts";
import { openPooler } from "../support/transaction-pooler.ts";

interface Finding {
  about: string;
  state: string;
  seen: string;
  advice?: string;
  figures?: Record<string, number | string>;
}

async function findings(store: string, env: Record<string, string> = {}) {
  const given = Object.hasOwn(env, "LONGSHORE_STORE") ? [] : ["--store", store];
  const { code, stdout, stderr } = await longshore(["doctor", "--json", "--port", "0", ...given], { env });
  const { ok, findings: list } = JSON.parse(stdout) as { ok: boolean; findings: Finding[] };
  return { code, ok, stderr, list, of: Object.fromEntries(list.map((finding) => [finding.about, finding])) };
}

if (postgresMissing !== undefined) it("the doctor examines PostgreSQL", (context) => context.skip(`needs ${postgresMissing}`));
else
  describe("longshore doctor --store", () => {
    let postgres: TestPostgres;
    beforeAll(async () => {
      postgres = await TestPostgres.start({ durable: true });
      await postgres.query("CREATE ROLE stranger LOGIN; CREATE ROLE narrow LOGIN SUPERUSER CONNECTION LIMIT 9");
    }, startMsMax);
    afterAll(() => postgres.remove(), startMsMax);

    it("reports no problem with a good PostgreSQL, and creates no schema in it", async () => {
      const url = postgres.newUrl();
      const { code, ok, of } = await findings(url);
      expect({ code, ok }).toEqual({ code: 0, ok: true });
      expect(Object.keys(of)).toEqual([
        "Node",
        "PostgreSQL",
        "Rights",
        "Durability",
        "Sessions",
        "Connections",
        "Vacuum",
        "Clock",
        "Data",
        "Port",
      ]);
      expect(of.PostgreSQL?.seen).toMatch(/^\d+.* at postgres:\/\/longshore@127/);
      expect(of.Durability).toEqual({
        ...{ about: "Durability", state: "ok", seen: "synchronous_commit on, fsync on, full_page_writes on" },
        figures: { synchronousCommit: "on", fsync: "on", fullPageWrites: "on" },
      });
      expect(of.Clock).toMatchObject({ state: "ok", figures: { aheadMs: expect.any(Number), roundTripMs: expect.any(Number) } });
      expect(of.Data).toMatchObject({ state: "ok", seen: "no schema yet: the first start makes it" });
      const schema = new URL(url).searchParams.get("schema");
      expect(await postgres.query(`SELECT 1 FROM pg_namespace WHERE nspname = '${schema}'`)).toEqual([]);
    });

    it("shows which server has the data, and for how long", async () => {
      const url = postgres.newUrl();
      const server = await startServer(["--store", url]);
      const { code, of } = await findings(url, { LONGSHORE_STORE: url });
      expect(code).toBe(0);
      expect(of.Data?.seen).toMatch(/^schema version \d+, \S+\/\d+\/\w+ has it \(epoch 1\), its lease ends in \d/);
      expect(of.Data?.figures).toMatchObject({ epoch: 1, owner: expect.stringContaining(`/${server.pid}/`) });
      server.kill("SIGTERM");
      await server.ended;
      expect((await findings(url)).of.Data?.seen).toMatch(/no server has it \(epoch 1\)$/);
    });

    it.each([false, true])("detects a transaction pooler in between (first in, first out: %s)", async (fifo) => {
      const pooler = await openPooler(postgres.port, { fifo });
      onTestFinished(() => pooler.close());
      const { code, of } = await findings(postgres.newUrl().replace(`:${postgres.port}/`, `:${pooler.port}/`));
      expect(code).toBe(1);
      expect(of.Sessions).toMatchObject({ state: "bad", advice: expect.stringContaining("session mode") });
    });

    it("warns of settings that may lose work, and of tables that would grow without a limit", async () => {
      const weak = await TestPostgres.start();
      onTestFinished(() => weak.remove());
      await weak.query("ALTER DATABASE postgres SET synchronous_commit = off");
      await weak.query("ALTER SYSTEM SET autovacuum = off");
      await weak.query("SELECT pg_reload_conf()");
      const { code, of } = await findings(weak.newUrl());
      expect(code).toBe(0);
      expect(of.Durability).toMatchObject({ state: "warn", seen: "synchronous_commit off, fsync off, full_page_writes off" });
      expect(of.Vacuum).toMatchObject({ state: "warn" });
    });

    it("reports what is missing: rights, connections, PostgreSQL itself", async () => {
      const url = postgres.newUrl();
      const as = (role: string) => findings(url.replace("longshore@", `${role}@`));
      const stranger = await as("stranger");
      expect(stranger).toMatchObject({
        code: 1,
        of: { Rights: { state: "bad", seen: "the role may not create a schema in this database" } },
      });
      const narrow = await as("narrow");
      expect(narrow.of.Connections).toMatchObject({ state: expect.stringMatching(/warn|bad/), figures: { max: 9, needed: 10 } });
      const away = await findings("postgres://longshore@127.0.0.1:1/postgres");
      expect(away).toMatchObject({ code: 1, ok: false });
      expect(away.of.PostgreSQL).toMatchObject({
        state: "bad",
        seen: expect.stringContaining("ECONNREFUSED"),
        advice: expect.stringMatching(/^Start it/),
      });
    });

    it("prints the same as text, and shows no password", async () => {
      const url = postgres.newUrl().replace("longshore@", "longshore:hunter2hunter2@");
      const { code, stdout, stderr } = await longshore(["doctor", "--port", "0", "--store", url]);
      expect(code).toBe(0);
      expect(stdout).toMatch(/✓ +Sessions +a session keeps its process/);
      expect(stdout + stderr).not.toContain("hunter2");
      expect(stderr).toMatch(/^longshore: A password in --store can be read by every user/);
    });
  });

it("a folder and PostgreSQL exclude each other", async () => {
  const { code, stderr } = await longshore(["doctor", "--data", "x", "--store", "postgres://a@b/c"]);
  expect([code, stderr]).toEqual([2, expect.stringContaining("cannot be used with option '--data")]);
});

it("backup names the program of PostgreSQL, and shows no password", async () => {
  const env = { LONGSHORE_STORE: "postgres://ann:hunter2hunter2@db/shop?schema=prod" };
  const { code, stderr } = await longshore(["backup", "./copy"], { env });
  expect(code).toBe(2);
  expect(stderr).toContain('pg_dump --format=custom --schema=prod --file=longshore.dump "postgres://ann@db/shop"');
  expect(stderr).not.toContain("hunter2");
});
