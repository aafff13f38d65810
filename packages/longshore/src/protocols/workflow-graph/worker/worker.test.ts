// How the worker half gets work and keeps it: registering, claiming, leases and cancels.

import { describe, expect, it } from "vitest";
import { ReferenceServer } from "../../../../test/support/reference-server.ts";
import {
  aborted,
  cancelledPath,
  claimPath,
  completePath,
  heartbeatPath,
  heldTask,
  obedientTask,
  registerPath,
  reportPath,
  setup,
} from "../../../../test/support/reference-worker.ts";
import { until } from "../../../../test/support/until.ts";
import { task } from "../../../core/task.ts";
import { work } from "../../../work.ts";
import { workflowGraph } from "./index.ts";

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

  it("chooses a random id, different from every other worker's", async () => {
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

  it("[W-CLAIM-05] waits exactly the poll interval after an empty response", async () => {
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

  it("claims with its labels, its id and the term of the lease, and requests no wait that the server does not offer", async () => {
    await using s = await setup({ wire: { labels: ["linux"], leaseTtl: "60s" } });
    const request = s.server.seen(claimPath)[0] ?? (await s.server.next(claimPath));
    expect(request.body).toEqual({ worker_id: "w1", labels: ["linux"], lease_ttl_secs: 60 });
  });

  it("lets an empty claim wait at a server that offers it, and takes new work at once", async () => {
    const echo = task("echo", () => ({ ok: true }));
    await using s = await setup({ tasks: [echo], additions: true });
    const { server } = s;
    const reported = server.next(completePath);
    await until(() => server.seen(registerPath).length > 0);
    server.enqueue({ command: "@echo" });
    await reported;
    expect(server.seen(claimPath)[0]?.body).toMatchObject({ wait_secs: 30 });
  });

  it("fills every free slot when there is work, and takes no more", async () => {
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

  it("registers before its first claim and again after the server was down", async () => {
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

  it("sends no heartbeat after its stop, also when one was open", async () => {
    await using s = await setup({ wire: { workerHeartbeat: "10s" } });
    await until(() => s.server.seen(claimPath).length > 0);
    await s.clock.advance(10_000);
    await s.worker.stop();
    await s.clock.advance(0);
    expect(s.clock.pending).toBe(0);
    expect(s.notices.filter(({ message }) => message.includes("heartbeat"))).toEqual([]);
  });

  it("reports a wrong token by name and never the token itself", async () => {
    await using s = await setup({ wire: { token: "s3cret" }, before: (server) => server.misbehave(registerPath, 401) });
    const { server, notices } = s;
    await until(() => notices.length > 0);
    expect(server.requests[0]?.headers.authorization).toBe("Bearer s3cret");
    expect(notices[0]?.message).toContain("401");
    expect(JSON.stringify(notices)).not.toContain("s3cret");
  });
});

describe("lease", () => {
  it("[W-LEASE-02, W-EXEC-03] sends heartbeats without a body and a content type while the handler runs", async () => {
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

  it("[W-LEASE-03] sends heartbeats at a third of the lease's term, and refuses a longer interval", async () => {
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

  it("never pauses longer than 10 s between heartbeats, for any lease", async () => {
    const held = heldTask();
    await using s = await setup({ tasks: [held.task], jobs: [{ command: "@held" }], wire: { leaseTtl: "300s" } });
    await held.started;
    const beat = s.server.next(heartbeatPath);
    await s.clock.advance(10_000);
    await beat;
    held.resolve(null);
  });

  it("[W-LEASE-05, G52] the response 409 to a heartbeat aborts the handler's signal, and nothing is reported", async () => {
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

  it("[G53] failed heartbeats are repeated until the lease has ended by the worker's own clock, then the handler is aborted", async () => {
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
    // Each failed heartbeat sets the timer of the next one to a second later, after its failure was read from the socket. The other timer in
    // this second watches the event loop.
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

  it("a heartbeat that succeeds again keeps the job alive", async () => {
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
  it("[W-CAN-01, W-CAN-02, W-EXEC-03] polls every two seconds during execution, and continues when the response is false", async () => {
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

  it("does not poll when responses to heartbeats contain the cancel, and notices it as early", async () => {
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
