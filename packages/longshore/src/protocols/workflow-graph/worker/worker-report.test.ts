// The logs and reports that the worker half sends, and what its handlers receive.

import { describe, expect, it } from "vitest";
import { claimPath, completePath, heartbeatPath, heldTask, logsPath, setup } from "../../../../test/support/reference-worker.ts";
import { deferred, until } from "../../../../test/support/until.ts";
import type { Context } from "../../../core/context.ts";
import { TerminalError } from "../../../core/errors.ts";
import { task } from "../../../core/task.ts";

describe("logs", () => {
  it("[W-LOG-01, W-LOG-02, W-EXEC-03] pushes batches with ids, a sequence from 0, text with its newline, time and stream", async () => {
    const held = heldTask();
    await using s = await setup({ tasks: [held.task], jobs: [{ command: "@held", job_id: "build", workflow_id: "wf-uuid" }] });
    const ctx = await held.started;
    const now = s.clock.now();
    ctx.log("Compiling workflow-graph v0.1.0");
    ctx.log("warning: unused\n", "stderr");
    expect(s.server.seen(logsPath)).toEqual([]);
    const pushed = s.server.next(logsPath);
    await s.clock.advance(500);
    expect((await pushed).headers["content-type"]).toBe("application/json");
    ctx.log({ level: "info", done: 3 });
    held.resolve(null);
    await s.server.next(completePath);
    expect(s.server.seen(logsPath)).toHaveLength(2);
    const ids = { workflow_id: "wf-uuid", job_id: "build" };
    expect(s.server.chunks).toEqual([
      { ...ids, sequence: 0, data: "Compiling workflow-graph v0.1.0\n", timestamp_ms: now, stream: "stdout" },
      { ...ids, sequence: 1, data: "warning: unused\n", timestamp_ms: now, stream: "stderr" },
      { ...ids, sequence: 2, data: '{"level":"info","done":3}\n', timestamp_ms: now + 500, stream: "stdout" },
    ]);
  });

  it("sends 64 KB at once without waiting for the interval", async () => {
    const held = heldTask();
    await using s = await setup({ tasks: [held.task], jobs: [{ command: "@held" }] });
    const ctx = await held.started;
    const pushed = s.server.next(logsPath);
    ctx.log("x".repeat(70_000));
    await pushed;
    held.resolve(null);
    await s.server.next(completePath);
    expect(s.server.chunks.map((chunk) => chunk.data).join("")).toBe(`${"x".repeat(70_000)}\n`);
  });

  it("[G58] reports the result although every log push fails, and keeps a bounded backlog", async () => {
    const held = heldTask();
    await using s = await setup({ tasks: [held.task], jobs: [{ command: "@held" }] });
    const ctx = await held.started;
    s.server.misbehave(logsPath, 503);
    for (let line = 0; line < 30; line++) ctx.log(`${line}:${"x".repeat(60_000)}`);
    const reported = s.server.next(completePath);
    held.resolve({ ok: "1" });
    await reported;
    await s.worker.stop();
    const sent = s.server.seen(logsPath).map((request) => request.text.length);
    expect(Math.max(...sent)).toBeLessThan(100_000);
    expect(s.worker.status().counts.logLinesDropped).toBeGreaterThanOrEqual(30);
    expect(s.notices.map((notice) => notice.message).join("\n")).toMatch(/Lost.* log lines of task "held"/);
  });
});

