import { describe, expect, it } from "vitest";
import { type AdminServer, startAdminServer, startOnSmallDisk } from "../../../../test/support/admin.ts";
import { job } from "../../../../test/support/workflow-graph.ts";

const tokens = ["operator:operator-secret-0123456789:anna", "read:reader-secret-0123456789:rea", "worker:worker-secret-0123456789:wes"];
const bearer = (scope: string) => ({ authorization: `Bearer ${scope}-secret-0123456789`, "content-type": "application/json" });
const prefix = "/api/longshore/v1";
const steps = [
  { id: "a", task: "work", input: null, after: [] },
  { id: "go", signal: "go", input: null, after: [] },
];

/** A server with tokens, and what its operator does. */
async function setup(before?: Pick<AdminServer, "clock" | "data">, options: object = {}) {
  const server = await startAdminServer({ tokens, ...options }, before);
  const order = (method: string, path: string, body?: unknown) => server.api(method, path, body, bearer("operator"));
  const audit = async (query = "") => (await server.api("GET", `/audit${query}`, undefined, bearer("reader"))).body;
  const define = (more: object = {}) =>
    order("POST", "/definitions", { source: { name: "w", steps: steps.slice(0, 1), output: null, ...more } });
  const start = async () => (await order("POST", "/runs", { workflow: "w" })).body.id as string;
  return { ...server, order, audit, define, start };
}

describe("the audit", () => {
  it("has each order to a run with its caller, its reason, and the changes", async () => {
    const { order, audit, define, start, clock } = await setup();
    await define();
    const run = await start();
    await order("POST", `/runs/${run}/pause`, {});
    await order("POST", `/runs/${run}/resume`, {});
    await order("POST", `/runs/${run}/cancel`, { reason: "a typo" });
    await order("POST", `/runs/${run}/retry`, {});
    await order("POST", `/runs/${run}/cancel`, {});
    await order("POST", `/runs/${run}/rerun`, { from: "a" });
    await order("POST", `/runs/${run}/cancel`, {});
    const { id: another } = (await order("POST", `/runs/${run}/rerun`, {})).body;
    await order("DELETE", `/runs/${run}`);
    const { items } = await audit(`?kind=run&target=${run}`);
    expect(items.map(({ verb }: { verb: string }) => verb).reverse()).toEqual(
      ...[["pause", "resume", "cancel", "retry", "cancel", "rerun", "cancel", "rerun", "remove"]],
    );
    expect(items.at(-3)).toEqual({
      ...{ number: expect.any(Number), at: clock.now(), caller: "anna", via: `POST ${prefix}/runs/:id/cancel` },
      ...{ verb: "cancel", kind: "run", target: run, was: { state: "running" }, became: { state: "cancelled" }, reason: "a typo" },
    });
    expect(items.at(-6)).toMatchObject({ was: { state: "cancelled", retries: 1 }, became: { state: "running", retries: 2, step: "a" } });
    expect(items[1].became).toMatchObject({ run: another });
  });

  it("has no entry for an order that changes nothing, is dry, or is refused", async () => {
    const { order, audit, define, start, api } = await setup();
    await define();
    const run = await start();
    await order("POST", `/runs/${run}/cancel`, { dry: true });
    await api("POST", `/runs/${run}/cancel`, {}, bearer("reader"));
    await order("POST", `/runs/${run}/restart`, {});
    await order("POST", `/runs/${run}/cancel`, {});
    await order("POST", `/runs/${run}/cancel`, {});
    await define();
    expect((await audit()).items.map(({ verb }: { verb: string }) => verb)).toEqual(["cancel", "define"]);
  });

  it("has orders to queues, workers, schedules and tasks, signals, and definitions of every protocol", async () => {
    const { order, audit, define, start, send } = await setup();
    await define({ steps });
    await define();
    await order("POST", "/queues/pause", { lane: "work", labels: ["gpu"], reason: "a broken bank" });
    await order("POST", "/queues/resume", { lane: "work", labels: ["gpu"] });
    await order("POST", "/workers/w1/cordon", { reason: "old" });
    await order("POST", "/workers/w1/uncordon");
    await order("PUT", "/schedules/s", { workflow: "w", every: "1h" });
    await order("PUT", "/schedules/s", { workflow: "w", every: "2h" });
    await order("POST", "/schedules/s/pause", { reason: "holidays" });
    await order("DELETE", "/schedules/s");
    const run = await start();
    await order("POST", `/tasks/${run}.0/cancel`);
    await order("POST", "/definitions", { source: { name: "v", steps: steps.slice(1), output: null } });
    const { id } = (await order("POST", "/runs", { workflow: "v" })).body;
    await order("POST", `/runs/${id}/signals`, { name: "go", value: "secret" });
    const body = JSON.stringify({
      name: "c",
      version: 1,
      tasks: [{ name: "t", taskReferenceName: "t", type: "SIMPLE" }],
      schemaVersion: 2,
    });
    await send("POST", "/api/metadata/workflow", { headers: bearer("operator"), body });
    const { items } = await audit();
    const texts = items.map(({ verb, kind, target }: Record<string, string>) => `${verb} ${kind} ${target}`).reverse();
    expect(texts.slice(0, 11)).toEqual([
      ...["define definition w", "define definition w", "pause queue work [gpu]", "resume queue work [gpu]", "cordon worker w1"],
      ...["uncordon worker w1", "create schedule s", "change schedule s", "pause schedule s", "remove schedule s", `cancel task ${run}.0`],
    ]);
    expect(texts.slice(11)).toEqual([
      "define definition v",
      `signal run ${id}`,
      "keep document conductor-workflow c",
      "define definition c",
    ]);
    expect(items.at(-2)).toMatchObject({ was: { version: 1 }, became: { version: 2 } });
    expect(items.at(-8)).toMatchObject({
      was: { when: expect.stringContaining("3600000") },
      became: { when: expect.stringContaining("7200000") },
    });
    expect(items.at(-3).reason).toBe("a broken bank");
    expect(JSON.stringify(items)).not.toContain("secret");
  });

  it("has the orders of other protocols with the same verbs", async () => {
    const { create, audit, send, order } = await setup(undefined, { tokens: [] });
    const workflow = await create(job("a"));
    const { id } = (await order("POST", "/runs", { workflow })).body;
    await send("PUT", `/api/workflow/${id}/pause`, {});
    await send("POST", `/api/workflows/${workflow}/cancel`, {});
    const { items } = await audit(`?kind=run&target=${id}`);
    expect(items.map(({ verb, via, caller }: Record<string, unknown>) => [verb, via, caller])).toEqual([
      ["cancel", "POST /api/workflows/:workflow/cancel", null],
      ["pause", "PUT /api/workflow/:workflow/pause", null],
    ]);
  });

  it("has the orders of the server's own program", async () => {
    const { server, define, start, audit } = await setup();
    await define();
    const run = await start();
    await server.run(run).cancel("not needed");
    expect((await audit("?verb=cancel")).items).toMatchObject([{ via: "program", caller: null, reason: "not needed", target: run }]);
  });

  it("is read in pages and by filters, and survives a restart", async () => {
    const first = await setup();
    await first.define();
    const runs: string[] = [];
    for (let n = 0; n < 5; n++) {
      runs.push(await first.start());
      await first.clock.advance(1_000);
      await first.order("POST", `/runs/${runs[n]}/cancel`, {});
    }
    await first.close();
    const { audit, order, clock } = await setup(first);
    const page = await audit("?kind=run&limit=2");
    const rest = await audit(`?kind=run&limit=10&before=${page.next}`);
    expect([...page.items, ...rest.items].map(({ target }: { target: string }) => target)).toEqual([...runs].reverse());
    expect([page.items.length, rest.next]).toEqual([2, null]);
    expect((await audit("?caller=anna")).items).toHaveLength(6);
    expect((await audit("?caller=nobody")).items).toEqual([]);
    expect((await audit(`?since=${clock.now() - 1_500}&verb=cancel`)).items).toHaveLength(2);
    expect((await audit(`?until=${clock.now() - 3_500}&verb=cancel`)).items).toHaveLength(1);
    await order("POST", `/queues/pause`, { lane: "work" });
    expect((await audit("?limit=1")).items[0].number).toBe(7);
    expect((await order("GET", "/audit?target=x")).body.error.field).toBe("query.target");
  });

  it("keeps entries up to the number and age of the retention", async () => {
    const { order, audit, clock } = await setup(undefined, { retention: { audit: { count: 3, ageMs: 120_000 } } });
    const start = clock.now();
    for (let n = 0; n < 3; n++) {
      await order("POST", "/queues/pause", { lane: `q${n}` });
      await order("POST", "/queues/resume", { lane: `q${n}` });
    }
    await clock.advance(60_000);
    await until(async () => (await audit()).items.length === 3);
    expect((await audit()).items.map(({ number }: { number: number }) => number)).toEqual([6, 5, 4]);
    await until(async () => {
      await clock.advance(60_000);
      return (await audit()).items.length === 0;
    });
    expect(clock.now() - start).toBeGreaterThanOrEqual(180_000);
  });

  it("has no entry for an order that could not be stored", async () => {
    const { api, disk, clock } = await startOnSmallDisk();
    await api("POST", "/queues/pause", { lane: "a" });
    disk.full = true;
    expect((await api("POST", "/queues/pause", { lane: "b" })).status).toBe(503);
    disk.full = false;
    await clock.advance(1_000);
    expect((await api("POST", "/queues/pause", { lane: "c" })).status).toBe(200);
    const { items } = (await api("GET", "/audit")).body;
    expect(items.map(({ target, number }: Record<string, unknown>) => [target, number])).toEqual([
      ["c", 2],
      ["a", 1],
    ]);
  });
});

