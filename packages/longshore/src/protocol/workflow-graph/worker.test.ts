// The worker half against a reference-shaped server, over real sockets. Time is a test's own clock, so a lease of 30 s is over when the
// test says so; everything else is waited for by watching what the server saw.

import { describe, expect, it } from "vitest";
import { ReferenceServer } from "../../../test/support/reference-server.ts";
import { deferred, until } from "../../../test/support/until.ts";
import type { Context } from "../../context.ts";
import type { LongshoreError } from "../../errors.ts";
import type { Notice } from "../../runner/notices.ts";
import { type Task, task } from "../../task.ts";
import { TestClock } from "../../testing/clock.ts";
import { type WorkHandle, work } from "../../work.ts";
import { type WorkflowGraphOptions, workflowGraph } from "./index.ts";

const claimPath = /^\/api\/jobs\/claim$/;
const registerPath = /^\/api\/workers\/register$/;
const heartbeatPath = /^\/api\/jobs\/[^/]+\/heartbeat$/;
const logsPath = /^\/api\/jobs\/[^/]+\/logs$/;
const cancelledPath = /^\/api\/jobs\/[^/]+\/[^/]+\/cancelled$/;
const completePath = /^\/api\/jobs\/[^/]+\/complete$/;
const reportPath = /^\/api\/jobs\/[^/]+\/(complete|fail)$/;

interface Setup extends AsyncDisposable {
  readonly server: ReferenceServer;
  readonly clock: TestClock;
  readonly worker: WorkHandle;
  readonly notices: Notice[];
}

async function setup(options: {
  tasks?: Task[];
  jobs?: Parameters<ReferenceServer["enqueue"]>[0][];
  wire?: WorkflowGraphOptions;
  additions?: boolean;
  slots?: number;
  before?: (server: ReferenceServer) => void;
}): Promise<Setup> {
  const server = await ReferenceServer.start({ additions: options.additions ?? false });
  options.before?.(server);
  for (const job of options.jobs ?? []) server.enqueue(job);
  const clock = new TestClock();
  const notices: Notice[] = [];
  const worker = await work({
    tasks: options.tasks ?? [],
    on: workflowGraph(server.url, { workerId: "w1", ...options.wire }),
    slots: options.slots ?? 1,
    signals: false,
    clock,
    logger: (notice) => void notices.push(notice),
  });
  return {
    server,
    clock,
    worker,
    notices,
    async [Symbol.asyncDispose]() {
      await worker.stop({ force: true });
      await server.close();
    },
  };
}

/** A task whose handler the test holds in its hand. */
function heldTask(name = "held") {
  const started = deferred<Context>();
  const result = deferred<unknown>();
  const value = task(name, async (_input: unknown, ctx) => {
    started.resolve(ctx);
    return result.promise;
  });
  return { task: value, started: started.promise, resolve: result.resolve, reject: result.reject };
}

function aborted(signal: AbortSignal): Promise<LongshoreError> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason);
    else signal.addEventListener("abort", () => resolve(signal.reason), { once: true });
  });
}

/** A task that ends, by throwing the reason, when its signal aborts. */
function obedientTask(name = "held") {
  const started = deferred<Context>();
  const value = task(name, async (_input: unknown, ctx) => {
    started.resolve(ctx);
    throw await aborted(ctx.signal);
  });
  return { task: value, started: started.promise };
}

