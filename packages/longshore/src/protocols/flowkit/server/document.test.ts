import { describe, expect, it } from "vitest";
import { openGraphs } from "../../../../test/support/flowkit-board.ts";
import type { JsonObject } from "../../../core/json/json.ts";
import { TestClock } from "../../../testing/clock.ts";
import { TaskViews } from "./task-views.ts";

async function setup() {
  const clock = new TestClock();
  const graphs = await openGraphs({ clock });
  const tasks = {
    submit: async ({ params, graph }: { params: JsonObject; graph: JsonObject }) => {
      return { run: await graphs.submit(graph.nodes as JsonObject[], { params }), ignored: [] };
    },
    cancel: (id: string, error: string) => graphs.engine.runs.tell(id, { kind: "cancel", error }),
  };
  const views = new TaskViews({ ...graphs.engine, tasks });
  const nodesOf = async (id: string) => {
    const { graph } = (await views.task(id)) as { graph: { nodes: JsonObject[] } };
    return graph.nodes;
  };
  return { ...graphs, clock, views, nodesOf };
}

const up = { node_id: "up", type: "src" };
const down = { node_id: "down", type: "sink", depends_on: ["up"], io: { input_inline: { size: 2 } } };

describe("the document of a task", () => {
  it("is the same as in FlowKit's coordinator", async () => {
    const { views, submit } = await setup();
    const { id } = await submit([up, down], { params: { shop: 7 }, edges: [["up", "down"]] });
    expect(await views.task(id)).toMatchObject({
      ...{ id, pipeline_id: id, status: "running", state: "running", params: { shop: 7 }, result: null, next_retry_at_ms: null },
      ...{ started_at: "2020-01-01T00:00:00.000Z", finished_at: null, last_event_recv_ms: Date.UTC(2020, 0, 1) },
      status_history: [
        { from: null, to: "queued", at: "2020-01-01T00:00:00.000Z" },
        { from: "queued", to: "running", at: "2020-01-01T00:00:00.000Z" },
      ],
      coordinator: { liveness: { state: "ok" } },
      graph: {
        nodes: [
          { node_id: "up", type: "src", status: "queued", attempt_epoch: 0, depends_on: [], fan_in: "all", stats: {} },
          { node_id: "down", type: "sink", status: "queued", attempt_epoch: 0, depends_on: ["up"], io: { input_inline: { size: 2 } } },
        ],
        edges: [["up", "down"]],
        edges_ex: [],
      },
    });
  });

  it("shows which worker has a node, in which epoch, and until when", async () => {
    const { submit, take, nodesOf, clock } = await setup();
    const { id } = await submit([up]);
    await take("src", "w-9");
    const deadline_ts_ms = clock.now() + 60_000;
    expect(await nodesOf(id)).toMatchObject([
      { status: "running", attempt_epoch: 1, lease: { worker_id: "w-9", deadline_ts_ms }, started_at: "2020-01-01T00:00:00.000Z" },
    ]);
  });

  it("shows a node that waits for another attempt as deferred, and until when", async () => {
    const { submit, take, fail, nodesOf, clock } = await setup();
    const { id } = await submit([{ ...up, retry_policy: { max: 2, backoff_sec: 30 } }]);
    await fail(await take("src"), "flaky", true);
    expect(await nodesOf(id)).toMatchObject([{ status: "deferred", next_retry_at_ms: clock.now() + 30_000 }]);
  });

  it("ends as finished or failed, with the result", async () => {
    const { views, submit, take, done, fail } = await setup();
    const good = await submit([up]);
    await done(await take("src"), { total: 3 });
    expect(await views.task(good.id)).toMatchObject({
      ...{ status: "finished", finished_at: "2020-01-01T00:00:00.000Z", result: { nodes: [{ node_id: "up", stats: {} }] } },
      graph: { nodes: [{ status: "finished" }] },
    });
    const bad = await submit([up]);
    await fail(await take("src"), "never", false);
    expect(await views.task(bad.id)).toMatchObject({ status: "failed", graph: { nodes: [{ status: "failed", last_error: "never" }] } });
  });

  it("[F-CANC-03] shows that it is being cancelled until the last worker has stopped, and then the same end as FlowKit", async () => {
    const { views, submit, take, withdrawn } = await setup();
    const { id } = await submit([up, down]);
    const task = await take("src");
    expect(await views.cancel(id, "not needed")).toMatchObject({
      ...{ status: "cancelling", state: "cancelled", finished_at: null },
      coordinator: { cancelled: true, cancel_reason: "not needed" },
      graph: { nodes: [{ status: "cancelling", coordinator: { cancelled: true } }, { status: "queued" }] },
    });
    await withdrawn(task);
    expect(await views.task(id)).toMatchObject({
      status: "finished",
      coordinator: { cancelled: true },
      graph: { nodes: [{ status: "deferred", state: "cancelled" }, {}] },
    });
  });

  it("shows variables, and the sums of a node's metrics", async () => {
    const { views, submit, take, done } = await setup();
    const { id } = await submit([
      { node_id: "set", type: "coordinator_fn", io: { fn: "vars.set", fn_args: { kv: { "sku.batch": 20 } } } },
      up,
      {
        node_id: "sum",
        type: "coordinator_fn",
        depends_on: ["up"],
        io: { fn: "metrics.aggregate", fn_args: { node_id: "up", mode: "sum" } },
      },
    ]);
    await done(await take("src"), { count: 4 });
    await done(await take("flowkit-fn"), { ok: true, mode: "sum", stats: { count: 4 } });
    expect(await views.task(id)).toMatchObject({
      ...{ status: "finished", coordinator: { vars: { sku: { batch: 20 } } } },
      graph: { nodes: [{ status: "finished" }, { node_id: "up", stats: { count: 4 } }, { status: "finished", stats: {} }] },
    });
  });

  it("of a run of another dialect shows its steps with FlowKit's names", async () => {
    const { views, engine } = await setup();
    const source = JSON.stringify({ name: "w", steps: [{ id: "greet", task: "hello", input: null }], output: null });
    await engine.runs.define({ name: "w", dialect: "code", source });
    const { run } = await engine.runs.start({ workflow: "w", input: '"a text"' });
    expect(await views.task(run.id)).toMatchObject({
      params: {},
      graph: { nodes: [{ node_id: "greet", type: "hello", status: "queued" }] },
    });
  });
});

