// `longshore migrate` and `longshore verify --store`: a server's data, with open runs, are moved to PostgreSQL and back, and work continues
// on each side.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CliOptions, longshore, type ServerProcess, startLongshore, startServer, temporaryFolder } from "../support/cli.ts";
import { postgresMissing, startMsMax, TestPostgres } from "../support/postgres.ts";
import { untilElsewhere } from "../support/until.ts";

const flows = `import { graph, task } from "longshore";
export const add = task("add", async ({ a, b }, ctx) => { await ctx.emit({ a }); console.log("adding"); return { sum: a + b }; });
export const halve = task("halve", async ({ n }) => n / 2);
export const mean = graph("mean", (g, input) => {
  const added = g.step(add, { a: input.a, b: input.b });
  return { mean: g.step(halve, { n: added.sum }) };
});
`;

function actions(server: ServerProcess, cwd: string) {
  const options: CliOptions = { cwd, env: { LONGSHORE_URL: server.url } };
  return {
    define: () => longshore(["define", "flows.mjs"], options),
    async begin(a: number) {
      const { stdout } = await longshore(
        ["run", "mean", "--input", JSON.stringify({ a, b: 5 }), "--json", "--record", "client.jsonl"],
        options,
      );
      return (JSON.parse(stdout) as { id: string }).id;
    },
    async finish(...ids: string[]) {
      const worker = startLongshore(["work", "flows.mjs", "--record", "worker.jsonl"], options);
      const state = async (id: string) =>
        ((await (await fetch(`${server.url}/api/longshore/v1/runs/${id}`)).json()) as { state: string }).state;
      for (const id of ids) await untilElsewhere(async () => (await state(id)) === "succeeded");
      worker.kill("SIGTERM");
      await worker.ended;
    },
    async stop() {
      server.kill("SIGTERM");
      await server.ended;
    },
  };
}

