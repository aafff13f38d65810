import { describe, expect, it } from "vitest";
import { startAdminServer } from "../../../../test/support/admin.ts";
import { startFunctions } from "../../../../test/support/function-world.ts";
import { job } from "../../../../test/support/workflow-graph.ts";
import { runGraphShape, runTimelineShape } from "../wire/graph-shapes.ts";

const json = { "content-type": "application/json" };
const simple = (reference: string) => ({ name: "work", taskReferenceName: reference, type: "SIMPLE", inputParameters: {} });
const choice = (reference: string, decisionCases: object, defaultCase: object[] = []) => ({
  ...{ name: reference, taskReferenceName: reference, type: "SWITCH", evaluatorType: "value-param", expression: "to" },
  ...{ inputParameters: { to: "US" }, decisionCases, defaultCase },
});
const parcel = {
  ...{ name: "parcel", version: 1, schemaVersion: 2, ownerEmail: "a@example.org", inputParameters: [], outputParameters: {} },
  tasks: [
    choice("s", { US: [simple("t1"), choice("inner", { a: [simple("t2")] })], DE: [simple("t3")] }, [simple("t4")]),
    {
      name: "f",
      taskReferenceName: "f",
      type: "FORK_JOIN",
      inputParameters: {},
      forkTasks: [[simple("b1")], [simple("b2"), simple("b3")]],
    },
    { name: "j", taskReferenceName: "j", type: "JOIN", inputParameters: {}, joinOn: ["b1", "b3"] },
  ],
};

interface Graph {
  readonly ids: readonly string[];
  readonly groups: readonly (number | null)[];
  readonly groupList: readonly { readonly label: string; readonly of: number | null; readonly parent: number | null }[];
  readonly edges: readonly (readonly [number, number])[];
  readonly edgeKinds: readonly string[];
  readonly edgeLabels: readonly (string | null)[];
}

/** The edges of a graph as lines. */
function linesOf({ ids, edges, edgeKinds, edgeLabels }: Graph): string[] {
  return edges
    .map(([from, to], at) => `${ids[from]} ${edgeKinds[at]}${edgeLabels[at] === null ? "" : ` ${edgeLabels[at]}`} ${ids[to]}`)
    .sort();
}

describe("the graph of a run in each language", () => {
  const flow = {
    schema: "https://stepflow.org/schemas/v1/flow.json",
    name: "chosen",
    steps: [
      { id: "ask", component: "/builtin/create_messages", input: { user_prompt: "a" } },
      { id: "yes", component: "/builtin/create_messages", input: { user_prompt: { $step: "ask" } } },
      { id: "no", component: "/builtin/create_messages", input: { user_prompt: "c" } },
    ],
    // biome-ignore lint/suspicious/noThenProperty: a choice of a flow is written so.
    output: { $if: { $input: "ok" }, then: { $step: "yes" }, else: { $step: "no" } },
  };
  const step = (id: string, more: object = {}) => ({ id, task: "work", input: null, ...more });
  const code = {
    source: {
      ...{ name: "streamed", output: null },
      steps: [
        step("give"),
        step("take", { after: ["give"], startWhen: "first-part" }),
        { id: "each", map: { task: "work" }, input: [1, 2], after: ["take"] },
      ],
    },
  };

  it.each([
    ["a SWITCH, a FORK and a JOIN", parcel],
    ["a choice of a flow", flow],
    ["a step that starts with the first part, and a map", code],
    ["jobs", { name: "jobs", on: "demand", jobs: { a: { run: "a" }, b: { run: "b", needs: ["a"] }, c: { run: "c", needs: ["a", "b"] } } }],
  ])("has the edges of the plan for %s, and each step can be reached", async (_, definition) => {
    const { api } = await startAdminServer();
    const { status, body: defined } = await api("POST", "/definitions", definition, json);
    expect({ status, error: defined.error }).toEqual({ status: 201, error: undefined });
    const { body: run } = await api("POST", "/runs", { workflow: defined.definition.name, input: {} });
    const { ids, edges } = (await api("GET", `/runs/${run.id}/graph`)).body as Graph;
    const steps = (await api("GET", `/runs/${run.id}/steps?limit=1000`)).body.items as {
      id: string;
      after: string[];
      startedBy: string[];
    }[];
    expect([...ids].sort()).toEqual(steps.map(({ id }) => id).sort());
    const next = (id: string) => edges.filter(([from]) => ids[from] === id).map(([, to]) => ids[to] as string);
    /** The graph leaves out an edge when a longer way says the same. */
    const leadsTo = (from: string) => {
      const reached = new Set(next(from));
      for (const id of reached) for (const further of next(id)) reached.add(further);
      return reached;
    };
    const planned = new Set(steps.flatMap(({ id, after, startedBy }) => [...after, ...startedBy].map((from) => `${from} ${id}`)));
    expect(edges.map(([from, to]) => `${ids[from]} ${ids[to]}`).filter((edge) => !planned.has(edge))).toEqual([]);
    const lost = [...planned].filter((edge) => {
      const [from = "", to = ""] = edge.split(" ");
      return !leadsTo(from).has(to);
    });
    expect(lost).toEqual([]);
  });
});