describe("lists of tasks", () => {
  it("show only graphs, newest first, page by page, by status", async () => {
    const { views, submit, take, fail, clock } = await setup();
    const ids: string[] = [];
    for (let at = 0; at < 3; at++) {
      ids.push((await submit([up])).id);
      clock.jump(1);
    }
    await fail(await take("src"), "no", false);
    const first = await views.list({ limit: 2 });
    expect(first.items.map(({ id }) => id)).toEqual([ids[2], ids[1]]);
    expect(first.items[0]).not.toHaveProperty("graph");
    const second = await views.list({ limit: 2, before: first.next as string });
    expect(second.items.map(({ id, status }) => [id, status])).toEqual([[ids[0], "failed"]]);
    expect((await views.list({ limit: 9, status: "running" })).items).toHaveLength(2);
  });
});

describe("artifacts of a node", () => {
  it("are its parts in order, page by page, and its final metrics", async () => {
    const { views, submit, take, put, done } = await setup();
    const { id } = await submit([up]);
    const task = await take("src");
    await put(task, "b0", "b1", "b2");
    const first = await views.artifacts(id, "up", { after: 0, limit: 2 });
    expect(first).toMatchObject({
      items: [
        { task_id: id, node_id: "up", batch_uid: "b0", status: "partial", attempt_epoch: 1, meta: { of: "b0" } },
        { batch_uid: "b1" },
      ],
      ...{ next: 2, complete: null },
    });
    await done(task, { total: 3 });
    const second = await views.artifacts(id, "up", { after: 2, limit: 2 });
    expect(second).toMatchObject({ items: [{ batch_uid: "b2" }], complete: { status: "complete", meta: { total: 3 } } });
    expect(await views.artifacts(id, "up", { after: 3, limit: 2 })).toMatchObject({ items: [], next: null });
  });

  it("of a node or a task that does not exist are refused", async () => {
    const { views, submit } = await setup();
    const { id } = await submit([up]);
    await expect(views.artifacts(id, "nowhere", { after: 0, limit: 1 })).rejects.toMatchObject({
      code: "LONGSHORE_NOT_FOUND",
      detail: { field: "node" },
    });
    expect(await views.artifacts("no such task", "up", { after: 0, limit: 1 })).toBeNull();
  });
});