describe("report", () => {
  it("[W-DONE-01] reports texts unchanged and other values as JSON", async () => {
    const build = task("build", () => ({ artifact_url: "s3://bucket/build.tar.gz", size: 12, tags: ["a"], none: null }));
    await using s = await setup({ tasks: [build], jobs: [{ command: "@build" }] });
    await until(() => s.server.completed.length > 0);
    expect(s.server.completed[0]?.body).toEqual({
      outputs: { artifact_url: "s3://bucket/build.tar.gz", size: "12", tags: '["a"]', none: "null" },
    });
  });

  it("[W-FAIL-01, W-FAIL-02] an error that a handler throws is a failure that may be retried", async () => {
    const flaky = task("flaky", () => {
      throw new Error("connection reset", { cause: new Error("ECONNRESET") });
    });
    await using s = await setup({ tasks: [flaky], jobs: [{ command: "@flaky" }] });
    await until(() => s.server.failed.length > 0);
    expect(s.server.failed[0]?.body).toEqual({ error: "connection reset\ncaused by: ECONNRESET", retryable: true });
  });

  it("[W-FAIL-03] a TerminalError is a permanent failure", async () => {
    const broken = task("broken", () => {
      throw new TerminalError("no such customer");
    });
    await using s = await setup({ tasks: [broken], jobs: [{ command: "@broken" }] });
    await until(() => s.server.failed.length > 0);
    expect(s.server.failed[0]?.body).toEqual({ error: "no such customer", retryable: false });
  });

  it("cuts a long error to 4096 characters and keeps its head and its tail", async () => {
    const loud = task("loud", () => {
      throw new Error(`BEGIN${"x".repeat(10_000)}END`);
    });
    await using s = await setup({ tasks: [loud], jobs: [{ command: "@loud" }] });
    await until(() => s.server.failed.length > 0);
    const error = s.server.failed[0]?.body.error as string;
    expect(error).toHaveLength(4_096);
    expect(error.startsWith("BEGIN")).toBe(true);
    expect(error.endsWith("END")).toBe(true);
  });

  it("[G55] a report that fails is repeated with growing pauses until it succeeds", async () => {
    const quick = task("quick", () => ({ v: "1" }));
    await using s = await setup({
      tasks: [quick],
      jobs: [{ command: "@quick" }],
      before: (server) => server.misbehave(completePath, "cut", 3),
    });
    while (s.server.completed.length === 0) {
      await s.clock.armed(10_000);
      await s.clock.advance(100);
    }
    expect(s.server.seen(completePath)).toHaveLength(4);
    expect(new Set(s.server.seen(completePath).map((request) => request.headers["idempotency-key"])).size).toBe(1);
    expect(s.server.completed[0]?.body).toEqual({ outputs: { v: "1" } });
  });

  it("[G55] gives up a report when the lease has ended, frees the slot and continues", async () => {
    const quick = task("quick", () => ({ v: "1" }));
    await using s = await setup({
      tasks: [quick],
      jobs: [{ command: "@quick" }],
      before: (server) => {
        server.misbehave(completePath, "cut");
        server.misbehave(heartbeatPath, "cut");
      },
    });
    while (s.worker.status().counts.lost === 0) {
      await s.clock.armed(10_000);
      await s.clock.advance(1_000);
    }
    expect(s.server.seen(completePath).length).toBeGreaterThan(3);
    expect(s.server.completed).toEqual([]);
    await until(() => s.server.seen(claimPath).length > 1);
  });

  it("reports a final failure that names the limit when the server refuses the result as too large", async () => {
    const large = task("large", () => ({ v: "x" }));
    await using s = await setup({ tasks: [large], jobs: [{ command: "@large" }], before: (server) => server.misbehave(completePath, 413) });
    await until(() => s.server.failed.length > 0);
    expect(s.server.failed[0]?.body.retryable).toBe(false);
    expect(s.server.failed[0]?.body.error).toContain("too large");
  });

  it("counts a repeated report with the response 200 as delivered when the first response was lost", async () => {
    const quick = task("quick", () => null);
    await using s = await setup({
      tasks: [quick],
      jobs: [{ command: "@quick" }],
      additions: true,
      before: (server) => server.misbehave(completePath, "lose", 1),
    });
    while (s.worker.status().counts.done === 0) await s.clock.advance(50);
    expect(s.server.seen(completePath).map((request) => request.status)).toEqual([0, 200]);
    expect(s.server.completed).toHaveLength(1);
  });
});

describe("a handler", () => {
  it("[W-EXEC-02] gets upstream outputs in its input and in its context", async () => {
    const seen: unknown[] = [];
    const join = task("join", (input: unknown, ctx) => {
      seen.push(input, ctx.upstream);
      return null;
    });
    const upstream_outputs = { a: { v: "1" }, b: {} };
    await using s = await setup({ tasks: [join], jobs: [{ command: '{"handler":"join","input":{"x":1}}', upstream_outputs }] });
    await until(() => s.server.completed.length > 0);
    expect(seen).toEqual([{ x: 1, upstreamOutputs: upstream_outputs }, upstream_outputs]);
  });

  it("gets ids, the attempt, and a key that is the same in every attempt", async () => {
    const seen: Context[] = [];
    const look = task("look", (_input: unknown, ctx) => {
      seen.push(ctx);
      return null;
    });
    const job = { command: "@look", job_id: "j", workflow_id: "w" };
    await using s = await setup({ tasks: [look], jobs: [job, { ...job, attempt: 1 }] });
    await until(() => s.server.completed.length === 2);
    expect(seen.map((ctx) => ctx.attempt)).toEqual([1, 2]);
    expect(seen.map((ctx) => ctx.idempotencyKey)).toEqual(["w/j", "w/j"]);
    expect(seen[0]?.ids).toMatchObject({ runId: "w", stepId: "j", taskId: "w/j" });
    expect(seen[0]?.ids.grantId).not.toBe(seen[1]?.ids.grantId);
  });

  it("keeps its slot during a deferral, because this protocol has none, and is called again", async () => {
    const calls: unknown[] = [];
    const called = deferred<void>();
    const later = task("later", (_input: unknown, ctx) => {
      called.resolve();
      calls.push([ctx.attempt, ctx.deferrals, ctx.deferred]);
      return ctx.deferrals === 0 ? ctx.defer("15s", { page: 2 }) : { done: "yes" };
    });
    await using s = await setup({ tasks: [later], jobs: [{ command: "@later" }] });
    await called.promise;
    const beat = s.server.next(heartbeatPath);
    await s.clock.advance(10_000);
    await beat;
    const reported = s.server.next(completePath);
    await s.clock.advance(5_000);
    await reported;
    expect(calls).toEqual([
      [1, 0, undefined],
      [1, 1, { page: 2 }],
    ]);
    expect(s.server.completed[0]?.body).toEqual({ outputs: { done: "yes" } });
  });
});