describe("the graph of a run", () => {
  it("has every step, and what leads to it, with cases, forks and joins", async () => {
    const { api } = await startAdminServer();
    await api("POST", "/definitions", parcel, json);
    const { body: run } = await api("POST", "/runs", { workflow: "parcel", input: {} });
    const { status, body } = await api("GET", `/runs/${run.id}/graph`);
    expect(status).toBe(200);
    expect(body).toMatchObject({ runId: run.id, workflow: "parcel", dialect: "conductor", isFunction: false, isCut: false });
    expect(body.kinds[body.ids.indexOf("j")]).toBe("join");
    expect(body.lanes[body.ids.indexOf("t1")]).toBe("work");
    expect(linesOf(body)).toEqual(
      [
        "s case US t1",
        "t1 after inner",
        "inner case a t2",
        "s case DE t3",
        "s case otherwise t4",
        ...["t2", "inner", "t3", "t4"].map((end) => `${end} after f`),
        "f starts b1",
        "f starts b2",
        "b2 after b3",
        "b1 after j",
        "b3 after j",
      ].sort(),
    );
  });

  it("groups the steps of each branch, and branches inside of branches", async () => {
    const { api } = await startAdminServer();
    await api("POST", "/definitions", parcel, json);
    const { body: run } = await api("POST", "/runs", { workflow: "parcel", input: {} });
    const graph = (await api("GET", `/runs/${run.id}/graph`)).body as Graph;
    const pathOf = (group: number | null): string[] => {
      if (group === null) return [];
      const { label, of, parent } = graph.groupList[group] as Graph["groupList"][number];
      return [...pathOf(parent), `${of === null ? "" : graph.ids[of]}=${label}`];
    };
    const paths = Object.fromEntries(graph.ids.map((id, at) => [id, pathOf(graph.groups[at] ?? null).join(" ")]));
    expect(paths).toMatchObject({
      ...{ s: "", t1: "s=US", inner: "s=US", t2: "s=US inner=a", t3: "s=DE", t4: "s=otherwise" },
      ...{ f: "", b1: "f=b1", b2: "f=b2", b3: "f=b2", j: "" },
    });
  });

  it("is the same for two runs of one definition, and another for another version", async () => {
    const { api, create } = await startAdminServer();
    const workflow = await create(job("a"), job("b", { depends_on: ["a"] }));
    const [one, other] = [(await api("POST", "/runs", { workflow })).body.id, (await api("POST", "/runs", { workflow })).body.id];
    const first = (await api("GET", `/runs/${one}/graph`)).body;
    expect(first).toMatchObject({ ids: ["a", "b"], nodes: [0, 1], edges: [[0, 1]], edgeKinds: ["after"], edgeLabels: [null] });
    expect((await api("GET", `/runs/${other}/graph`)).body).toEqual({ ...first, runId: other });
    expect((await api("GET", "/runs/nope/graph")).status).toBe(404);
  });

  it("of a durable function has its commands, behind the results that it had received", async () => {
    const { api, begin, take, report, server } = await startFunctions();
    const { id, lease } = await begin();
    const step = (node: number, after: number, kind = "step", more: object = {}) => ({ node, kind, name: `n${node}`, after, ...more });
    await report(lease, { commands: [step(1, 0), step(2, 0), step(3, 0, "local", { output: 5 })] });
    for (const name of ["n1", "n2"]) {
      const claimed = await fetch(`${server.url}/api/jobs/claim`, {
        method: "POST",
        body: JSON.stringify({ worker_id: "s", labels: [`handler:${name}`], ttl_secs: 60, wait_secs: 20 }),
        headers: json,
      });
      const held = (await claimed.json()) as { lease: { lease_id: string } };
      await fetch(`${server.url}/api/jobs/${held.lease.lease_id}/complete`, { method: "POST", body: '{"output":1}', headers: json });
    }
    let next = await take();
    if (next.turn.upTo < 3) {
      await report(next.lease, {});
      next = await take();
    }
    expect(next.turn.upTo).toBe(3);
    await report(next.lease, { commands: [step(4, 3, "sleep", { forMs: 600_000 })] });
    const graph = runGraphShape.parse(await (await api("GET", `/runs/${id}/graph`)).json());
    expect(graph).toMatchObject({
      isFunction: true,
      nodes: [0, 1, 2, 3, 4],
      kinds: ["task", "task", "task", "instant", "wait"],
      commands: [null, "step n1", "step n2", "local n3", "sleep n4"],
    });
    expect(linesOf(graph)).toEqual(["f starts n1", "f starts n2", "f starts n3", "n1 after n4", "n2 after n4", "n3 after n4"]);
  });
});