describe("registering and claiming", () => {
  it("[W-GEN-03, W-LOOP-01] registers, claims, executes, reports, and claims again without a pause", async () => {
    const echo = task("echo", (input: unknown) => input as object);
    await using s = await setup({ tasks: [echo], before: (server) => server.enqueue({ command: "@echo", job_id: "only" }) });
    const { server } = s;
    await until(() => server.seen(claimPath).length > 1);
    const order = server.requests.map((request) => request.path.replace(/\/jobs\/[^/]{36}\//, "/jobs/LEASE/"));
    expect(order.slice(0, 4)).toEqual(["/api/workers/register", "/api/jobs/claim", "/api/jobs/LEASE/complete", "/api/jobs/claim"]);
  });

  it("[W-REG-01, W-REG-02, W-REG-03] registers with its own id and its labels, as JSON", async () => {
    const greet = task("greet", () => null, { labels: ["gpu"] });
    await using s = await setup({ tasks: [greet], wire: { workerId: "worker-abc-123", labels: ["docker", "linux"] } });
    const request = s.server.seen(registerPath)[0] ?? (await s.server.next(registerPath));
    expect(request.method).toBe("POST");
    expect(request.headers["content-type"]).toBe("application/json");
    expect(request.body).toEqual({ worker_id: "worker-abc-123", labels: ["docker", "linux", "gpu", "handler:greet"] });
  });

  it("chooses an id of its own that differs from every other worker's", async () => {
    await using server = await ReferenceServer.start();
    const ids = new Set<string>();
    for (let count = 0; count < 2; count++) {
      const registered = server.next(registerPath);
      const worker = await work({ tasks: [], on: workflowGraph(server.url), signals: false, logger: false });
      ids.add(((await registered).body as { worker_id: string }).worker_id);
      await worker.stop();
    }
    expect(ids.size).toBe(2);
  });

  it("[W-CLAIM-05] waits the poll interval after an empty answer, and not longer", async () => {
    await using s = await setup({ wire: { poll: "2s" } });
    const { server, clock } = s;
    await until(() => server.seen(claimPath).length > 0);
    await clock.armed(2_200);
    await clock.advance(1_700);
    expect(server.seen(claimPath)).toHaveLength(1);
    const second = server.next(claimPath);
    await clock.advance(600);
    expect((await second).status).toBe(200);
  });

  it("claims with its labels, its id and the term of the lease, and without a wait that the server does not offer", async () => {
    await using s = await setup({ wire: { labels: ["linux"], leaseTtl: "60s" } });
    const request = s.server.seen(claimPath)[0] ?? (await s.server.next(claimPath));
    expect(request.body).toEqual({ worker_id: "w1", labels: ["linux"], lease_ttl_secs: 60 });
  });

  it("lets an empty claim wait at a server that offers it, and takes what comes meanwhile at once", async () => {
    const echo = task("echo", () => ({ ok: true }));
    await using s = await setup({ tasks: [echo], additions: true });
    const { server } = s;
    const reported = server.next(completePath);
    await until(() => server.seen(registerPath).length > 0);
    server.enqueue({ command: "@echo" });
    await reported;
    expect(server.seen(claimPath)[0]?.body).toMatchObject({ wait_secs: 30 });
  });

  it("fills every free slot when there is work, and takes no more than that", async () => {
    const running: (() => void)[] = [];
    const slow = task("slow", () => new Promise<null>((resolve) => running.push(() => resolve(null))));
    await using s = await setup({ tasks: [slow], slots: 3, jobs: Array.from({ length: 5 }, () => ({ command: "@slow" })) });
    const { server, worker } = s;
    await until(() => running.length === 3);
    expect(worker.status().slots).toEqual({ total: 3, free: 0 });
    expect(server.leases).toHaveLength(3);
    running[0]?.();
    await until(() => running.length === 4);
    expect(server.leases).toHaveLength(3);
    running[1]?.();
    running[2]?.();
    await until(() => running.length === 5);
    running[3]?.();
    running[4]?.();
    await until(() => server.completed.length === 5);
  });

  it("registers before its first claim is sent and again after the server was away", async () => {
    await using s = await setup({ wire: { poll: "1s" } });
    const { server, clock, notices } = s;
    await until(() => server.seen(claimPath).length > 0);
    await server.close();
    await clock.armed(1_100);
    await clock.advance(1_200);
    await until(() => notices.length > 0);
    await server.listen();
    const claimed = server.next(claimPath);
    while (server.seen(registerPath).length < 2) await clock.advance(1_000);
    await claimed;
    await until(() => notices.length > 1);
    expect(notices.map((notice) => notice.level)).toEqual(["warn", "info"]);
    expect(notices[0]?.message).toContain("claim fails, trying on");
    expect(notices[1]?.message).toContain("claim works again after");
  });

  it("[G60] registers again when the server answers the worker's heartbeat with 404", async () => {
    await using s = await setup({ wire: { workerHeartbeat: "10s" } });
    const { server, clock } = s;
    await until(() => server.seen(claimPath).length > 0);
    server.forgetWorkers();
    const again = server.next(registerPath);
    await clock.advance(10_000);
    await again;
    expect(server.workers.has("w1")).toBe(true);
  });

  it("tells a wrong token by name and never the token itself", async () => {
    await using s = await setup({ wire: { token: "s3cret" }, before: (server) => server.misbehave(registerPath, 401) });
    const { server, notices } = s;
    await until(() => notices.length > 0);
    expect(server.requests[0]?.headers.authorization).toBe("Bearer s3cret");
    expect(notices[0]?.message).toContain("401");
    expect(JSON.stringify(notices)).not.toContain("s3cret");
  });
});

describe("lease", () => {
  it("[W-LEASE-02, W-EXEC-03] beats with no body and no content type while the handler runs", async () => {
    const held = heldTask();
    await using s = await setup({ tasks: [held.task], jobs: [{ command: "@held" }], wire: { cancelPoll: "1h" } });
    await held.started;
    for (let count = 0; count < 3; count++) {
      const beat = s.server.next(heartbeatPath);
      await s.clock.advance(10_000);
      const request = await beat;
      expect(request.method).toBe("POST");
      expect(request.text).toBe("");
      expect(request.headers["content-type"]).toBeUndefined();
    }
    held.resolve(null);
    await s.server.next(completePath);
  });

  it("[W-LEASE-03] beats at a third of the lease's term, and refuses a heartbeat that would come too late", async () => {
    const held = heldTask();
    await using s = await setup({ tasks: [held.task], jobs: [{ command: "@held" }], wire: { leaseTtl: "6s" } });
    await held.started;
    const beat = s.server.next(heartbeatPath);
    await s.clock.advance(2_000);
    await beat;
    held.resolve(null);
    expect(() => workflowGraph("http://localhost:1", { leaseTtl: "5s", heartbeat: "5s" })).toThrow(/expected less than leaseTtl/);
    expect(() => workflowGraph("http://localhost:1", { leaseTtl: "60s", heartbeat: "20s" })).toThrow(/at most 10000 ms/);
  });

  it("never pauses longer than 10 s between beats, however long the lease is", async () => {
    const held = heldTask();
    await using s = await setup({ tasks: [held.task], jobs: [{ command: "@held" }], wire: { leaseTtl: "300s" } });
    await held.started;
    const beat = s.server.next(heartbeatPath);
    await s.clock.advance(10_000);
    await beat;
    held.resolve(null);
  });

  it("[W-LEASE-05, G52] a heartbeat answered 409 aborts the handler's signal and nothing is reported", async () => {
    const obedient = obedientTask();
    await using s = await setup({ tasks: [obedient.task], jobs: [{ command: "@held" }] });
    const ctx = await obedient.started;
    s.server.expireLeases();
    const beat = s.server.next(heartbeatPath);
    await s.clock.advance(10_000);
    expect((await beat).status).toBe(409);
    expect((await aborted(ctx.signal)).code).toBe("LONGSHORE_LEASE_LOST");
    await s.worker.stop();
    expect(s.server.seen(reportPath)).toEqual([]);
    expect(s.worker.status().counts.lost).toBe(1);
  });

  it("[G53] heartbeats that do not get through are repeated until the lease would be over by the worker's own clock, then it aborts", async () => {
    const obedient = obedientTask();
    await using s = await setup({
      tasks: [obedient.task],
      jobs: [{ command: "@held" }],
      wire: { cancelPoll: "1h", workerHeartbeat: "1h" },
    });
    const ctx = await obedient.started;
    s.server.misbehave(heartbeatPath, "cut");
    let beat = s.server.next(heartbeatPath);
    await s.clock.advance(10_000);
    await beat;
    // Each failed beat arms the next one a second later, once its failure has been read from the socket; the other timer within that
    // second watches the event loop.
    for (let count = 0; count < 10; count++) {
      await s.clock.armed(1_000, 2);
      beat = s.server.next(heartbeatPath);
      await s.clock.advance(1_000);
      await beat;
    }
    expect(ctx.signal.aborted).toBe(false);
    await s.clock.advance(10_000);
    expect((await aborted(ctx.signal)).code).toBe("LONGSHORE_LEASE_LOST");
    await s.worker.stop();
    expect(s.server.seen(reportPath)).toEqual([]);
  });

  it("a heartbeat that gets through again keeps the job alive", async () => {
    const held = heldTask();
    await using s = await setup({ tasks: [held.task], jobs: [{ command: "@held" }], wire: { cancelPoll: "1h" } });
    await held.started;
    s.server.misbehave(heartbeatPath, 503, 2);
    for (const ms of [10_000, 1_000, 1_000]) {
      await s.clock.armed(ms, 2);
      const beat = s.server.next(heartbeatPath);
      await s.clock.advance(ms);
      await beat;
    }
    held.resolve({ fine: "yes" });
    await s.server.next(completePath);
    expect(s.server.completed[0]?.body).toEqual({ outputs: { fine: "yes" } });
  });
});

describe("cancel", () => {
  it("[W-CAN-01, W-CAN-02] asks every two seconds during execution and goes on when the answer is false", async () => {
    const held = heldTask();
    await using s = await setup({ tasks: [held.task], jobs: [{ command: "@held", workflow_id: "wf 1", job_id: "a/b" }] });
    const ctx = await held.started;
    for (let count = 0; count < 3; count++) {
      await s.clock.armed(2_000);
      const asked = s.server.next(cancelledPath);
      await s.clock.advance(2_000);
      const request = await asked;
      expect(request.method).toBe("GET");
      expect(request.path).toBe("/api/jobs/wf%201/a%2Fb/cancelled");
    }
    expect(ctx.signal.aborted).toBe(false);
    held.resolve(null);
    await s.server.next(completePath);
  });

  it("[W-CAN-03, G54] a cancelled job is aborted and reported as failed, not retryable, with the text cancelled", async () => {
    const obedient = obedientTask();
    await using s = await setup({ tasks: [obedient.task], jobs: [{ command: "@held", job_id: "j" }] });
    const ctx = await obedient.started;
    s.server.cancel("wf", "j");
    const reported = s.server.next(reportPath);
    await s.clock.armed(2_000);
    await s.clock.advance(2_000);
    expect((await aborted(ctx.signal)).code).toBe("LONGSHORE_CANCELLED");
    await reported;
    expect(s.server.failed[0]?.body).toEqual({ error: "cancelled", retryable: false });
  });

  it("does not ask at all where heartbeat answers carry the cancel, and notices it as soon", async () => {
    const obedient = obedientTask();
    await using s = await setup({ tasks: [obedient.task], jobs: [{ command: "@held", job_id: "j" }], additions: true });
    await obedient.started;
    s.server.cancel("wf", "j");
    const reported = s.server.next(reportPath);
    const beat = s.server.next(heartbeatPath);
    await s.clock.advance(2_000);
    expect((await beat).headers.accept).toBe("application/json");
    await reported;
    expect(s.server.seen(cancelledPath)).toEqual([]);
    expect(s.server.failed[0]?.body).toEqual({ error: "cancelled", retryable: false });
  });
});

describe("logs", () => {
  it("[W-LOG-01, W-LOG-02] pushes batches with ids, a sequence from 0, text with its newline, time and stream", async () => {
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

  it("[G58] reports the result though every log push fails, and keeps a bounded backlog meanwhile", async () => {
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
  it("[W-DONE-01] reports texts as they are and other values as JSON", async () => {
    const build = task("build", () => ({ artifact_url: "s3://bucket/build.tar.gz", size: 12, tags: ["a"], none: null }));
    await using s = await setup({ tasks: [build], jobs: [{ command: "@build" }] });
    await until(() => s.server.completed.length > 0);
    expect(s.server.completed[0]?.body).toEqual({
      outputs: { artifact_url: "s3://bucket/build.tar.gz", size: "12", tags: '["a"]', none: "null" },
    });
  });

  it("[W-FAIL-01, W-FAIL-02] what a handler throws is a failure that may be tried again", async () => {
    const flaky = task("flaky", () => {
      throw new Error("connection reset", { cause: new Error("ECONNRESET") });
    });
    await using s = await setup({ tasks: [flaky], jobs: [{ command: "@flaky" }] });
    await until(() => s.server.failed.length > 0);
    expect(s.server.failed[0]?.body).toEqual({ error: "connection reset\ncaused by: ECONNRESET", retryable: true });
  });

  it("[W-FAIL-03] a TerminalError is a permanent failure", async () => {
    const { TerminalError } = await import("../../errors.ts");
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

  it("[G55] a report that does not get through is repeated with growing pauses until it does", async () => {
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

  it("gives a report up when the lease has run out, frees the slot and goes on", async () => {
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

  it("counts a repeat that the server answers 200 as delivered, when the first answer was lost on the way", async () => {
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

describe("what a handler sees", () => {
  it("[W-EXEC-02] gives upstream outputs to the handler, in its input and in its context", async () => {
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

  it("has ids, the attempt and a key that stays the same over attempts", async () => {
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

  it("waits in its slot for a deferral, which this protocol cannot carry, and calls the handler again", async () => {
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
