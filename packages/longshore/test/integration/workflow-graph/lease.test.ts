// The life of a lease, by the server's clock.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { eventually, job, startGraphServer } from "../../support/workflow-graph.ts";

describe("a lease", () => {
  it("[W-LEASE-03, G23] is renewed by its own term: after a single heartbeat at 100 s, a lease of 300 s lasts until 400 s", async () => {
    const { start, take, heartbeat, complete, clock } = await startGraphServer();
    await start(job("a"));
    const { lease } = await take({ ttl: 300 });
    await clock.advance(100_000);
    expect(await heartbeat(lease.lease_id)).toBe(200);
    await clock.advance(299_000);
    expect(await complete(lease.lease_id)).toBe(200);
  });

  it("[W-LEASE-05, G24] ends at the stored time, before any timer has fired", async () => {
    const { start, take, heartbeat, complete, fail, clock } = await startGraphServer();
    await start(job("a"), job("b"), job("c"));
    const [a, b, c] = [await take(), await take(), await take()].map(({ lease }) => lease.lease_id) as [string, string, string];
    // Time passes without any timer firing, as when the process was stopped.
    clock.jump(30_000);
    expect(await heartbeat(a)).toBe(409);
    expect(await complete(b)).toBe(409);
    expect(await fail(c, true)).toBe(409);
  });

  it("is valid until that time", async () => {
    const { start, take, heartbeat, clock } = await startGraphServer();
    await start(job("a"));
    const { lease } = await take({ ttl: 30 });
    clock.jump(29_999);
    expect(await heartbeat(lease.lease_id)).toBe(200);
  });

  it("[W-PY-04, G25] that has ended allows no request, and the next attempt is not affected", async () => {
    const { start, take, claim, heartbeat, complete, fail, job: jobOf, clock } = await startGraphServer();
    const id = await start(job("a", { max_lost_leases: 1 }));
    const old = (await take({ worker: "w1" })).lease.lease_id;
    await clock.advance(30_000);
    await eventually(async () => (await jobOf(id, "a")).status === "queued");
    const next = await take({ worker: "w2" });
    expect(next.job.attempt).toBe(1);
    expect(next.lease.lease_id).not.toBe(old);
    expect([await heartbeat(old), await complete(old), await fail(old, true)]).toEqual([409, 409, 409]);
    expect(await jobOf(id, "a")).toMatchObject({ status: "running", attempt: 1 });
    expect(await claim()).toBeNull();
    expect(await complete(next.lease.lease_id)).toBe(200);
    expect(await jobOf(id, "a")).toMatchObject({ status: "success", attempt: 1 });
  });

  it("[G26] that ends without remaining retries fails its job and skips dependent jobs", async () => {
    const { start, take, claim, workflow, clock } = await startGraphServer();
    const id = await start(job("a", { max_lost_leases: 0, max_retries: 3 }), job("b", { depends_on: ["a"] }));
    await take();
    await clock.advance(30_000);
    await eventually(async () => (await workflow(id)).jobs[0]?.status !== "running");
    expect((await workflow(id)).jobs.map(({ status, output }) => [status, output])).toEqual([
      ["failure", "lease expired"],
      ["skipped", null],
    ]);
    expect(await claim()).toBeNull();
  });

  it("may be lost once by default, without using the retries of its job", async () => {
    const { start, take, fail, job: jobOf, clock } = await startGraphServer();
    const id = await start(job("a", { max_retries: 1 }));
    await take();
    await clock.advance(30_000);
    await eventually(async () => (await jobOf(id, "a")).status === "queued");
    await fail((await take()).lease.lease_id, true);
    expect((await take()).job.attempt).toBe(2);
    await clock.advance(30_000);
    await eventually(async () => (await jobOf(id, "a")).status === "failure");
    expect((await jobOf(id, "a")).output).toBe("lease expired");
  });

  it("[G27] of 0 or 2^63 seconds lasts a second or a day, and other leases still expire", async () => {
    const { send, start, take, job: jobOf, clock } = await startGraphServer();
    const id = await start(job("a"), job("b"), job("c"));
    const claimRaw = async (ttl: string) => {
      const body = `{"worker_id":"w","labels":[],"lease_ttl_secs":${ttl}}`;
      const answer = await send("POST", "/api/jobs/claim", { headers: { "content-type": "application/json" }, body });
      return JSON.parse(answer.text) as { lease: { ttl_secs: number; expires_at_ms: number } };
    };
    expect((await claimRaw("9223372036854775808")).lease).toMatchObject({ ttl_secs: 86_400, expires_at_ms: clock.now() + 86_400_000 });
    expect((await claimRaw("0")).lease.ttl_secs).toBe(1);
    await take({ ttl: 2 });
    await clock.advance(1_000);
    await eventually(async () => (await jobOf(id, "b")).status === "queued");
    await clock.advance(1_000);
    await eventually(async () => (await jobOf(id, "c")).status === "queued");
    expect((await jobOf(id, "a")).status).toBe("running");
  });

  it("[G29] of a worker that was killed ends on time, and its job runs again", async () => {
    const { url, start, take, complete, job: jobOf, clock } = await startGraphServer();
    const id = await start(job("a"));
    const program = `
      const answer = await fetch("${url}/api/jobs/claim", { method: "POST", headers: { "content-type": "application/json" },
        body: JSON.stringify({ worker_id: "doomed", labels: [], lease_ttl_secs: 60 }) });
      process.stdout.write((await answer.json()).job.job_id);
      setInterval(() => {}, 1000);`;
    const worker = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: ["ignore", "pipe", "inherit"] });
    const [claimed] = (await once(worker.stdout, "data")) as [Buffer];
    expect(claimed.toString()).toBe("a");
    worker.kill("SIGKILL");
    await once(worker, "exit");
    await clock.advance(59_999);
    expect((await jobOf(id, "a")).status).toBe("running");
    await clock.advance(1);
    await eventually(async () => (await jobOf(id, "a")).status === "queued");
    const again = await take({ worker: "w2" });
    expect(again.job.attempt).toBe(1);
    expect(await complete(again.lease.lease_id)).toBe(200);
  });
});