interface Timeline {
  readonly t0: number;
  readonly states: readonly string[];
  readonly verbs: readonly string[];
  readonly holders: readonly string[];
  readonly attempts: { readonly [column: string]: readonly (number | null)[] };
}

/** The rows of a timeline as objects. */
function rowsOf({ attempts, states, verbs, holders }: Timeline) {
  const name = (list: readonly string[], at: number | null | undefined) => (at == null ? null : list[at]);
  const { step = [] } = attempts;
  return step.map((node, at) => {
    const of = (column: string) => attempts[column]?.[at] ?? null;
    const times = { queued: of("queued"), due: of("due"), start: of("start"), end: of("end") };
    const words = { state: name(states, of("state")), closedBy: name(verbs, of("closedBy")), holder: name(holders, of("holder")) };
    return { node, attempt: of("attempt"), ...times, ...words };
  });
}

describe("the timeline of a run", () => {
  it("has every attempt of every step with its times", async () => {
    const { api, create, take, fail, complete, clock } = await startAdminServer();
    const workflow = await create(job("a", { max_retries: 1 }), job("b", { depends_on: ["a"] }));
    const { id, createdAt } = (await api("POST", "/runs", { workflow })).body;
    await clock.advance(100);
    const first = await take({ worker: "w1" });
    await clock.advance(50);
    await fail(first.lease.lease_id, true, "no");
    const { body: waiting } = await api("GET", `/runs/${id}/timeline`);
    const [, queued] = rowsOf(waiting);
    const delay = queued?.due as number;
    expect(queued).toMatchObject({ attempt: 2, state: "queued", queued: 150, start: null, end: null, closedBy: null });
    await clock.advance(delay + 10);
    const second = await take({ worker: "w2" });
    await clock.advance(5);
    await complete(second.lease.lease_id);
    const { body } = await api("GET", `/runs/${id}/timeline`);
    expect(body).toMatchObject({ runId: id, state: "running", t0: createdAt, now: clock.now(), endedAt: null, retries: 0, next: null });
    const start = 160 + delay;
    expect(rowsOf(body)).toEqual([
      { node: 0, attempt: 1, queued: 0, due: null, start: 100, end: 150, state: null, closedBy: "fail", holder: "w1" },
      { node: 0, attempt: 2, queued: 150, due: delay, start, end: start + 5, state: "done", closedBy: "complete", holder: "w2" },
      { node: 1, attempt: 1, queued: start + 5, due: null, start: null, end: null, state: "queued", closedBy: null, holder: null },
    ]);
    expect((await api("GET", "/runs/nope/timeline")).status).toBe(404);
    expect((await api("GET", `/runs/${id}/timeline?after=x`)).status).toBe(400);
  });

  it("shows only the earlier attempt of a step that starts again", async () => {
    const { api, create, take, fail } = await startAdminServer();
    const workflow = await create(job("a"), job("b", { depends_on: ["a"] }));
    const { id } = (await api("POST", "/runs", { workflow })).body;
    await fail((await take()).lease.lease_id);
    await api("POST", `/runs/${id}/retry`);
    const rows = rowsOf((await api("GET", `/runs/${id}/timeline`)).body);
    expect(rows.map(({ node, attempt, state, closedBy }) => [node, attempt, state, closedBy])).toEqual([
      [0, 1, null, "fail"],
      [0, 2, "queued", null],
    ]);
  });

  it("of many steps comes in pages that together have each step once, and is small", async () => {
    const { api } = await startAdminServer();
    const steps = Array.from({ length: 4_500 }, (_, at) => ({ id: `s${at}`, task: "later", input: null }));
    await api("POST", "/definitions", { source: { name: "wide", steps, output: null } }, json);
    const { id } = (await api("POST", "/runs", { workflow: "wide" })).body;
    // A decision posts a part of them.
    await expect.poll(async () => (await api("GET", "/queues")).body.items[0]?.ready, { timeout: 20_000 }).toBe(steps.length);
    const seen: number[] = [];
    let bytes = 0;
    let pages = 0;
    for (let after: string | null = ""; after !== null; pages++) {
      const { body, headers } = await api("GET", `/runs/${id}/timeline${after === "" ? "" : `?after=${after}`}`);
      const { attempts, next } = runTimelineShape.parse(body);
      seen.push(...attempts.step);
      bytes += Number(headers["content-length"]);
      after = next;
    }
    expect(pages).toBe(3);
    expect(seen.sort((a, b) => a - b)).toEqual(steps.map((_, at) => at));
    // 10,000 steps have at most 600 kB.
    expect(bytes / seen.length).toBeLessThan(60);
  });
});
