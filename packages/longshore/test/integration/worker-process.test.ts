// A worker process that receives signals, with real shell commands and a real parent. Commands write files to show their progress, and the
// test ends every wait by a signal or a file, so it measures no time.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ReferenceServer } from "../support/reference-server.ts";
import type { Cost } from "../support/silent-worker.ts";
import { untilElsewhere as until } from "../support/until.ts";

const script = fileURLToPath(new URL("../support/shell-worker.ts", import.meta.url));
let server: ReferenceServer;
let folder: string;
let worker: ChildProcess;

beforeEach(async () => {
  server = await ReferenceServer.start();
  folder = await mkdtemp(join(tmpdir(), "longshore-test-"));
});

/** Starts the worker when its first job is queued, and waits until it has claimed again without a job. */
async function startWorker(): Promise<void> {
  const args = ["--import", "tsx", script, server.url];
  worker = spawn(process.execPath, args, { env: { ...process.env, FOLDER: folder }, stdio: ["ignore", "ignore", "pipe"] });
  // One claim returns the job, one belongs to the helper, and one is the scout's next claim.
  await until(() => server.seen(/\/claim$/).length === 3);
}

afterEach(async () => {
  worker.kill("SIGKILL");
  await server.close();
  await rm(folder, { recursive: true, force: true });
});

const path = (name: string) => join(folder, name);
const written = (name: string) => until(() => existsSync(path(name)) && readFileSync(path(name), "utf8").endsWith("\n"));

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch {
    return false;
  }
}

describe("a worker process", () => {
  it("[G56] on SIGTERM claims no more, finishes running jobs, and ends with code 0", async () => {
    server.enqueue({
      command: "echo started > $FOLDER/started; until [ -e $FOLDER/go ]; do sleep 0.05; done; echo ::set-output v=1",
      job_id: "one",
    });
    await startWorker();
    await written("started");
    const stderr = once(worker.stderr as NodeJS.ReadableStream, "data");
    worker.kill("SIGTERM");
    expect(String((await stderr)[0])).toContain("SIGTERM: stopping");
    server.enqueue({ command: "true", job_id: "two" });
    writeFileSync(path("go"), "");
    const [code] = await once(worker, "exit");
    expect(code).toBe(0);
    expect(server.completed.map(({ job, body }) => [job.job_id, body.outputs])).toEqual([["one", { v: "1" }]]);
    expect(server.failed).toEqual([]);
  });

  it("[G56] on a second SIGTERM ends its commands with all their children and reports them as failures that may be retried", async () => {
    server.enqueue({ command: "sleep 100000 & echo $! > $FOLDER/child; wait", job_id: "long" });
    await startWorker();
    await written("child");
    const child = Number(readFileSync(path("child"), "utf8"));
    const stderr = once(worker.stderr as NodeJS.ReadableStream, "data");
    worker.kill("SIGTERM");
    await stderr;
    expect(alive(child)).toBe(true);
    const exit = once(worker, "exit");
    // Repeats the signal until it has an effect, because one that comes at once counts as a duplicate of the first.
    const impatient = setInterval(() => alive(child) && worker.kill("SIGTERM"), 50);
    await until(() => !alive(child));
    clearInterval(impatient);
    const [code] = await exit;
    expect(code).toBe(0);
    expect(server.failed.map(({ body }) => body)).toEqual([{ error: "The worker is shutting down.", retryable: true }]);
    expect(alive(child)).toBe(false);
  });

  it("[G57] uses less than one percent of a minute for a silent command: a known number of calls, and nothing in between", async () => {
    // `read` on a pipe without a writer waits in the kernel until the test opens the other end.
    server.enqueue({ command: "mkfifo $FOLDER/gate; echo $$ > $FOLDER/pid; read line < $FOLDER/gate; echo heard $line", job_id: "silent" });
    const args = ["--import", "tsx", fileURLToPath(new URL("../support/silent-worker.ts", import.meta.url)), server.url];
    worker = spawn(process.execPath, args, { env: { ...process.env, FOLDER: folder }, stdio: ["ignore", "ignore", "inherit", "ipc"] });
    await written("pid");
    const advance = async (ms: number): Promise<Cost> => {
      const answer = once(worker, "message");
      worker.send(ms);
      return (await answer)[0] as Cost;
    };
    const command = readFileSync(path("pid"), "utf8").trim();
    const [before, ticksBefore] = [await advance(0), cpuTicks(command)];
    const beats = /^\/api\/jobs\/[^/]+\/heartbeat$/;
    const asked = () => server.seen(beats).length + server.seen(/\/cancelled$/).length;
    const askedBefore = asked();
    let after = before;
    for (let round = 0; round < 6; round++) {
      // Time continues only after the response to the heartbeat. Otherwise the lease would end before the network's turn.
      const beat = server.next(beats);
      for (let second = 0; second < 10; second++) after = await advance(1_000);
      await beat;
    }
    // 60 checks of the event loop, 30 cancel polls, 6 heartbeats of the lease, 6 of the worker.
    expect(after.fired - before.fired).toBeLessThanOrEqual(60 + 30 + 6 + 6);
    expect(asked() - askedBefore).toBeLessThanOrEqual(30 + 6);
    // A busy loop has tens of thousands of turns a second. Each timer, call and message takes a few turns.
    expect(after.turns - before.turns).toBeLessThanOrEqual(20 * 60);
    expect(after.cpuMs - before.cpuMs).toBeLessThanOrEqual(600);
    expect(cpuTicks(command) - ticksBefore).toBeLessThanOrEqual(1);
    expect(server.chunks).toEqual([]);
    appendFileSync(path("gate"), "go\n");
    await until(() => server.completed.length === 1);
    expect(server.chunks.map(({ data }) => data)).toEqual(["heard go\n"]);
  });
});

/** Processor time that the kernel has counted for a process, in its own ticks. */
function cpuTicks(pid: string): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return Number(fields[11]) + Number(fields[12]);
}
