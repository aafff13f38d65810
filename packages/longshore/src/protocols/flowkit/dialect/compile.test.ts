import { describe, expect, it } from "vitest";
import { scopeOf } from "../../../../test/support/scope.ts";
import type { Json, JsonObject } from "../../../core/json/json.ts";
import type { TaskNode } from "../../../engine/run/plan.ts";
import { checkedGraph } from "./check.ts";
import { compileGraph } from "./compile.ts";
import { flowkitDialect, sourceOf } from "./dialect.ts";
import { varsOf } from "./resolve.ts";

const worker = (node_id: string, more: JsonObject = {}): JsonObject => ({ node_id, type: "indexer", ...more });
const fn = (node_id: string, name: string, fn_args: JsonObject, more: JsonObject = {}): JsonObject => ({
  node_id,
  type: "coordinator_fn",
  io: { fn: name, fn_args },
  ...more,
});
const planOf = (nodes: JsonObject[], more: JsonObject = {}) => compileGraph(checkedGraph({ nodes, ...more }));
const waits = (nodes: JsonObject[], more: JsonObject = {}) =>
  planOf(nodes, more).nodes.map(({ after, waitsFor, ...node }) => {
    const { threshold, onFirstPart } = node as { threshold?: number; onFirstPart?: readonly number[] };
    return { after, waitsFor, ...(threshold === undefined ? {} : { threshold }), ...(onFirstPart === undefined ? {} : { onFirstPart }) };
  });
const pulls = (from: string[], start_when = "ready"): JsonObject => ({
  io: { start_when, input_inline: { input_adapter: "pull.from_artifacts", input_args: { from_nodes: from } } },
});

describe("fields without effect", () => {
  function ignoredIn(graph: JsonObject): string[] {
    const ignored: string[] = [];
    checkedGraph(graph, { ignored: (field) => ignored.push(field) });
    return ignored;
  }

  it("are accepted, as in the reference, and are reported by name", () => {
    const node = worker("a", {
      colour: "red",
      io: { priority: 1 },
      retry_policy: { jitter: 1, batch: { wait: 1 } },
      routing: { on_skip: [] },
    });
    const edges_ex = [{ from: "a", to: "b", mode: "async", trigger: "on_batch", gateway: "x" }];
    expect(ignoredIn({ nodes: [node, worker("b")], edges_ex, externals: {} })).toEqual([
      "graph.externals",
      "graph.edges_ex[0].gateway",
      "graph.nodes[0].colour",
      "graph.nodes[0].routing.on_skip",
      "graph.nodes[0].retry_policy.jitter",
      "graph.nodes[0].retry_policy.batch.wait",
      "graph.nodes[0].io.priority",
    ]);
  });

  it("are not reported when the reference's graphs have them, or when they belong to the handler", () => {
    const runtime = { status: "queued", attempt_epoch: 0, stats: {}, lease: null, started_at: null, streaming: {}, coordinator: {} };
    const io = { input_inline: { anything: 1 }, input_ref: { place: 1 }, batching: { size: 1 } };
    expect(ignoredIn({ schema_version: "1.0", nodes: [worker("a", { ...runtime, io })] })).toEqual([]);
  });
});

