import { describe, expect, it } from "vitest";
import { type AdminServer, startAdminServer } from "../../../../test/support/admin.ts";

const json = { "content-type": "application/json" };

async function setup(limits: readonly object[], before?: Pick<AdminServer, "clock" | "data">) {
  const server = await startAdminServer({}, before);
  const { api } = server;
  const steps = [{ id: "a", task: "work", input: null, after: [], limits }];
  await api("POST", "/definitions", { source: { name: "w", steps, output: null } }, json);
  const start = async (count: number) => {
    for (let n = 0; n < count; n++) await api("POST", "/runs", { workflow: "w" });
  };
  const claim = () => server.claim({ labels: ["handler:work"] });
  /** Takes everything that may be taken. */
  const take = async () => {
    const taken: string[] = [];
    for (let claimed = await claim(); claimed !== null; claimed = await claim()) taken.push(claimed.lease.lease_id);
    return taken;
  };
  const limit = async (key: string) => (await api("GET", "/limits")).body.items.find((one: { key: string }) => one.key === key);
  const queue = async () => (await api("GET", "/queues")).body.items.find((one: { lane: string }) => one.lane === "work");
  return { ...server, start, claim, take, limit, queue };
}

describe("a limit", () => {
  it("is listed with its use, and the tasks that wait for it", async () => {
    const { start, take, limit, queue } = await setup([{ key: "bank", held: 2 }]);
    await start(5);
    const [lease = ""] = await take();
    expect(lease).not.toBe("");
    expect(await limit("bank")).toEqual({
      ...{ key: "bank", held: 2, max: 2, rate: null, waiting: 3, lanes: ["work"], freeAt: null, change: null },
    });
    expect(await queue()).toMatchObject({ ready: 0, held: 2, limited: 3, limits: ["bank"], claimedPerMinute: 2 });
  });

  it("of a rate shows when its window has room again", async () => {
    const { start, take, limit, clock, queue } = await setup([{ key: "bank", rate: { count: 2, windowMs: 60_000 } }]);
    await start(3);
    const at = clock.now();
    await take();
    expect(await limit("bank")).toMatchObject({ rate: { count: 2, windowMs: 60_000, used: 2 }, freeAt: at + 60_000, waiting: 1 });
    await clock.advance(60_000);
    expect(await limit("bank")).toMatchObject({ freeAt: null, rate: { used: 0 } });
    expect(await queue()).toMatchObject({ ready: 3, limited: 0, limits: [] });
  });

  it("that an operator raises hands out the tasks that wait, also after a restart; taken back, it is as before", async () => {
    const first = await setup([{ key: "bank", held: 1 }]);
    await first.start(6);
    expect(await first.take()).toHaveLength(1);
    const changed = await first.api("PUT", "/limits/bank", { held: 3, reason: "a second line" }, json);
    expect(changed.body).toMatchObject({ key: "bank", max: 3, held: 1, change: { held: 3, reason: "a second line", by: null } });
    expect(await first.take()).toHaveLength(2);
    await first.close();
    const { api, claim, take, limit, complete, ...second } = await setup([{ key: "bank", held: 1 }], first);
    const leases = (await api("GET", "/workers")).body.items[0].tasks;
    expect(leases).toHaveLength(3);
    expect(await limit("bank")).toMatchObject({ held: 3, max: 3 });
    expect(await claim()).toBeNull();
    await api("PUT", "/limits/bank", { held: null }, json);
    const rest = await take();
    expect(rest).toHaveLength(3);
    expect((await api("DELETE", "/limits/bank")).status).toBe(204);
    expect(await limit("bank")).toMatchObject({ held: 6, max: 1, change: null });
    for (const lease of rest) await complete(lease);
    await second.start(1);
    expect(await claim()).toBeNull();
    const { items } = (await api("GET", "/audit?kind=limit&target=bank")).body;
    expect(items.map(({ verb, was, became }: Record<string, unknown>) => [verb, was, became])).toEqual([
      ["take back", { max: null, rate: null }, { max: 1, rate: null }],
      ["change", { max: 3, rate: null }, { max: null, rate: null }],
      ["change", { max: 1, rate: null }, { max: 3, rate: null }],
    ]);
  });

  it("lowered to 0 hands out nothing, and what is held goes on", async () => {
    const { api, start, claim, take, complete } = await setup([{ key: "bank", held: 2 }]);
    await api("PUT", "/limits/bank", { held: 0 }, json);
    await start(2);
    expect(await claim()).toBeNull();
    await api("PUT", "/limits/bank", { held: 1, rate: { count: 1, windowMs: 60_000 } }, json);
    const [lease = ""] = await take();
    await complete(lease);
    // The rate that was added leaves no room.
    expect(await claim()).toBeNull();
    await api("PUT", "/limits/bank", { held: 1 }, json);
    expect(await take()).toHaveLength(1);
  });

  it("that no task uses is not there, and a change needs a number", async () => {
    const { api } = await setup([]);
    expect((await api("GET", "/limits")).body.items).toEqual([]);
    expect((await api("PUT", "/limits/bank", {}, json)).body.error.field).toBe("held");
    expect((await api("PUT", "/limits/bank", { held: -1 }, json)).body.error.field).toBe("held");
  });
});

describe("a worker", () => {
  it("is listed with its process and its slots, as far as its requests show them", async () => {
    const { api, send } = await setup([]);
    const register = (worker_id: string, agent: string) =>
      send("POST", "/api/workers/register", { headers: { ...json, "user-agent": agent }, body: JSON.stringify({ worker_id, labels: [] }) });
    await register("ours", "longshore/0.1.0 (node 20.20.2; host dock-7; pid 4711; slots 8)");
    await register("py", "python-httpx/0.27.2");
    await register("dock-9-77-0a1b2c3d", "");
    const { items } = (await api("GET", "/workers")).body as { items: { id: string }[] };
    const byId = ["ours", "py", "dock-9-77-0a1b2c3d"].map((id) => items.find((one) => one.id === id));
    expect(byId).toMatchObject([
      { id: "ours", host: "dock-7", pid: 4711, slots: 8, language: "JavaScript", version: "0.1.0" },
      { id: "py", host: null, pid: null, slots: null, language: "Python", version: "0.27.2" },
      { id: "dock-9-77-0a1b2c3d", host: "dock-9", pid: 77, language: "JavaScript" },
    ]);
  });

  it("is listed with what it ended in the last minute, and how long that took", async () => {
    const { api, start, claim, complete, fail, clock } = await setup([]);
    await start(4);
    for (let n = 0; n < 3; n++) {
      const lease = (await claim())?.lease.lease_id ?? "";
      await clock.advance(1_000);
      await complete(lease);
    }
    await fail((await claim())?.lease.lease_id ?? "");
    const figures = async () => (await api("GET", "/workers")).body.items[0];
    expect(await figures()).toMatchObject({ perMinute: 4, failed: 1 });
    expect((await figures()).p95).toBeGreaterThan(500);
    await clock.advance(120_000);
    expect(await figures()).toMatchObject({ perMinute: 0, failed: 1 });
    await clock.advance(900_000);
    expect(await figures()).toMatchObject({ perMinute: 0, failed: 0 });
  });

  it("whose tasks wait for their time leaves them in the queue as delayed", async () => {
    const { api, queue, start } = await setup([]);
    await start(1);
    await api("POST", "/tasks", { task: "work", input: null, delayMs: 60_000 }, json);
    expect(await queue()).toMatchObject({ ready: 1, delayed: 1 });
  });
});
