import { describe, expect, it } from "vitest";
import { startAdminServer } from "../../../../test/support/admin.ts";
import { job } from "../../../../test/support/workflow-graph.ts";
import { uuidOf } from "../../../core/ids.ts";

describe("summaries of runs", () => {
  it("have no data, and what a table shows", async () => {
    const { api, create, take, fail, clock } = await startAdminServer();
    const workflow = await create(job("a"));
    const { id } = (await api("POST", "/runs", { workflow, input: { secret: "data" } })).body;
    await clock.advance(1_500);
    await fail((await take()).lease.lease_id, false, "ECONNREFUSED");
    const { body } = await api("GET", "/runs?view=summary");
    expect(body).toMatchObject({ next: null, looked: 1, of: 1 });
    expect(body.items).toMatchObject([
      { id, workflow, state: "failed", durationMs: 1_500, steps: 1, failed: 1, dialect: "workflow-graph" },
    ]);
    expect(body.items[0].firstError).toContain("ECONNREFUSED");
    expect(JSON.stringify(body)).not.toContain("secret");
  });

  it("are filtered by several states and workflows at once, page by page", async () => {
    const { api, create, take, complete, fail } = await startAdminServer();
    const one = await create(job("a"));
    const two = await create(job("b"));
    const start = async (workflow: string) => (await api("POST", "/runs", { workflow })).body.id as string;
    const done = await start(one);
    await complete((await take()).lease.lease_id);
    const failed = await start(two);
    await fail((await take()).lease.lease_id);
    const open = await start(one);
    const idsOf = async (query: string) => {
      const ids: string[] = [];
      for (let before = ""; ; ) {
        const { body } = await api("GET", `/runs?view=summary&limit=1&${query}${before}`);
        ids.push(...body.items.map((run: { id: string }) => run.id));
        if (body.next === null) return ids;
        before = `&before=${encodeURIComponent(body.next)}`;
      }
    };
    expect(await idsOf(`workflow=${one},${two}`)).toEqual([open, failed, done]);
    expect(await idsOf("state=failed,succeeded")).toEqual([failed, done]);
    expect(await idsOf("state=failed,running")).toEqual([open, failed]);
    expect(await idsOf(`state=failed&workflow=${one}`)).toEqual([]);
    expect(await idsOf("dialect=workflow-graph&minMs=0&text=GRAPH")).toEqual([]);
    expect(await idsOf(`parent=${uuidOf(open)}`)).toEqual([]);
    expect(await idsOf("createdAfter=1&createdBefore=9999999999999&endedAfter=1&endedBefore=9999999999999")).toEqual([failed, done]);
  });

  it("find runs by values in their inputs, all of which must match", async () => {
    const { api, create } = await startAdminServer();
    const workflow = await create(job("a"));
    const start = async (input: unknown) => (await api("POST", "/runs", { workflow, input })).body.id;
    const first = await start({ customer: { id: 17 }, url: "http://a:80" });
    await start({ customer: { id: 17 }, url: "http://b:80" });
    const found = async (...where: string[]) => {
      const query = where.map((one) => `&where=${encodeURIComponent(one)}`).join("");
      return (await api("GET", `/runs?view=summary${query}`)).body.items.map((run: { id: string }) => run.id);
    };
    expect(await found("input.customer.id:17")).toHaveLength(2);
    expect(await found("input.customer.id:17", "input.url:http://a:80")).toEqual([first]);
  });

  it("show on request what open runs wait for", async () => {
    const { api, create } = await startAdminServer();
    const workflow = await create(job("a"));
    const { id } = (await api("POST", "/runs", { workflow })).body;
    const { items } = (await api("GET", "/runs?view=summary&waiting=true")).body;
    expect(items).toMatchObject([{ id, waiting: { reason: "no-worker", step: "a", taskId: expect.stringContaining(id) } }]);
    await api("POST", `/runs/${id}/cancel`);
    expect((await api("GET", "/runs?view=summary&waiting=true")).body.items).toMatchObject([{ waiting: null }]);
    expect((await api("GET", "/runs?view=summary")).body.items[0]).not.toHaveProperty("waiting");
  });

  it.each([
    ["view=all", "view"],
    ["view=summary&state=done", "state"],
    ["view=summary&state=failed,", "state"],
    ["view=summary&createdAfter=yesterday", "createdAfter"],
    ["view=summary&minMs=-1", "minMs"],
    ["view=summary&text=", "text"],
    ["view=summary&where=customer:17", "where"],
    ["view=summary&where=input.customer", "where"],
    ["view=summary&waiting=yes", "waiting"],
    [`view=summary&workflow=${Array.from({ length: 21 }, (_, at) => `w${at}`).join(",")}`, "workflow"],
    ["text=x", "text"],
    ["waiting=no", "waiting"],
    ["state=failed,running", "state"],
  ])("are refused with ?%s, naming the parameter", async (query, field) => {
    const { api } = await startAdminServer();
    const { status, body } = await api("GET", `/runs?${query}`);
    expect(status).toBe(400);
    expect(body.error.field.split("[")[0]).toBe(`query.${field}`);
    expect(body.error.expected).toEqual(expect.any(String));
  });
});