describe("tokens", () => {
  it("are listed with their scopes and their last use, without secrets", async () => {
    const { api } = await setup();
    const { body } = await api("GET", "/tokens", undefined, bearer("reader"));
    expect(body.items).toEqual([
      { name: "anna", scopes: ["operator"], usedAt: null },
      { name: "rea", scopes: ["read"], usedAt: expect.any(Number) },
      { name: "wes", scopes: ["worker"], usedAt: null },
    ]);
    expect(JSON.stringify(body)).not.toContain("secret");
    expect((await api("GET", "/tokens", undefined, bearer("worker"))).status).toBe(403);
  });
});

describe("the preview of retention", () => {
  it("counts the runs that other limits would remove, and removes none", async () => {
    const { order, define, start, clock } = await setup();
    await define();
    for (let n = 0; n < 4; n++) {
      await order("POST", `/runs/${await start()}/cancel`, {});
      await clock.advance(60_000);
    }
    const pruning = async (query: string) => (await order("GET", `/retention${query}`)).body;
    expect(await pruning("")).toEqual({ runs: 0, of: 4 });
    expect(await pruning("?keepMs=150000")).toEqual({ runs: 2, of: 4 });
    expect(await pruning("?keepRuns=1")).toEqual({ runs: 3, of: 4 });
    expect((await order("GET", "/info")).body.counts.endedRuns).toBe(4);
  });
});

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setImmediate(resolve));
}
