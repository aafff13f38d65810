// `longshore verify` on a real data folder and on a running server, with recordings of a real worker and a real client. Then on the same
// folder with one damaged row at a time.

import { copyFileSync, cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openDatabase } from "../../src/store/sqlite/driver.ts";
import { type CliOptions, longshore, startLongshore, startServer, temporaryFolder } from "../support/cli.ts";

const definitions = `import { graph, task } from "longshore";
export const add = task("add", async ({ a, b }, ctx) => { await ctx.emit({ a }); return { sum: a + b }; });
export const halve = task("halve", async ({ n }) => { if (n % 2) throw new Error("odd: " + n); return n / 2; });
export const mean = graph("mean", (g, input) => {
  const added = g.step(add, { a: input.a, b: input.b });
  return { mean: g.step(halve, { n: added.sum }) };
});
`;

interface Played {
  readonly folder: string;
  readonly data: string;
  readonly recordings: readonly string[];
  readonly runIds: readonly string[];
  verify(...args: string[]): ReturnType<typeof longshore>;
}

/** A run that succeeds, one that fails, and a blob. They are checked on the running server, and its data stay. */
async function play(): Promise<Played> {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "flows.mjs"), definitions);
  const data = join(folder, "data");
  const server = await startServer(["--data", data], { cwd: folder });
  const options: CliOptions = { cwd: folder, env: { LONGSHORE_URL: server.url } };
  await longshore(["define", "flows.mjs"], options);
  const worker = startLongshore(["work", "flows.mjs", "--record", "worker.jsonl"], options);
  await worker.printed(/working for/);
  const start = (a: number) =>
    longshore(["run", "mean", "--input", JSON.stringify({ a, b: 5 }), "--follow", "--json", "--record", "client.jsonl"], options);
  const ended = [await start(3), await start(4)];
  expect(ended.map(({ code }) => code)).toEqual([0, 1]);
  const blob = await fetch(`${server.url}/api/longshore/v1/blobs`, { method: "POST", body: "content" });
  expect(blob.ok).toBe(true);
  const recordings = ["worker.jsonl", "client.jsonl"];
  worker.kill("SIGTERM");
  await worker.ended;
  const live = await longshore(["verify", ...recordings], options);
  expect(live).toMatchObject({ code: 0, stderr: "" });
  expect(live.stdout).toBe(
    "Checked 2 runs, 4 tasks and 4 attempts.\nCompared 12 recorded answers; 0 too old to judge, 0 of another server.\nEverything holds.\n",
  );
  server.kill("SIGKILL");
  await server.ended;
  const verify = (...args: string[]) => longshore(["verify", ...args], { cwd: folder });
  const runIds = ended.map(({ stdout }) => (JSON.parse(stdout) as { id: string }).id);
  return { folder, data, recordings, runIds, verify };
}

it("uses the server's retention time, on the running server and in its data", async () => {
  const folder = temporaryFolder();
  const data = join(folder, "data");
  const server = await startServer(["--data", data, "--keep-for", "60d"]);
  const begun = { kind: "run-started", runId: "01GONE", workflow: "w", state: "running", session: "s", at: Date.now() - 40 * 86_400_000 };
  const recording = join(folder, "client.jsonl");
  writeFileSync(recording, `${JSON.stringify(begun)}\n`);
  const judged = "Compared 1 recorded answer; 0 too old to judge";
  expect((await longshore(["verify", recording, "--on", server.url])).stdout).toContain(judged);
  server.kill("SIGTERM");
  await server.ended;
  expect((await longshore(["verify", recording, "--data", data])).stdout).toContain(judged);
  const told = await longshore(["verify", recording, "--data", data, "--retention", "30d"]);
  expect(told).toMatchObject({ code: 0, stdout: expect.stringContaining("1 too old to judge") });
});

