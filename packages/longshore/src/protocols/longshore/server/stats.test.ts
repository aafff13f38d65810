import { describe, expect, it } from "vitest";
import { type AdminServer, startAdminServer } from "../../../../test/support/admin.ts";
import { job } from "../../../../test/support/workflow-graph.ts";

async function setup() {
  const server = await startAdminServer();
  const { api, create } = server;
  const one = await create(job("a"));
  const two = await create(job("b"));
  const start = async (workflow: string) => (await api("POST", "/runs", { workflow })).body.id as string;
  return { ...server, one, two, start };
}

async function failed({ take, fail }: Pick<AdminServer, "take" | "fail">, error: string): Promise<void> {
  await fail((await take()).lease.lease_id, false, error);
}

describe("numbers of runs", () => {
  it("are kept by state and by workflow, for every event of a run", async () => {
    const server = await setup();
    const { api, one, two, start, take, complete } = server;
    const counts = async (by: string) => (await api("GET", `/counts?by=${by}`)).body;
    const done = await start(one);
    await complete((await take()).lease.lease_id);
    const bad = await start(two);
    await failed(server, "no");
    await start(two);
    expect(await counts("state,workflow")).toEqual({
      items: expect.arrayContaining([
        { workflow: one, state: "succeeded", count: 1 },
        { workflow: two, state: "failed", count: 1 },
        { workflow: two, state: "running", count: 1 },
      ]),
      total: 3,
      left: 0,
    });
    await api("POST", `/runs/${bad}/retry`);
    expect((await counts("workflow")).items).toEqual([
      { workflow: two, count: 2 },
      { workflow: one, count: 1 },
    ]);
    expect((await counts("state")).items).toEqual([
      { state: "running", count: 2 },
      { state: "succeeded", count: 1 },
    ]);
    await fetch(`${server.url}/api/workflow/${done}/remove`, { method: "DELETE" });
    expect((await counts("state")).items).toEqual([{ state: "running", count: 2 }]);
  });

  it("include the runs from before a restart", async () => {
    const before = await setup();
    await before.start(before.one);
    await failed(before, "ECONNREFUSED 10.0.0.1:4500");
    await before.start(before.two);
    await before.clock.advance(1_000);
    await before.close();
    const { api } = await startAdminServer({}, before);
    expect((await api("GET", "/counts")).body.items).toEqual(
      expect.arrayContaining([
        { state: "failed", count: 1 },
        { state: "running", count: 1 },
      ]),
    );
    expect((await api("GET", "/errors")).body.items).toMatchObject([{ count: 1, workflows: [before.one] }]);
  });
});

describe("figures over time", () => {
  it("count what happened in each sample, and show what was true at its end", async () => {
    const server = await setup();
    const { api, one, start, clock, take, complete } = server;
    await api("GET", "/stats");
    await start(one);
    await clock.advance(2_000);
    const { lease } = await take();
    await clock.advance(1_000);
    await complete(lease.lease_id);
    await clock.advance(1_000);
    const { body } = await api("GET", "/stats");
    const sum = (values: number[]) => values.reduce((all, value) => all + value, 0);
    expect(sum(body.counts.started)).toBe(1);
    expect(sum(body.counts.claimed)).toBe(1);
    expect(sum(body.counts.succeeded)).toBe(1);
    expect(body.counts.started).toHaveLength(body.gauges.held.length);
    expect(Math.max(...body.gauges.ready)).toBe(1);
    expect(body.gauges.ready.at(-1)).toBe(0);
    expect(Math.max(...body.gauges.held)).toBe(1);
    // Within a bucket of powers of two.
    const [wait] = body.times.wait.p50.filter((ms: number | null) => ms !== null);
    expect(wait).toBeGreaterThanOrEqual(1_024);
    expect(wait).toBeLessThanOrEqual(2_048);
    const of = await api("GET", `/stats?window=6h&workflow=${one}`);
    expect(sum(of.body.counts.succeeded)).toBe(1);
    expect(of.body.stepMs).toBe(300_000);
    const lane = await api("GET", "/stats?window=7d&lane=$command");
    expect(sum(lane.body.counts.claimed)).toBe(1);
  });

  it("of a name that has none are not found", async () => {
    const { api } = await startAdminServer();
    expect((await api("GET", "/stats?lane=nothing")).status).toBe(404);
    expect((await api("GET", "/stats?lane=a&workflow=b")).body.error.field).toBe("query.workflow");
    expect((await api("GET", "/stats?window=1y")).body.error.field).toBe("query.window");
  });
});

describe("groups of errors", () => {
  it("have what the errors of failed runs have in common, and the newest run", async () => {
    const server = await setup();
    const { api, create, one, two, start, clock } = server;
    await start(one);
    await failed(server, "ECONNREFUSED 10.0.0.1:4500");
    const other = await create(job("a"));
    await start(other);
    await failed(server, "ECONNREFUSED 10.0.0.2:4501");
    await clock.advance(2 * 3_600_000);
    const last = await start(two);
    await failed(server, "No customer 'Ann'");
    const { body } = await api("GET", "/errors?window=24h");
    expect(body.runs).toBe(3);
    expect(body.items).toMatchObject([
      { count: 1, runId: last, workflows: [two] },
      { count: 2, workflows: [one, other], error: "step a failed: ECONNREFUSED 10.0.0.2:4501" },
    ]);
    expect((await api("GET", "/errors?window=1h")).body.items).toHaveLength(1);
  });
});

describe("the figures of seven days", () => {
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

  it("are kept over a restart", async () => {
    const first = await startAdminServer();
    const workflow = await first.create(job("a"));
    const started = async ({ api }: AdminServer) => {
      const { body } = await api("GET", "/stats?window=7d");
      return { runs: sum(body.counts.started), claimed: sum(body.counts.claimed), samples: body.counts.started.length };
    };
    for (let minute = 0; minute < 6; minute++) {
      await first.api("POST", "/runs", { workflow });
      await first.complete((await first.take()).lease.lease_id);
      await first.clock.advance(60_000);
    }
    await first.close();
    await first.clock.advance(3_600_000);
    const second = await startAdminServer({}, first);
    expect(await started(second)).toEqual({ runs: 6, claimed: 6, samples: expect.any(Number) });
    expect((await second.api("GET", "/stats?window=15m")).body.counts.started.length).toBe(1);
    await second.api("POST", "/runs", { workflow });
    await second.close();
    const third = await startAdminServer({}, first);
    expect(await started(third)).toMatchObject({ runs: 7, claimed: 6 });
    expect((await started(third)).samples).toBeGreaterThanOrEqual(13);
  });
});
