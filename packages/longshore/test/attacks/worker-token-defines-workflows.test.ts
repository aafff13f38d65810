// The attacker holds a worker token and claims a turn of a durable function. The report of a turn may contain definitions of child workflows
// that the server does not have. They were stored in any dialect that they named, also as workflows that read the server's secrets or run
// commands in the shell of another worker. Only an operator may define such workflows, and which events start a workflow: a worker could name
// any event, and got the payloads of all that came later.

import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { startFunctions } from "../support/function-world.ts";

const secret = "hunter2";
const job = {
  ...{ id: "a", name: "a", command: "id", depends_on: [], required_labels: [], max_retries: 0, max_lost_leases: 1, backoff: "None" },
  ...{ timeout_secs: null, priority: 0, skip: false, metadata: {}, ports: [], children: null, collapsed: false },
};
const leak = { name: "leak", taskReferenceName: "l", type: "SIMPLE", inputParameters: { x: "${workflow.secrets.S1}" } };

const foreign: readonly [dialect: string, source: object][] = [
  ["workflow-graph", { name: "child", trigger: "manual", jobs: [job] }],
  ["conductor", { name: "child", version: 1, timeoutSeconds: 0, outputParameters: {}, inputTemplate: {}, tasks: [leak] }],
  ["stepflow", { steps: [{ id: "a", component: "/builtin/load_file", input: { path: "tokens.txt" } }], output: { $step: "a" } }],
  ["stepflow-items", {}],
  ["flowkit", { nodes: [], edges: [] }],
];

const ours: readonly [what: string, dialect: string, source: unknown][] = [
  ["that is not an object", "code", null],
  ["without steps", "code", { name: "child" }],
  ["with the items of a map", "code", { list: { step: { id: "a", map: { task: "t" } }, first: 0, count: 20_000 } }],
  [
    "with a priority beyond all others",
    "code",
    { name: "child", steps: [{ id: "a", task: "t", input: null, priority: -1e9 }], output: null },
  ],
  ["of another name", "code", { name: "other", steps: [], output: null }],
  ["that is not an object", "function", null],
  ["whose name is not a text", "function", { name: { a: 1 }, function: true }],
  ["of another name", "function", { name: "other", function: true }],
  ["that every later event starts", "function", { name: "child", function: true, events: [{ event: "order.created" }] }],
  ["that every later event starts", "code", { name: "child", events: [{ event: "order.created" }], steps: [], output: null }],
];

beforeEach(() => {
  process.env.CONDUCTOR_SECRET_S1 = secret;
  onTestFinished(() => {
    delete process.env.CONDUCTOR_SECRET_S1;
  });
});

/** Reports a child run with this definition, and returns how it ended. */
async function reported(dialect: string, source: string) {
  const world = await startFunctions();
  const { lease } = await world.begin();
  const command = { node: 1, kind: "run", name: "child", after: 0, input: {}, defines: [{ name: "child", dialect, source }] };
  expect(await world.report(lease, { commands: [command] })).toBe(200);
  const { turn } = await world.take();
  const { items } = (await (await world.api("GET", "/definitions")).json()) as { items: { name: string }[] };
  return { results: turn.results, defined: items.map(({ name }) => name) };
}

describe("a definition that a worker reports with a child run", () => {
  it.each(foreign)("is refused in the dialect %s, whose definitions have more rights than a worker", async (dialect, source) => {
    const { results, defined } = await reported(dialect, JSON.stringify(source));
    expect(results).toMatchObject([{ node: 1, state: "failed", error: expect.stringContaining(`no workflows of the dialect ${dialect}`) }]);
    expect(defined).toEqual(["f"]);
  });

  it.each(ours)("is checked as in the API: one %s is refused (%s)", async (_what, dialect, source) => {
    const { results, defined } = await reported(dialect, JSON.stringify(source));
    expect(results).toMatchObject([{ node: 1, state: "failed", error: expect.stringContaining("which came from a worker: source") }]);
    expect(defined).toEqual(["f"]);
  });

  it.each([
    ["no JSON", "{"],
    ["nested without an end", "[".repeat(60_000)],
  ])("is refused when it is %s", async (_what, source) => {
    const { results } = await reported("code", source);
    expect(results).toMatchObject([{ node: 1, state: "failed", error: expect.stringContaining("which came from a worker: source") }]);
  });
});
