// `longshore work` for a Conductor server: one real process for each task, which is really killed, blocked and stopped. The server is a stub
// that the test controls. Waits end with events, not with time.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { WorkerStatuses } from "../../src/index.ts";
import { longshore, type Running, startLongshore, temporaryFolder } from "../support/cli.ts";
import { ConductorStub, pollOf } from "../support/conductor-stub.ts";
import { untilElsewhere as until } from "../support/until.ts";

const tasksModule = `
import { existsSync } from "node:fs";
import { threadId } from "node:worker_threads";
import { task } from "longshore";
const later = () => new Promise((resolve) => setTimeout(resolve, 10));
// Blocks its thread like a computation, but leaves the processor to others.
const stall = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
export const where = task("where", async () => ({ pid: process.pid, threadId }));
export const computes = task("computes", ({ file }) => {
  while (!existsSync(file)) stall(5);
  return { pid: process.pid, threadId };
});
export const slow = task("slow", async ({ file }) => {
  while (!existsSync(file)) await later();
  return { pid: process.pid };
});
export const wedges = task("wedges", async () => {
  stall(Infinity);
});
`;

interface Setup {
  readonly stub: ConductorStub;
  readonly folder: string;
  readonly worker: Running;
  readonly health: () => Promise<{ status: number; body: { status: string; workers: WorkerStatuses } }>;
  readonly metrics: () => Promise<string>;
  /** Waits until the health is as expected. */
  readonly healthy: (wanted: (workers: WorkerStatuses, status: number) => boolean) => Promise<WorkerStatuses>;
}

async function setup(names: readonly string[], args: readonly string[] = []): Promise<Setup> {
  const stub = await ConductorStub.start();
  onTestFinished(() => stub.close());
  const folder = temporaryFolder();
  const chosen = names.map((name) => `export { ${name} } from "./all.mjs";\n`).join("");
  writeFileSync(join(folder, "all.mjs"), tasksModule);
  writeFileSync(join(folder, "tasks.mjs"), chosen);
  const worker = startLongshore(["work", "tasks.mjs", "--conductor", stub.url, "--http-port", "0", ...args], { cwd: folder });
  const [, url] = await worker.printed(/metrics and health at (\S+)/);
  const health = async () => {
    const answer = await fetch(`${url}/health`);
    return { status: answer.status, body: (await answer.json()) as { status: string; workers: WorkerStatuses } };
  };
  const healthy = (wanted: (workers: WorkerStatuses, status: number) => boolean) =>
    until(async () => {
      const { status, body } = await health();
      return wanted(body.workers, status) && body.workers;
    });
  return { stub, folder, worker, health, healthy, metrics: async () => (await fetch(`${url}/metrics`)).text() };
}

/** The output of the next result of this task. */
async function resultOf(stub: ConductorStub, type: string, inputData = {}): Promise<{ pid: number; threadId?: number }> {
  const { taskId } = stub.enqueue(type, { inputData });
  await until(() => stub.results.some((result) => result.taskId === taskId));
  return stub.results.find((result) => result.taskId === taskId)?.outputData as { pid: number };
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch {
    return false;
  }
}