if (postgresMissing !== undefined) it("data move to PostgreSQL and back", (context) => context.skip(`needs ${postgresMissing}`));
else
  describe("longshore migrate", () => {
    let postgres: TestPostgres;
    beforeAll(async () => {
      postgres = await TestPostgres.start();
    }, startMsMax);
    afterAll(() => postgres.remove(), startMsMax);

    it("moves a server's data to PostgreSQL and back, and open runs continue on each side", { timeout: 180_000 }, async () => {
      const cwd = temporaryFolder();
      writeFileSync(join(cwd, "flows.mjs"), flows);
      const [data, back, url] = [join(cwd, "data"), join(cwd, "back"), postgres.newUrl()];
      const recordings = ["client.jsonl", "worker.jsonl"];
      const first = await startServer(["--data", data]);
      const one = actions(first, cwd);
      await one.define();
      await one.finish(await one.begin(1));
      const [second, third] = [await one.begin(2), await one.begin(3)];
      await fetch(`${first.url}/api/longshore/v1/blobs`, { method: "POST", body: "content" });
      expect(await longshore(["migrate", "--from", data, "--to", url])).toMatchObject({
        ...{ code: 2, stderr: expect.stringContaining(`Another Longshore server is using ${data}`) },
      });
      await one.stop();

      const there = await longshore(["migrate", "--from", "data", "--to", url], { cwd });
      expect(there).toMatchObject({
        code: 0,
        stderr: expect.stringMatching(/^rows: \d+ %\n(?:.*\n)*blobs: 100 %\n(?:.*\n)*checked rows: 100 %\n$/),
      });
      expect(there.stdout).toMatch(
        /^Moved \d+ rows of \d+ tables and 1 blob to postgres:\/\/longshore@.*\nEvery row was read again there and is the same/,
      );
      expect(await longshore(["verify", "--store", url, ...recordings], { cwd })).toMatchObject({
        ...{ code: 0, stdout: expect.stringMatching(/^Checked 3 runs, 4 tasks.*\nCompared \d+ recorded answers.*\nEverything holds\.\n$/) },
      });
      const refused = await longshore(["start", "--port", "0", "--data", data]);
      expect(refused).toMatchObject({ code: 2, stderr: expect.stringMatching(/were moved to postgres:.*remove the file .*moved\.$/m) });
      expect((await longshore(["doctor", "--port", "0", "--data", data])).code).toBe(1);

      const two = await startServer(["--store", url]);
      await actions(two, cwd).finish(second);
      expect(await longshore(["migrate", "--from", url, "--to", back])).toMatchObject({
        ...{ code: 2, stderr: expect.stringMatching(/Another Longshore server \(.*\) is using the schema/) },
      });
      await actions(two, cwd).stop();

      const home = await longshore(["migrate", "--from", url, "--to", back, "--json"]);
      expect(JSON.parse(home.stdout)).toMatchObject({ to: back, blobs: 1, missingBlobs: 0, tables: { run: 3, blob: 1 } });
      expect((await longshore(["start", "--port", "0", "--store", url])).stderr).toMatch(
        /were moved to .*DELETE FROM .*\.property WHERE name = 'moved'/,
      );
      const three = await startServer(["--data", back]);
      await actions(three, cwd).finish(third);
      await actions(three, cwd).stop();
      expect(await longshore(["verify", "--data", back, ...recordings], { cwd })).toMatchObject({
        ...{ code: 0, stdout: expect.stringMatching(/^Checked 3 runs, 6 tasks/) },
      });
    });

    it("leaves a target that no server uses when it is killed, and can begin again", async () => {
      const cwd = temporaryFolder();
      const [data, url] = [join(cwd, "data"), postgres.newUrl()];
      const server = await startServer(["--data", data]);
      await fetch(`${server.url}/api/longshore/v1/blobs`, { method: "POST", body: Buffer.alloc(3_000_000, "x") });
      server.kill("SIGKILL");
      await server.ended;
      const running = startLongshore(["migrate", "--from", data, "--to", url]);
      await running.printed(/rows: \d+ %/);
      running.kill("SIGKILL");
      await running.ended;
      const start = await longshore(["start", "--port", "0", "--store", url]);
      expect(start).toMatchObject({ code: 2, stderr: expect.stringContaining("has an incomplete copy of the data in") });
      expect((await longshore(["migrate", "--from", data, "--to", url])).code).toBe(0);
      await startServer(["--store", url]);
    });

    it("requires one folder and one address", async () => {
      expect(await longshore(["migrate", "--from", "a", "--to", "b"])).toMatchObject({
        ...{ code: 2, stderr: expect.stringContaining("--from and --to name one of each") },
      });
      expect(await longshore(["migrate", "--from", join(temporaryFolder(), "none"), "--to", postgres.newUrl()])).toMatchObject({
        ...{ code: 2, stderr: expect.stringContaining("There is no data file in") },
      });
    });

    it("verify finds broken rows and lost content in PostgreSQL", async () => {
      const cwd = temporaryFolder();
      writeFileSync(join(cwd, "flows.mjs"), flows);
      const url = postgres.newUrl();
      const server = await startServer(["--store", url]);
      const { define, begin, finish } = actions(server, cwd);
      await define();
      await finish(await begin(1));
      await fetch(`${server.url}/api/longshore/v1/blobs`, { method: "POST", body: "content" });
      expect((await longshore(["verify", "--store", url], { cwd })).stdout).toContain("Everything holds.");
      const schema = new URL(url).searchParams.get("schema");
      await postgres.query(
        `UPDATE ${schema}.task SET ended_at = NULL, state = 'held' WHERE step = 'add'; DELETE FROM ${schema}.blob_chunk`,
      );
      const { code, stdout } = await longshore(["verify", "--store", url], { cwd });
      expect(code).toBe(1);
      expect(stdout).toMatch(/blob-whole \S+: 7 bytes of it were acknowledged and its content is missing/);
      expect(stdout).toMatch(/findings:/);
      expect(await longshore(["verify", "--store", postgres.newUrl()])).toMatchObject({
        ...{ code: 2, stderr: expect.stringContaining("There are no data of a server in postgres:") },
      });
    });

    it("verify uses the data that LONGSHORE_STORE names by default", async () => {
      const nothing = { code: 2, stderr: expect.stringContaining("There are no data of a server in postgres:") };
      const env = { LONGSHORE_STORE: postgres.newUrl() };
      expect(await longshore(["verify"], { env })).toMatchObject(nothing);
      expect(await longshore(["verify"], { env: { ...env, LONGSHORE_URL: "http://127.0.0.1:1" } })).toMatchObject(nothing);
      const elsewhere = [["--on", "http://127.0.0.1:1"], ["--data", temporaryFolder()], []] as const;
      for (const [at, place] of elsewhere.entries()) {
        const own = at === 2 ? { LONGSHORE_STORE: "", LONGSHORE_URL: "http://127.0.0.1:1" } : env;
        const { code, stderr } = await longshore(["verify", ...place], { env: own });
        expect([code, stderr]).toEqual([2, expect.not.stringContaining("postgres")]);
      }
    });
  });
