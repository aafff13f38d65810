// Several worker processes as one worker, whose events arrive here. Real processes with a stub as their server.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Listeners } from "../../src/index.ts";
import type { SuperviseOptions } from "../../src/runner/supervise/supervise.ts";
import { supervising, workerChild } from "../support/built.ts";
import { temporaryFolder } from "../support/cli.ts";
import { anyPoll, ConductorStub, pollOf, refusal } from "../support/conductor-stub.ts";
import { untilElsewhere as until } from "../support/until.ts";

const tasksModule = `
import { task, TerminalError } from "longshore";
export const where = task("where", async () => ({ pid: process.pid }));
export const fails = task("fails", async () => { throw new TerminalError("never"); });
export const leaves = task("leaves", async () => process.exit(9));
`;

async function setup(tasks: readonly string[], options: Partial<SuperviseOptions> = {}) {
  const stub = await ConductorStub.start();
  onTestFinished(() => stub.close());
  const folder = temporaryFolder();
  const file = join(folder, "tasks.mjs");
  writeFileSync(file, tasksModule);
  const settings = { protocol: "conductor", on: stub.url };
  const lines: string[] = [];
  const started = supervising.supervise({
    workers: tasks.map((name) => ({ tasks: [name], work: { files: [file], tasks: [name], functions: [], settings } })),
    entry: workerChild,
    signals: false,
    logger: ({ message }) => void lines.push(message),
    ...options,
  });
  return { stub, file, started, lines };
}

describe("supervised processes", () => {
  it("[C-HND-06] send their events to the listeners of their supervisor, with errors as errors", async () => {
    const seen: { name: string; event: Record<string, unknown> }[] = [];
    const names = ["pollStarted", "pollCompleted", "pollFailed", "executionStarted", "executionCompleted", "executionFailed"] as const;
    const all: Listeners = Object.fromEntries(names.map((name) => [name, (event: object) => seen.push({ name, event: { ...event } })]));
    const throwing: Listeners = {
      executionStarted: () => {
        throw new Error("a listener's own mistake");
      },
    };
    const { stub, started, lines } = await setup(["where", "fails"], { listeners: [all, throwing] });
    await using worker = await started;
    expect(worker.isHealthy()).toBe(true);
    stub.enqueue("where");
    stub.enqueue("fails");
    await until(() => stub.results.length === 2);
    stub.misbehave(anyPoll, refusal(500, "out of order"), 2);
    await until(() => names.every((name) => seen.some((each) => each.name === name)));
    const first = (name: string) => seen.find((each) => each.name === name)?.event;
    expect(first("pollStarted")).toMatchObject({
      task: expect.any(String),
      worker: expect.any(String),
      count: 1,
      atMs: expect.any(Number),
    });
    expect(first("pollCompleted")).toMatchObject({ durationMs: expect.any(Number), received: expect.any(Number) });
    expect(first("pollFailed")).toMatchObject({ durationMs: expect.any(Number), error: expect.any(Error) });
    expect(first("executionStarted")).toMatchObject({
      ids: { taskId: expect.any(String), runId: expect.any(String) },
      worker: expect.any(String),
    });
    expect(first("executionCompleted")).toMatchObject({ task: "where", outputBytes: expect.any(Number) });
    expect(first("executionFailed")).toMatchObject({ task: "fails", retryable: false, error: { name: "TerminalError", message: "never" } });
    expect(lines.join("\n")).toContain("a listener's own mistake");
  });

  it("[C-HND-04, C-HND-08, C-ARCH-02] are listed by task, have their own connections, and end at the end of the block that declares them", async () => {
    const { stub, started } = await setup(["where", "fails"]);
    let pids: (number | undefined)[] = [];
    {
      await using worker = await started;
      await stub.next(pollOf("where"));
      await stub.next(pollOf("fails"));
      pids = Object.values(worker.workers()).map(({ pid }) => pid);
      expect(Object.keys(worker.workers())).toEqual(["where", "fails"]);
      expect(new Set([process.pid, ...pids]).size).toBe(3);
      // This process has opened no connection: each belongs to a child process, which opened it after its start.
      expect(await stub.connections()).toBeGreaterThanOrEqual(2);
    }
    for (const pid of pids) expect(() => process.kill(pid as number, 0)).toThrow("ESRCH");
  });

  it("[C-MET-08, C-SUP-04] count the restarts for each task, and stop after the allowed number", async () => {
    const { stub, started, lines } = await setup(["leaves"], { metrics: true, restarts: { maxAttempts: 1, backoff: 0, interval: 100 } });
    await using worker = await started;
    for (let count = 0; count < 2; count++) {
      stub.enqueue("leaves");
      await until(() => lines.filter((line) => line.includes("ended with exit code 9")).length === count + 1);
    }
    await until(() => lines.some((line) => line.includes("is given up")));
    expect(worker.isHealthy()).toBe(false);
    expect(worker.workers().leaves).toMatchObject({ alive: false, exitCode: 9, restarts: 1 });
    expect(worker.metrics()).toContain('worker_restart_total{task_type="leaves"} 1\n');
  });

  it("that cannot use their options end the start with their error", async () => {
    const { started } = await setup(["where", "nobody"]);
    await expect(started).rejects.toThrow(/no longer exports everything of nobody/);
  });
});