describe("longshore work for Conductor", () => {
  it("[C-ARCH-01, C-ARCH-03] runs every task in its own process, which polls only for this task", async () => {
    const { stub, worker, health } = await setup(["where", "slow"]);
    await worker.printed(/working for http:\/\/127\.0\.0\.1:\d+: slow, where/);
    const { pid } = await resultOf(stub, "where");
    const { status, body } = await health();
    expect(status).toBe(200);
    expect(body.workers).toMatchObject({
      where: { alive: true, pid, restarts: 0, exitCode: null },
      slow: { alive: true, pid: expect.any(Number), inFlight: 0 },
    });
    expect(new Set([worker.pid, pid, body.workers.slow?.pid]).size).toBe(3);
    const pollers = (type: string) => new Set(stub.seen(pollOf(type)).map(({ query }) => new URLSearchParams(query).get("workerid")));
    expect(pollers("where").size).toBe(1);
    expect([...pollers("where")]).not.toEqual([...pollers("slow")]);
  });

  it("[C-TEST-09, C-SUP-10] restarts a killed process at once, counts the restart, and does not affect other processes", async () => {
    const { stub, worker, healthy, metrics } = await setup(["where", "slow"]);
    const before = await resultOf(stub, "where");
    const neighbours = await healthy(({ slow }) => slow?.pid !== undefined);
    process.kill(before.pid, "SIGKILL");
    await worker.printed(/The worker process of where ended by SIGKILL/);
    await worker.printed(/Restarted the worker of where \(restart 1\)/);
    const after = await resultOf(stub, "where");
    expect(after.pid).not.toBe(before.pid);
    const workers = await healthy(({ where }) => where?.alive === true);
    expect(workers.where).toMatchObject({ pid: after.pid, restarts: 1 });
    expect(workers.slow).toMatchObject({ pid: neighbours.slow?.pid, restarts: 0 });
    expect(await metrics()).toContain('worker_restart_total{task_type="where"} 1\n');
  });

  it("[C-HND-11, C-TEST-09] responds with 503 while a worker is dead, as after a second crash within the backoff", async () => {
    const { stub, worker, healthy } = await setup(["where"]);
    process.kill((await resultOf(stub, "where")).pid, "SIGKILL");
    await worker.printed(/restart 1/);
    const { pid } = await resultOf(stub, "where");
    process.kill(pid, "SIGKILL");
    const dead = await healthy((_workers, status) => status === 503);
    expect(dead.where).toMatchObject({ alive: false, restarts: 1, inFlight: 0 });
    expect(dead.where).not.toHaveProperty("pid");
    await worker.printed(/restart 2/);
    expect((await resultOf(stub, "where")).pid).not.toBe(pid);
  });

  it("[C-ARCH-12, C-LEASE-05] runs synchronous handlers in threads, and continues to poll and send heartbeats for all of them", async () => {
    const { stub, folder } = await setup(["computes", "where"], ["--slots", "11"]);
    const file = join(folder, "go");
    const computing = Array.from({ length: 10 }, () => stub.enqueue("computes", { inputData: { file }, responseTimeoutSeconds: 2 }).taskId);
    const beats = (taskId: string) => stub.heartbeats.filter(({ body }) => (body as { taskId: string }).taskId === taskId).length;
    await until(() => computing.every((taskId) => beats(taskId) >= 2));
    const polls = stub.seen(pollOf("computes")).length;
    await stub.next(pollOf("computes"), 3);
    expect(stub.seen(pollOf("computes")).length).toBeGreaterThanOrEqual(polls + 3);
    expect((await resultOf(stub, "where")).threadId).toBe(0);
    writeFileSync(file, "");
    await until(() => stub.results.length === 11);
    const threads = stub.results.filter(({ taskId }) => computing.includes(taskId)).map(({ outputData }) => outputData?.threadId);
    expect(new Set(threads).size).toBe(10);
    expect(threads).not.toContain(0);
  });

  it("[C-HND-09, C-HND-06] shows the metrics of every process on one page", async () => {
    const { stub, worker, metrics } = await setup(["where", "slow"]);
    await worker.printed(/working for/);
    await resultOf(stub, "where");
    await resultOf(stub, "slow", { file: "/" });
    const wanted = ['task_execution_started_total{taskType="where"} 1\n', 'task_execution_started_total{taskType="slow"} 1\n'];
    let text = "";
    await until(async () => {
      text = await metrics();
      return wanted.every((line) => text.includes(line));
    });
    expect(text).toMatch(/^task_poll_total\{taskType="where"\} [1-9]/m);
    expect(text).toMatch(/^http_api_client_request_seconds_count\{method="GET",uri="[^"]*poll\/batch[^"]*",status="200"\} [1-9]/m);
    expect(text.match(/^# TYPE task_poll_total/gm)).toHaveLength(1);
  });

  it("[C-PERF-04] uses little memory for each process", async () => {
    const { stub } = await setup(["where"]);
    let pid = 0;
    for (let count = 0; count < 200; count++) pid = (await resultOf(stub, "where")).pid;
    const [, residentKb] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    // Node alone uses about 45 MB. The worker, its HTTP client and the task use the rest.
    expect(Number(residentKb) / 1024).toBeLessThan(120);
  });

  it("[C-SUP-14] reports that a worker with a blocked event loop is dead, and still stops it", async () => {
    const { stub, worker, healthy } = await setup(["wedges", "where"]);
    await worker.printed(/working for/);
    stub.enqueue("wedges");
    const workers = await healthy((_workers, status) => status === 503);
    expect(workers).toMatchObject({ wedges: { alive: false, pid: expect.any(Number), restarts: 0 }, where: { alive: true } });
    worker.kill("SIGTERM");
    expect((await worker.ended).code).toBe(0);
    expect(alive(workers.wedges?.pid as number)).toBe(false);
  });
});

describe("the end of worker processes", () => {
  it("[C-SUP-13] on SIGTERM lets running tasks finish in every process", async () => {
    const { stub, folder, worker } = await setup(["slow", "where"]);
    const file = join(folder, "go");
    const { taskId } = stub.enqueue("slow", { inputData: { file } });
    await until(() => stub.tasks.get(taskId)?.status === "IN_PROGRESS");
    worker.kill("SIGTERM");
    await worker.printed(/SIGTERM: stopping/);
    expect(stub.results).toEqual([]);
    writeFileSync(file, "");
    expect((await worker.ended).code).toBe(0);
    expect(stub.results).toMatchObject([{ taskId, status: "COMPLETED" }]);
  });

  it("comes with the end of their parent, for any kind of end", async () => {
    const { worker, healthy } = await setup(["where", "slow"]);
    const workers = await healthy(({ where, slow }) => where?.pid !== undefined && slow?.pid !== undefined);
    worker.kill("SIGKILL");
    await worker.ended;
    await until(() => Object.values(workers).every(({ pid }) => !alive(pid as number)));
  });
});

describe("the files of worker processes", () => {
  it("[C-HND-01, C-HND-02] are found by a pattern, also when they export other things than tasks", async () => {
    const stub = await ConductorStub.start();
    onTestFinished(() => stub.close());
    const folder = temporaryFolder();
    writeFileSync(
      join(folder, "one.mjs"),
      'import { task } from "longshore";\nexport const one = task("one", async () => ({ pid: process.pid }));\n',
    );
    writeFileSync(join(folder, "two.mjs"), 'import { task } from "longshore";\nexport default task("two", async () => 2);\n');
    writeFileSync(join(folder, "helper.mjs"), "export const help = 1;\n");
    const env = { CONDUCTOR_SERVER_URL: `${stub.url}/api` };
    const worker = startLongshore(["work", "*.mjs"], { cwd: folder, env });
    await worker.printed(/working for .*: one, two/);
    expect((await resultOf(stub, "one")).pid).not.toBe(worker.pid);
    expect(existsSync(join(folder, ".longshore"))).toBe(false);
  });

  it("[C-HND-10] must not have two tasks with the same name, and must not call work() themselves", async () => {
    const folder = temporaryFolder();
    const one = 'import { task } from "longshore";\nexport const one = task("one", async () => 1);\n';
    writeFileSync(join(folder, "a.mjs"), one);
    writeFileSync(join(folder, "b.mjs"), one);
    const twice = await longshore(["work", "a.mjs", "b.mjs", "--conductor"], { cwd: folder });
    expect(twice.code).toBe(2);
    expect(twice.stderr).toContain('two tasks are named "one" (a.mjs and b.mjs)');
    const program = `${one}import { work } from "longshore";\nimport { Loopback } from "longshore/testing";\nawait work({ tasks: [one], on: new Loopback() });\n`;
    writeFileSync(join(folder, "program.mjs"), program);
    const calling = await longshore(["work", "program.mjs", "--conductor"], { cwd: folder });
    expect(calling.code).toBe(2);
    expect(calling.stderr).toMatch(/program\.mjs calls work\(\) while it is loaded for the tasks it exports/);
  });

  it("are used for one server", async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "a.mjs"), 'import { task } from "longshore";\nexport const one = task("one", async () => 1);\n');
    const servers = ["--on", "http://127.0.0.1:9", "--conductor", "http://127.0.0.1:9"];
    const { code, stderr } = await longshore(["work", "a.mjs", ...servers], { cwd: folder });
    expect(code).toBe(2);
    expect(stderr).toContain("--on and --conductor name two servers");
  });
});
