// The list of workers.

import { describe, expect, it } from "vitest";
import { eventually, job, startGraphServer } from "../../support/workflow-graph.ts";

describe("the list of workers", () => {
  it("[G51] shows a worker busy with all jobs it holds, and idle after its reports", async () => {
    const { start, take, complete, fail, workers, post } = await startGraphServer();
    await post("/api/workers/register", { worker_id: "w1", labels: ["x"] });
    await start(job("a"), job("b"));
    const a = await take();
    const b = await take();
    expect(await workers()).toEqual([
      expect.objectContaining({ worker_id: "w1", status: "busy", current_job: "a", current_jobs: ["a", "b"] }),
    ]);
    await complete(a.lease.lease_id);
    expect((await workers())[0]).toMatchObject({ status: "busy", current_job: "b", current_jobs: ["b"] });
    await fail(b.lease.lease_id);
    expect((await workers())[0]).toMatchObject({ status: "idle", current_job: null, current_jobs: [] });
  });

  it("[G51] shows a live worker as idle again when its lease was lost", async () => {
    const { start, take, workers, post, clock } = await startGraphServer();
    await post("/api/workers/register", { worker_id: "w1", labels: [] });
    await start(job("a", { max_lost_leases: 0 }));
    await take({ ttl: 5 });
    await clock.advance(4_000);
    await post("/api/workers/w1/heartbeat");
    await clock.advance(1_000);
    await eventually(async () => (await workers())[0]?.status === "idle");
  });

  it("[G51] shows a worker as offline after three intervals without a request; a heartbeat of its lease counts as a request", async () => {
    const { start, take, workers, heartbeat, post, clock } = await startGraphServer();
    await post("/api/workers/register", { worker_id: "quiet", labels: [] });
    await post("/api/workers/register", { worker_id: "beating", labels: [] });
    await start(job("a"));
    const { lease } = await take({ worker: "beating", ttl: 30 });
    for (let time = 0; time < 3; time++) {
      await clock.advance(10_000);
      expect(await heartbeat(lease.lease_id)).toBe(200);
    }
    const status = Object.fromEntries((await workers()).map((worker) => [worker.worker_id, worker.status]));
    expect(status).toEqual({ quiet: "offline", beating: "busy" });
    await post("/api/workers/quiet/heartbeat");
    expect((await workers()).find((worker) => worker.worker_id === "quiet")?.status).toBe("idle");
  });

  it("[G51] shows a worker as idle that has just reported after a long silence with a long lease", async () => {
    const { start, take, complete, fail, workers, clock } = await startGraphServer();
    await start(job("a"), job("b", { max_retries: 1 }));
    const first = await take({ ttl: 300 });
    await clock.advance(200_000);
    expect((await workers())[0]?.status).toBe("busy");
    await complete(first.lease.lease_id);
    expect((await workers())[0]?.status).toBe("idle");
    const second = await take({ ttl: 300 });
    await clock.advance(200_000);
    await fail(second.lease.lease_id, true);
    expect((await workers())[0]?.status).toBe("idle");
  });

  it("[W-REG-01, W-REG-02] keeps registrations over a restart, under the ids that workers chose", async () => {
    const before = await startGraphServer();
    for (const id of ["worker-abc-123", "w1", "py-0badf00d"])
      await before.post("/api/workers/register", { worker_id: id, labels: ["docker", "linux"] });
    await before.close();
    const after = await startGraphServer({}, before);
    expect((await after.workers()).map(({ worker_id, labels }) => [worker_id, labels])).toEqual([
      ["py-0badf00d", ["docker", "linux"]],
      ["w1", ["docker", "linux"]],
      ["worker-abc-123", ["docker", "linux"]],
    ]);
    expect((await after.post("/api/workers/w1/heartbeat")).status).toBe(200);
  });
});
