// `longshore start --store`: the built command on a real PostgreSQL that fails, hangs, moves and refuses.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { movedName } from "../../src/store/marks.ts";
import { type CliOptions, longshore, type ServerProcess, startLongshore, startServer, temporaryFolder } from "../support/cli.ts";
import { postgresMissing, startMsMax, TestPostgres } from "../support/postgres.ts";
import { untilElsewhere } from "../support/until.ts";

const flows = `import { graph, task } from "longshore";
export const double = task("double", ({ n }) => ({ n: 2 * n }));
export const twice = graph("twice", (g, input) => {
  const once = g.step(double, { n: input.n }, { id: "once" });
  return g.step(double, { n: once.n }, { id: "again" });
});
`;

const password = "pa55-word/of?people";

async function stateOf(url: string, id: string): Promise<unknown> {
  return ((await (await fetch(`${url}/api/longshore/v1/runs/${id}`)).json()) as { state?: unknown }).state;
}

function folderWithFlows(): string {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "flows.mjs"), flows);
  return folder;
}

/** A server with a workflow, and the functions that tests use. */
async function withFlows(server: ServerProcess) {
  const options: CliOptions = { cwd: folderWithFlows(), env: { LONGSHORE_URL: server.url } };
  expect((await longshore(["define", "flows.mjs"], options)).code).toBe(0);
  return { ...options, ...actions(options) };
}

function actions(options: CliOptions) {
  return {
    async begin(n: number): Promise<string> {
      const { stdout } = await longshore(["run", "twice", "--input", JSON.stringify({ n }), "--json"], options);
      return (JSON.parse(stdout) as { id: string }).id;
    },
    async work() {
      const worker = startLongshore(["work", "flows.mjs"], options);
      await worker.printed(/working for/);
      return worker;
    },
  };
}