describe("a graph", () => {
  it("[A12] needs no status and no attempt_epoch: absent or null fields are filled in", () => {
    const graph = checkedGraph({
      schema_version: "1.0",
      nodes: [worker("a"), worker("b", { status: null, attempt_epoch: null, depends_on: null })],
    });
    expect(graph.nodes[1]).toEqual({
      node_id: "b",
      type: "indexer",
      status: "queued",
      attempt_epoch: 0,
      depends_on: [],
      fan_in: "all",
      retry_policy: { max: 2, backoff_sec: 300, permanent_on: ["bad_input", "schema_mismatch"], lost: 10, batch: null },
      routing: { on_success: [], on_failure: [] },
      io: { start_when: "ready", input_ref: null, input_inline: null, batching: null },
    });
  });

  it("uses the edges as the dependencies of a node that names none", () => {
    const nodes = [worker("a"), worker("b"), worker("c", { depends_on: [] })];
    expect(waits(nodes, { edges: [["a", "b"], { from: "a", to: "c" }] }).map(({ after }) => after)).toEqual([[], [0], []]);
  });

  it("compiles a worker's node to a task in the lane of its type, with its input and its retries", () => {
    const io = { input_inline: { total: 3 }, batching: { size: 2 } };
    const [node] = planOf([worker("a", { io, retry_policy: { max: 1, backoff_sec: 0.05 } })]).nodes;
    expect(node).toMatchObject({
      kind: "task",
      lanes: [{ name: "indexer", labels: [] }],
      input: { kind: "literal", value: { total: 3 } },
      retry: { failures: 1, lost: 10, backoff: { kind: "fixed", delayMs: 50 } },
      onFailure: "end",
    });
  });

  it("has the server's limits: for all types together, and for one type", () => {
    const graph = checkedGraph({ nodes: [worker("a"), { node_id: "b", type: "slow" }] });
    const plan = compileGraph(graph, { running: 2, types: { slow: 1 } });
    expect(plan.nodes.map((node) => (node as TaskNode).limits)).toEqual([
      [{ key: "flowkit", held: 2 }],
      [
        { key: "flowkit", held: 2 },
        { key: "flowkit:slow", held: 1 },
      ],
    ]);
  });

  it("is read from stored values unchanged", () => {
    const graph = checkedGraph({ nodes: [worker("a"), worker("b", { depends_on: ["a"], when: { var: "x" } })], edges: [["a", "b"]] });
    expect(flowkitDialect().compile(sourceOf(graph)).origin).toEqual(graph);
  });
});

describe("what a node waits for", () => {
  const three = [worker("a"), worker("b"), worker("c")];
  const all = ["a", "b", "c"];

  it("is all dependencies, any of them, or a given number", () => {
    const nodes = ["all", "any", "count:2", "count:3", "count:many"].map((fan_in) => worker(fan_in, { depends_on: all, fan_in }));
    expect(waits([...three, ...nodes]).slice(3)).toEqual([
      { after: [0, 1, 2], waitsFor: "done" },
      { after: [0, 1, 2], waitsFor: "done", threshold: 1 },
      { after: [0, 1, 2], waitsFor: "done", threshold: 2 },
      { after: [0, 1, 2], waitsFor: "done" },
      { after: [0, 1, 2], waitsFor: "done" },
    ]);
  });

  it("is the first batch of its sources, also when it depends on other nodes", () => {
    const streaming = (id: string, more: JsonObject) => worker(id, { depends_on: all, ...pulls(["a", "b"], "FIRST_BATCH"), ...more });
    const nodes = [streaming("x", {}), streaming("y", { fan_in: "any" }), streaming("z", { fan_in: "count:2" })];
    const plain = worker("w", { depends_on: ["c"], io: { start_when: "first_batch" } });
    expect(waits([...three, ...nodes, plain]).slice(3)).toEqual([
      { after: [0, 1], waitsFor: "done", onFirstPart: [0, 1], threshold: 1 },
      { after: [0, 1], waitsFor: "done", onFirstPart: [0, 1], threshold: 1 },
      { after: [0, 1], waitsFor: "done", onFirstPart: [0, 1], threshold: 2 },
      { after: [2], waitsFor: "done", onFirstPart: [2], threshold: 1 },
    ]);
  });

  it("is the first batch along an edge that sets it", () => {
    const edges_ex = [{ from: "a", to: "d", mode: "async", trigger: "on_batch" }];
    expect(waits([...three, worker("d", { depends_on: ["a", "b"] })], { edges_ex })[3]).toEqual({
      after: [0],
      waitsFor: "done",
      onFirstPart: [0],
      threshold: 1,
    });
  });
});

