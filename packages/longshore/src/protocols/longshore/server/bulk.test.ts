import { describe, expect, it } from "vitest";
import { startAdminServer, startOnSmallDisk } from "../../../../test/support/admin.ts";

const json = { "content-type": "application/json" };
const step = { id: "a", task: "work", input: null, after: [] };

async function setup(options: object = {}, headers: Record<string, string> = json) {
  const server = await startAdminServer(options);
  const api = (method: string, path: string, body?: unknown) => server.api(method, path, body, headers);
  await api("POST", "/definitions", { source: { name: "w", steps: [step], output: null } });
  const start = async (count: number, input: unknown = null) => {
    const ids: string[] = [];
    for (let n = 0; n < count; n++) ids.push((await api("POST", "/runs", { workflow: "w", input })).body.id);
    return ids;
  };
  const order = async (body: object) => (await api("POST", "/bulk?waitMs=30000", body)).body;
  const counts = async () => {
    const { items } = (await api("GET", "/counts?by=state")).body;
    return Object.fromEntries(items.map(({ state, count }: { state: string; count: number }) => [state, count]));
  };
  return { ...server, api, start, order, counts };
}

describe("an order to many runs", () => {
  it("reaches every matching run, and omits the others with the reason", async () => {
    const { start, order, counts, api } = await setup();
    const ids = await start(450);
    await order({ action: "cancel", ids: ids.slice(0, 30) });
    const dry = await order({ action: "cancel", filter: { workflow: "w" }, dry: true });
    expect(dry).toMatchObject({ state: "done", dry: true, done: 420, skipped: { "has ended": 30 }, refused: 0 });
    expect(await counts()).toEqual({ running: 420, cancelled: 30 });
    const job = await order({ action: "cancel", filter: { workflow: "w" }, reason: "a wrong release" });
    expect(job).toMatchObject({ state: "done", dry: false, done: 420, skipped: { "has ended": 30 }, looked: 450, caller: null });
    expect(await counts()).toEqual({ cancelled: 450 });
    expect((await api("GET", `/runs/${ids[300]}`)).body.error).toBe("a wrong release");
    expect((await api("GET", `/bulk/${job.id}`)).body).toEqual(job);
    expect((await api("GET", "/bulk?limit=2")).body.items.map(({ id }: { id: string }) => id)).toEqual([job.id, dry.id]);
  });

  it("has the effect that the dry run has counted, for each action", async () => {
    const { start, order, counts } = await setup();
    const ids = await start(6);
    const both = async (action: string, filter: object) => {
      const { done, skipped } = await order({ action, filter, dry: true });
      const job = await order({ action, filter });
      expect([job.done, job.skipped]).toEqual([done, skipped]);
      return [done, await counts()];
    };
    expect(await both("pause", { where: [] })).toEqual([6, { paused: 6 }]);
    expect(await both("resume", { state: "paused" })).toEqual([6, { running: 6 }]);
    await order({ action: "cancel", ids: ids.slice(0, 2) });
    expect(await both("retry", {})).toEqual([2, { running: 6 }]);
    expect(await both("cancel", {})).toEqual([6, { cancelled: 6 }]);
    expect(await both("rerun", { state: "cancelled" })).toEqual([6, { cancelled: 6, running: 6 }]);
    expect(await both("remove", { workflow: "w" })).toEqual([6, { running: 6 }]);
  });

  it("accepts the filters of the list of runs, and orders at most as many runs as its limit", async () => {
    const { start, order, counts, api } = await setup();
    await start(5, { customer: "Ada" });
    await start(5, { customer: "Bob" });
    expect(await order({ action: "cancel", filter: { where: "input.customer:Ada" }, limit: 3 })).toMatchObject({ state: "done", done: 3 });
    expect(await counts()).toEqual({ running: 7, cancelled: 3 });
    const refused = async (body: object) => (await api("POST", "/bulk", body)).body.error;
    expect(await refused({ action: "cancel", filter: { colour: "red" } })).toMatchObject({ field: "filter.colour" });
    expect(await refused({ action: "cancel", filter: { limit: "3" } })).toMatchObject({ field: "filter.limit" });
    expect(await refused({ action: "cancel" })).toMatchObject({ field: "ids" });
    expect(await refused({ action: "explode", ids: ["a"] })).toMatchObject({ field: "action" });
    expect((await api("GET", "/bulk/none")).status).toBe(404);
  });

  it("has an entry in the audit for the job and for each run, with the caller", async () => {
    const headers = { ...json, authorization: "Bearer operator-secret-0123456789" };
    const { start, order, api } = await setup({ tokens: ["operator:operator-secret-0123456789:anna"] }, headers);
    const [run = ""] = await start(2);
    const { id } = await order({ action: "cancel", filter: {}, reason: "why" });
    expect((await api("GET", `/audit?kind=run&target=${run}`)).body.items).toMatchObject([
      { verb: "cancel", caller: "anna", via: `bulk ${id}`, reason: "why" },
    ]);
    expect((await api("GET", "/audit?kind=bulk")).body.items).toMatchObject([
      { target: id, verb: "cancel", caller: "anna", reason: "why" },
    ]);
  });

  it("can be stopped between two runs, and does not exceed its rate", async () => {
    const { start, order, counts, api, clock } = await setup();
    await start(40);
    const { id } = (await api("POST", "/bulk", { action: "cancel", filter: {}, perSecond: 5 })).body;
    const cancelled = async (count: number) => {
      while ((await counts()).cancelled !== count) await new Promise((resolve) => setImmediate(resolve));
    };
    await cancelled(5);
    await clock.advance(1_000);
    await cancelled(10);
    expect((await api("DELETE", `/bulk/${id}`)).body).toMatchObject({ state: "stopped", done: 10 });
    await clock.advance(10_000);
    expect(await counts()).toEqual({ running: 30, cancelled: 10 });
    expect(await order({ action: "cancel", filter: {} })).toMatchObject({ done: 30 });
  });

  it("continues when the store can be written again", async () => {
    const { api, disk, clock } = await startOnSmallDisk();
    await api("POST", "/definitions", { source: { name: "w", steps: [step], output: null } }, json);
    for (let n = 0; n < 50; n++) await api("POST", "/runs", { workflow: "w" });
    const { id } = (await api("POST", "/bulk", { action: "cancel", filter: {}, perSecond: 20 })).body;
    const running = async () =>
      ((await api("GET", "/counts")).body.items.find((one: { state: string }) => one.state === "running")?.count ?? 0) as number;
    while ((await running()) > 30) await new Promise((resolve) => setImmediate(resolve));
    disk.full = true;
    const before = disk.refusals;
    while (disk.refusals === before) await clock.advance(1_000);
    disk.full = false;
    let job = (await api("GET", `/bulk/${id}`)).body;
    while (job.state === "running") {
      await clock.advance(1_000);
      job = (await api("GET", `/bulk/${id}`)).body;
    }
    expect(job).toMatchObject({ state: "done", done: 50, skipped: {}, refused: 0 });
    expect(await running()).toBe(0);
  });
});
