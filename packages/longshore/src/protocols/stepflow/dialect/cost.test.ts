import { describe, expect, it } from "vitest";
import { Ledger } from "../../../../test/contract/ledger.ts";
import { either, mockRouter, openFlows, ref } from "../../../../test/support/flow-world.ts";
import type { Json, JsonObject } from "../../../core/json/json.ts";
import { compileFlow } from "./compile.ts";
import { stepflowDialect } from "./dialect.ts";

const many = 10_000;
/** Far above what is needed: a loaded machine must not fail a test. */
const timeoutMs = 120_000;
const flowOf = (length: number, input: (at: number) => Json, output: Json): JsonObject => ({
  steps: Array.from({ length }, (_, at) => ({ id: `s${at}`, component: "/mock/work", input: input(at) })),
  output,
});
const chain = (length: number) => flowOf(length, (at) => (at === 0 ? null : ref(`s${at - 1}`)), ref(`s${length - 1}`));
const ledgerOf = (flow: JsonObject) => new Ledger(compileFlow(JSON.stringify(flow)), {}, stepflowDialect(mockRouter)).start();

describe("the cost of a step", () => {
  it("does not grow with its place in a chain", () => {
    const ledger = ledgerOf(chain(many + 1));
    for (let at = 0; at < many; at++) ledger.done(at);
    expect(ledger.costs[many]).toEqual(ledger.costs[10]);
    expect(ledger.costs[10]).toEqual({ asked: 1, changed: 2, calls: 2 });
  });

  it("does not grow with its place in a chain of choices", () => {
    // Each is wanted only when the one before it chooses it.
    const length = 3_000;
    const flow = flowOf(length + 2, (at) => (at === 0 ? null : either(ref(`s${at - 1}`), ref(`s${at - 1}`), null)), ref(`s${length + 1}`));
    const ledger = ledgerOf(flow);
    for (let at = 0; at <= length; at++) ledger.done(at);
    expect(ledger.costs[length]).toEqual(ledger.costs[10]);
  });

  it("does not grow with the number of those that are awaited together with it", () => {
    const flow = flowOf(many, () => null, { all: Array.from({ length: many }, (_, at) => ref(`s${at}`)) });
    const consumer = { id: "end", component: "/mock/work", input: flow.output as Json };
    const ledger = ledgerOf({ ...flow, steps: [...(flow.steps as Json[]), consumer], output: ref("end") });
    for (let at = 0; at < many - 1; at++) ledger.done(at);
    expect(ledger.costs[many - 1]).toEqual(ledger.costs[10]);
    expect(ledger.costs[10]).toEqual({ asked: 1, changed: 2, calls: 2 });
    ledger.done(many - 1);
    expect(ledger.open).toEqual([many]);
  });

  it("of a failure that reaches all later steps is a few calls", () => {
    const ledger = ledgerOf(chain(5_000));
    ledger.costs = [];
    ledger.fail(0);
    expect(ledger.run.state).toBe("failed");
    expect(ledger.costs[0]?.calls).toBeLessThan(30);
  });
});

describe("a large flow", () => {
  const drain = async (world: Awaited<ReturnType<typeof openFlows>>, id: string) => {
    for (;;) {
      const tasks = await world.board.claim({ reach: { names: ["work"], labels: [] }, holder: "ann", termMs: 60_000, max: 100 });
      if (tasks.length === 0) return world.result(id);
      await Promise.all(tasks.map(({ id: taskId, grant, node }) => world.board.complete({ taskId, grant }, String(node))));
    }
  };

  it("of ten thousand steps one after the other runs to its end", { timeout: timeoutMs }, async () => {
    const world = await openFlows();
    const id = await world.start(chain(many));
    expect(await drain(world, id)).toEqual({ outcome: "success", result: many - 1 });
  });

  it("of ten thousand steps side by side and one that awaits them runs to its end, ten at a time", { timeout: timeoutMs }, async () => {
    const world = await openFlows();
    const flow = flowOf(many, () => null, null);
    const end = { id: "end", component: "/mock/work", input: Array.from({ length: many }, (_, at) => ref(`s${at}`)) };
    const id = await world.start({ steps: [...(flow.steps as Json[]), end], output: ref("end") });
    const first = await world.board.claim({ reach: { names: ["work"], labels: [] }, holder: "ann", termMs: 60_000, max: 100 });
    expect(first.length).toBe(10);
    await Promise.all(first.map(({ id: taskId, grant, node }) => world.board.complete({ taskId, grant }, String(node))));
    expect(await drain(world, id)).toEqual({ outcome: "success", result: many });
    expect(JSON.parse((await world.reader.task(`${id}.${many}`))?.input ?? "")).toEqual(Array.from({ length: many }, (_, at) => at));
  });
});