describe("what could never run is refused with its place", () => {
  it.each<[string, Json, string | RegExp]>([
    ["[A13] an id twice", { nodes: [worker("a"), worker("a")] }, 'graph.nodes[1].node_id is "a", which nodes[0] is called already.'],
    [
      "[A13] an unknown dependency",
      { nodes: [worker("a", { depends_on: ["x"] })] },
      'graph.nodes[0].depends_on[0] names "x", which is not a node of the graph.',
    ],
    [
      "[A13] a circle",
      { nodes: [worker("a", { depends_on: ["b"] }), worker("b", { depends_on: ["a"] })] },
      "graph.nodes run in a circle: a -> b -> a.",
    ],
    [
      "a field in another spelling",
      { nodes: [worker("a", { io: { startWhen: "first_batch" } })] },
      "graph.nodes[0].io.startWhen is not known here, expected start_when.",
    ],
    [
      "a field with a letter wrong",
      { nodes: [worker("a", { retry_polisy: {} })] },
      "graph.nodes[0].retry_polisy is not known here, expected retry_policy.",
    ],
    ["a field with a letter missing", { nodes: [worker("a")], edge: [] }, "graph.edge is not known here, expected edges."],
    [
      "a field with a letter too many",
      { nodes: [worker("a", { retry_policy: { backoff_secs: 1 } })] },
      "graph.nodes[0].retry_policy.backoff_secs is not known here, expected backoff_sec.",
    ],
    ["no graph", [], "graph is [], expected an object with nodes."],
    ["no nodes", {}, "graph.nodes is empty, expected at least one node."],
    ["no node", { nodes: ["a"] }, 'graph.nodes[0] is "a", expected an object with node_id and type.'],
    ["no id", { nodes: [{ type: "t" }] }, "graph.nodes[0].node_id is absent, expected a text."],
    [
      "a type that no topic can have",
      { nodes: [{ node_id: "a", type: "a b" }] },
      /^graph.nodes\[0\].type is "a b", expected up to 200 letters/,
    ],
    ["a status", { nodes: [worker("a", { status: "finished" })] }, /^graph.nodes\[0\].status is "finished", expected "queued" or nothing/],
    ["a fan-in", { nodes: [worker("a", { fan_in: "some" })] }, 'graph.nodes[0].fan_in is "some", expected "all", "any" or "count:k".'],
    [
      "any of none",
      { nodes: [worker("a", { fan_in: "any" })] },
      "graph.nodes[0].fan_in is any, but depends_on is empty: it would never start.",
    ],
    [
      "some of none",
      { nodes: [worker("a", { fan_in: "count:1" })] },
      'graph.nodes[0].fan_in is "count:1", but it depends on no node: it would never start.',
    ],
    [
      "more than there are",
      { nodes: [worker("a"), worker("b", { depends_on: ["a"], fan_in: "count:2" })] },
      /expected a count from 1 to 1/,
    ],
    [
      "first batches of nothing",
      { nodes: [worker("a", { io: { start_when: "first_batch" } })] },
      /^graph.nodes\[0\].io.start_when is first_batch/,
    ],
    ["a start", { nodes: [worker("a", { io: { start_when: "soon" } })] }, /expected "ready" or "first_batch"/],
    ["an unknown source", { nodes: [worker("a", pulls(["x"]))] }, /input_args.from_nodes names "x"/],
    ["an edge to nowhere", { nodes: [worker("a")], edges: [["a", "x"]] }, 'graph.edges[0][1] names "x", which is not a node of the graph.'],
    ["an edge", { nodes: [worker("a")], edges: ["a"] }, 'graph.edges[0] is "a", expected ["from", "to"].'],
    [
      "a trigger",
      { nodes: [worker("a")], edges_ex: [{ from: "a", to: "a", mode: "sync" }] },
      'graph.edges_ex[0].mode is "sync", expected "async".',
    ],
    [
      "a retry",
      { nodes: [worker("a", { retry_policy: { max: -1 } })] },
      "graph.nodes[0].retry_policy.max is -1, expected a whole number from 0 to 10000.",
    ],
    ["an input", { nodes: [worker("a", { io: { input_inline: [] } })] }, "graph.nodes[0].io.input_inline is [], expected an object."],
    ["an unknown function", { nodes: [fn("a", "vars.get", {})] }, /^graph.nodes\[0\].io.fn is "vars.get", expected one of vars.set/],
    ["a bad call", { nodes: [fn("a", "vars.set", { kv: { $x: 1 } })] }, /^graph.nodes\[0\].io.fn_args.kv.\$x has the segment/],
    ["a merge of nothing", { nodes: [fn("a", "merge.generic", { target: { key: "k" } })] }, /fn_args.from_nodes is absent/],
    ["a merge into nothing", { nodes: [worker("u"), fn("a", "merge.generic", { from_nodes: ["u"] })] }, /fn_args.target is/],
    [
      "a merge into another",
      { nodes: [worker("u"), fn("a", "merge.generic", { from_nodes: ["u"], target: { node_id: "u" } })] },
      /expected "a" or nothing/,
    ],
    ["an aggregate", { nodes: [fn("a", "metrics.aggregate", { node_id: "x" })] }, /fn_args.node_id is "x", expected a node of the graph/],
    ["an aggregate's mode", { nodes: [fn("a", "metrics.aggregate", { node_id: "a", mode: "max" })] }, /expected "sum" or "mean"/],
    [
      "adapter arguments",
      { nodes: [worker("a", { io: { input_inline: { input_adapter: "x", input_args: [] } } })] },
      /input_args is \[\], expected an object/,
    ],
  ])("%s", (_what, graph, message) => {
    expect(() => checkedGraph(graph)).toThrow(message);
  });

  it("the errors of an adapter about its arguments", () => {
    const graph = { nodes: [worker("a", { io: { input_inline: { input_adapter: "x", input_args: { size: 0 } } } })] };
    const adapter = (name: string, args: JsonObject) => `of ${name} has the size ${String(args.size)}`;
    expect(() => checkedGraph(graph, { adapter })).toThrow("graph.nodes[0].io.input_inline.input_args of x has the size 0.");
  });

  it("have the field in a machine-readable form", () => {
    expect(() => checkedGraph({ nodes: [{}] })).toThrow(
      expect.objectContaining({ code: "LONGSHORE_BAD_DEFINITION", detail: { field: "graph.nodes[0].node_id" } }),
    );
  });
});