if (postgresMissing !== undefined) it("a server keeps its data in PostgreSQL", (context) => context.skip(`needs ${postgresMissing}`));
else
  describe("longshore start --store", () => {
    let postgres: TestPostgres;
    beforeAll(async () => {
      postgres = await TestPostgres.start({ durable: true });
      await postgres.query(`CREATE ROLE stranger LOGIN; CREATE ROLE reader LOGIN PASSWORD 'unused'`);
    }, startMsMax);
    afterAll(() => postgres.remove(), startMsMax);

    it("prints the address of its data without the password, and only on the ready line", async () => {
      const url = postgres.newUrl().replace("longshore@", `longshore:${encodeURIComponent(password)}@`);
      const server = await startServer(["--log-level", "debug"], { env: { LONGSHORE_STORE: url } });
      const schema = new URL(url).searchParams.get("schema");
      expect(JSON.parse(server.stdout())).toEqual({
        ...{ ready: true, url: server.url, port: server.port, data: null },
        store: `postgres://longshore@127.0.0.1:${postgres.port}/postgres?schema=${schema}`,
      });
      server.kill("SIGTERM");
      const { code, stdout, stderr } = await server.ended;
      expect(code).toBe(0);
      for (const secret of [password, encodeURIComponent(password)]) expect(stdout + stderr).not.toContain(secret);
      expect(stderr).not.toContain("can be read by every user");
    });

    it("warns of a password among its arguments, and does not repeat it", async () => {
      const url = postgres.newUrl().replace("longshore@", "longshore:hunter2hunter2@");
      const server = await startServer(["--store", url]);
      await server.printed(/A password in --store can be read by every user of this machine/);
      expect(server.text()).not.toContain("hunter2");
    });

    it("continues open runs after kill -9", async () => {
      const url = postgres.newUrl();
      const first = await startServer(["--store", url]);
      const { begin, cwd } = await withFlows(first);
      const ids = [await begin(3), await begin(4)];
      first.kill("SIGKILL");
      await first.ended;
      const second = await startServer(["--store", url]);
      const { work } = actions({ cwd, env: { LONGSHORE_URL: second.url } });
      await work();
      for (const id of ids) await untilElsewhere(async () => (await stateOf(second.url, id)) === "succeeded");
      const verified = await longshore(["verify", "--on", second.url]);
      expect(verified).toMatchObject({ code: 0, stdout: expect.stringContaining("Checked 2 runs, 4 tasks") });
    });

    it("runs next to a server that owns the data, and takes over at once when that server stops", async () => {
      const url = postgres.newUrl();
      const first = await startServer(["--store", url]);
      const { begin } = await withFlows(first);
      const id = await begin(2);
      const second = await startServer(["--store", url]);
      expect(await stateOf(second.url, id)).toBe("running");
      first.kill("SIGTERM");
      expect((await first.ended).code).toBe(0);
      expect(await stateOf(second.url, id)).toBe("running");
    });

    it("does not start with data that were moved elsewhere", async () => {
      const url = postgres.newUrl();
      const first = await startServer(["--store", url]);
      first.kill("SIGTERM");
      await first.ended;
      const schema = new URL(url).searchParams.get("schema");
      await postgres.query(`INSERT INTO ${schema}.property (name, value) VALUES ('${movedName}', '{"place":"./elsewhere"}')`);
      const refused = await longshore(["start", "--port", "0", "--store", url]);
      expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("./elsewhere") });
    });

    it("responds with 503 while PostgreSQL is unavailable, and resumes automatically", async () => {
      const own = await TestPostgres.start({ durable: true });
      onTestFinished(() => own.remove());
      const server = await startServer(["--store", own.newUrl()]);
      const { begin, work } = await withFlows(server);
      const id = await begin(5);
      await own.down("SIGQUIT");
      const start = () =>
        fetch(`${server.url}/api/longshore/v1/runs`, {
          ...{ method: "POST", headers: { "content-type": "application/json" } },
          body: JSON.stringify({ workflow: "twice", input: { n: 1 } }),
        });
      const refused = await start();
      expect(refused.status).toBe(503);
      expect(await refused.json()).toMatchObject({ error: { code: "LONGSHORE_STORE_UNAVAILABLE" } });
      expect((await fetch(`${server.url}/health`)).status).toBe(503);
      await server.printed(/Trouble with writing PostgreSQL/);
      await own.up();
      await untilElsewhere(async () => (await start()).status < 300);
      await server.printed(/No more trouble with writing PostgreSQL/);
      expect(server.text()).not.toContain("data file");
      await work();
      await untilElsewhere(async () => (await stateOf(server.url, id)) === "succeeded");
      expect((await longshore(["verify", "--on", server.url])).code).toBe(0);
    });

    it("uses the writable host, and switches to a standby that is promoted", async () => {
      const primary = await TestPostgres.start({ durable: true });
      onTestFinished(() => primary.remove());
      const standby = await primary.standby();
      onTestFinished(() => standby.remove());
      const both = `postgres://longshore@127.0.0.1:${standby.port},127.0.0.1:${primary.port}/postgres`;
      const alone = await longshore(["start", "--port", "0", "--store", standby.urlOf("longshore")]);
      expect(alone).toMatchObject({ code: 2, stderr: expect.stringContaining("this PostgreSQL only reads: it is a standby") });
      const server = await startServer(["--store", both]);
      const { begin, work } = await withFlows(server);
      const id = await begin(6);
      const copied = () => standby.query(`SELECT count(*)::int AS runs FROM longshore.run WHERE id = '${id}'`);
      await untilElsewhere(async () => (await copied().catch(() => []))[0]?.runs === 1);
      await primary.down();
      await standby.query("SELECT pg_promote()");
      await untilElsewhere(async () => (await fetch(`${server.url}/health`)).status === 200);
      await work();
      await untilElsewhere(async () => (await stateOf(server.url, id)) === "succeeded");
      expect((await standby.query("SELECT state FROM longshore.run"))[0]?.state).toBe("succeeded");
    });

    it("warns at the start when PostgreSQL does not wait for its disk", async () => {
      const server = await startServer(["--store", `${postgres.newUrl()}&options=-c%20synchronous_commit%3Doff`]);
      const [line] = await server.printed(/^.*synchronous_commit is off.*$/m);
      expect(JSON.parse(line)).toMatchObject({ level: "warn", message: expect.stringContaining("acknowledged work may be lost") });
    });

    describe("the option --store", () => {
      const refusal = async (store: string) => {
        const { code, stdout, stderr } = await longshore(["start", "--port", "0", "--store", store]);
        expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
        const lines = stderr.split("\n").filter((line) => line !== "" && !line.startsWith("{"));
        expect(lines).toHaveLength(1);
        return lines[0] as string;
      };

      it.each([
        [
          "a text that is not an address",
          () => "localhost:5432",
          /^longshore: The address of the store is not an address of PostgreSQL; expected postgres:/,
        ],
        [
          "a password with a slash in it",
          () => "postgres://a:b/c@host/db",
          /^longshore: The address of the store (?:cannot be read|has a host)/,
        ],
        ["a schema with capitals", () => postgres.urlOf("Prod"), /^longshore: "Prod" cannot be the name of a schema/],
        [
          "an unknown database",
          () => postgres.urlOf("s").replace("/postgres?", "/nowhere?"),
          /refuses this server: database "nowhere" does not exist\.$/,
        ],
        [
          "an unknown role",
          () => postgres.urlOf("s").replace("longshore@", "ghost@"),
          /refuses this server: role "ghost" does not exist\.$/,
        ],
        ["a role without rights", () => postgres.urlOf("s").replace("longshore@", "stranger@"), /refuses this server: permission denied/],
        [
          "a port on which nothing listens",
          () => "postgres://longshore@127.0.0.1:1/postgres",
          /cannot be used: connect ECONNREFUSED 127\.0\.0\.1:1\. Start it, or/,
        ],
      ])("is refused with one clear error and exit code 2 for %s", async (_what, url, expected) => {
        expect(await refusal(url())).toMatch(expected);
      });

      it("is refused with one clear error and exit code 2 when another option excludes it", async () => {
        const url = postgres.newUrl();
        for (const other of [["--data", "x"], ["--ephemeral"], ["--accept-damage"]])
          expect(await longshore(["start", "--store", url, ...other])).toMatchObject({
            code: 2,
            stderr: expect.stringMatching(new RegExp(`option '--store <url>' cannot be used with option '${other[0]}`)),
          });
        expect(await longshore(["start"], { env: { LONGSHORE_STORE: url, LONGSHORE_DATA: "x" } })).toMatchObject({
          ...{ code: 2, stderr: expect.stringContaining("LONGSHORE_STORE and LONGSHORE_DATA exclude each other") },
        });
        expect(await longshore(["start", "--store", ""])).toMatchObject({ code: 2, stderr: expect.stringContaining("--store is empty") });
        expect(await longshore(["start", "--lease", "5s"])).toMatchObject({ code: 2, stderr: expect.stringContaining("--store") });
      });
    });

    it("is not set when the variable is empty", async () => {
      const server = await startServer(["--data", join(temporaryFolder(), "data")], { env: { LONGSHORE_STORE: "" } });
      expect(JSON.parse(server.stdout())).not.toHaveProperty("store");
    });

    it("is ignored by dev, which reports this", async () => {
      const dev = await longshore(["dev", "--port", "0", "--store", postgres.newUrl()]);
      expect(dev).toMatchObject({ code: 2, stderr: expect.stringContaining("dev keeps its data in a folder, on SQLite") });
      const running = startLongshore(["dev", "--port", "0", "--ephemeral"], { env: { LONGSHORE_STORE: postgres.newUrl() } });
      await running.printed(/dev does not use LONGSHORE_STORE: its data are in memory, on SQLite/);
      await running.printed(/Longshore serves on/);
    });
  });