describe("longshore verify", () => {
  it("finds no fault in a data folder after kill -9, with recordings, and changes no byte of it", async () => {
    const { data, recordings, verify } = await play();
    const files = ["longshore.db", "longshore.db-wal"].map((name) => join(data, name));
    const before = files.map((file) => readFileSync(file));
    const { code, stdout } = await verify(...recordings, "--data", data, "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      runs: 2,
      tasks: 4,
      attempts: 4,
      lines: { judged: 12, tooOld: 0, unknown: 0 },
      total: 0,
      findings: [],
    });
    for (const [at, file] of files.entries()) expect(readFileSync(file).equals(before[at] as Buffer)).toBe(true);
  });

  it("names the rows of each kind of damage and ends with exit code 1", async () => {
    const { folder, data, runIds, recordings, verify } = await play();
    const [done, failed] = runIds;
    const damages: readonly (readonly [rule: string, sql: string])[] = [
      ["run-state", "DELETE FROM definition"],
      ["run-can-move", `UPDATE run SET state = 'running', ended_at = NULL WHERE id = '${done}'`],
      ["run-is-quiet", `UPDATE task SET state = 'queued', ended_at = NULL WHERE id = '${failed}.1'`],
      ["task-state", `UPDATE task SET output = NULL WHERE id = '${done}.0'`],
      ["task-state", `UPDATE task SET state = 'failed', output = NULL WHERE id = '${done}.0'`],
      [
        "one-completion",
        `INSERT INTO attempt (task_id, grant_count, attempt, closed_by, queued_at, ended_at, state) VALUES ('${done}.0', 1, -1, 'complete', 0, 0, 'done');
         UPDATE task SET first_attempt = -1 WHERE id = '${done}.0'`,
      ],
      ["fences-rise", `UPDATE task SET closed_grant = 99 WHERE id = '${done}.0'`],
      [
        "holds-apart",
        `INSERT INTO attempt (task_id, grant_count, attempt, closed_by, queued_at, ended_at) VALUES ('${done}.0', 1, -1, 'expire', 0, ${Number.MAX_SAFE_INTEGER})`,
      ],
      ["blob-whole", "UPDATE blob SET bytes = bytes + 1"],
      ["recorded-run", `PRAGMA foreign_keys=OFF; DELETE FROM run WHERE id = '${done}'; DELETE FROM task WHERE run_id = '${done}'`],
      ["recorded-completion", `UPDATE task SET closed_by = 'fail' WHERE id = '${done}.0'`],
    ];
    for (const [rule, sql] of damages) {
      const copy = join(folder, `damaged-${rule}`);
      cpSync(data, copy, { recursive: true });
      const db = await openDatabase(join(copy, "longshore.db"));
      db.exec(`PRAGMA foreign_keys=OFF; ${sql}`);
      db.close();
      const { code, stdout } = await verify(...recordings, "--data", copy, "--json");
      expect({ rule, code }).toEqual({ rule, code: 1 });
      const { findings } = JSON.parse(stdout) as { findings: { rule: string; evidence: string[] }[] };
      const found = findings.find((one) => one.rule === rule);
      expect({ rule, evidence: found?.evidence.length }).not.toEqual({ rule, evidence: undefined });
      rmSync(copy, { recursive: true });
    }
  });

  it("reports mistakes in its arguments, and ends with exit code 2", async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "notes.txt"), "hello\n");
    const verify = (...args: string[]) => longshore(["verify", ...args], { cwd: folder });
    const nothing = await verify("--data", "nowhere");
    expect(nothing).toMatchObject({ code: 2 });
    expect(nothing.stderr).toMatch(/There is no data file in .*nowhere: name the folder of a server with --data\./);
    const both = await verify("--data", ".", "--on", "http://127.0.0.1:1");
    expect(both).toMatchObject({
      code: 2,
      stderr: "longshore: --data and --on exclude each other: name one place where the data are.\n",
    });
    const text = await verify("notes.txt", "--data", ".");
    expect(text).toMatchObject({ code: 2 });
    expect(text.stderr).toContain("notes.txt:1 is not a line of a recording, expected what --record writes.");
    copyFileSync(join(folder, "notes.txt"), join(folder, "longshore.db"));
    const damaged = await verify("--data", ".");
    expect(damaged).toMatchObject({ code: 2 });
    expect(damaged.stderr).toMatch(/The data file .*longshore\.db cannot be read: file is not a database/);
  });
});
