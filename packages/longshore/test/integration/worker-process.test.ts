// A worker process under signals, with real shell commands and a real parent. Commands say where they are by writing files, and the
// test ends every wait by a signal or a file, so no time is measured.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ReferenceServer } from "../support/reference-server.ts";
import { until } from "../support/until.ts";

const script = fileURLToPath(new URL("../support/shell-worker.ts", import.meta.url));
let server: ReferenceServer;
let folder: string;
let worker: ChildProcess;

beforeEach(async () => {
  server = await ReferenceServer.start();
  folder = await mkdtemp(join(tmpdir(), "longshore-test-"));
});

/** Starts the worker when its first job is there, and waits until it has looked for more and found none. */
async function startWorker(): Promise<void> {
  const args = ["--import", "tsx", script, server.url];
  worker = spawn(process.execPath, args, { env: { ...process.env, FOLDER: folder }, stdio: ["ignore", "ignore", "pipe"] });
  // One claim brings the job, one is its helper's, one is the scout's next.
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
  it("[G56] on SIGTERM claims no more, finishes what runs, and ends with code 0", async () => {
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

  it("[G56] on a second SIGTERM ends its commands with all their children and reports them as failures that may be tried again", async () => {
    server.enqueue({ command: "sleep 100000 & echo $! > $FOLDER/child; wait", job_id: "long" });
    await startWorker();
    await written("child");
    const child = Number(readFileSync(path("child"), "utf8"));
    const stderr = once(worker.stderr as NodeJS.ReadableStream, "data");
    worker.kill("SIGTERM");
    await stderr;
    expect(alive(child)).toBe(true);
    const exit = once(worker, "exit");
    // Again until it helps, as an impatient person would: one that comes at once passes for an echo of the first.
    const impatient = setInterval(() => alive(child) && worker.kill("SIGTERM"), 50);
    await until(() => !alive(child));
    clearInterval(impatient);
    const [code] = await exit;
    expect(code).toBe(0);
    expect(server.failed.map(({ body }) => body)).toEqual([{ error: "The worker is shutting down.", retryable: true }]);
    expect(alive(child)).toBe(false);
  });
});