describe("functions of the coordinator", () => {
  const dialect = flowkitDialect();

  it("change the variables at once, and each sees the changes of those before it", () => {
    const plan = planOf([fn("a", "vars.incr", { key: "n.x", by: 2 })]);
    const [node] = plan.nodes;
    expect(node?.kind).toBe("instant");
    const scope = { ...scopeOf(null), variables: () => ({ vars: { n: { x: 40 } } }) };
    expect(dialect.resolve(plan, node?.kind === "instant" ? node.variables : null, scope)).toEqual({ value: { vars: { n: { x: 42 } } } });
    expect(dialect.resolve(plan, node?.kind === "instant" ? node.output : null, scope)).toMatchObject({
      value: { ok: true, key: "n.x", by: 2 },
    });
  });

  it("find no variables when none were set", () => {
    expect(varsOf({})).toEqual({});
    expect(varsOf({ vars: { a: 1 }, other: 2 })).toEqual({ a: 1 });
  });

  it("fail with their place when an old value has the wrong type", () => {
    const plan = planOf([fn("a", "vars.incr", { key: "n" })]);
    const [node] = plan.nodes;
    const scope = { ...scopeOf(null), variables: () => ({ vars: { n: "A" } }) };
    expect(dialect.resolve(plan, node?.kind === "instant" ? node.output : null, scope)).toEqual({
      failed: 'vars.incr: fn_args.key names coordinator.vars.n, which is "A" and no number',
    });
  });

  it("that take time are in a separate lane, with the name of their node as target", () => {
    const [, merge, other] = planOf([
      worker("u"),
      fn("m", "merge.generic", { from_nodes: ["u"], target: { key: "k" } }),
      fn("n", "noop", {}),
    ]).nodes;
    expect(merge).toMatchObject({
      kind: "task",
      lanes: [{ name: "flowkit-fn", labels: [] }],
      input: { value: { fn: "merge.generic", fn_args: { from_nodes: ["u"], target: { node_id: "m", key: "k" } } } },
    });
    expect(other?.kind).toBe("instant");
  });

  it("of a user are available when the server registers them", () => {
    const nodes = [fn("a", "mine", {})];
    expect(checkedGraph({ nodes }, { functions: new Set(["mine"]) }).nodes).toHaveLength(1);
  });
});
