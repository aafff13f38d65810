// Flows on a real store, with a test clock: the whole engine, with a router whose lanes the test serves. A component `/mock/x` is in the lane
// `x` and gets its plain input.

import { onTestFinished } from "vitest";
import type { Json, JsonObject } from "../../src/core/json/json.ts";
import { laneOf } from "../../src/engine/board/lanes.ts";
import type { TaskRow } from "../../src/engine/board/task.ts";
import { isRunOpen, type Run } from "../../src/engine/run/run.ts";
import { stepOf } from "../../src/protocols/stepflow/dialect/compile.ts";
import { stepflowDialect } from "../../src/protocols/stepflow/dialect/dialect.ts";
import { stepResult } from "../../src/protocols/stepflow/dialect/resolve.ts";
import { type FlowError, type FlowResult, failureReport, flowResultOf } from "../../src/protocols/stepflow/dialect/result.ts";
import type { Routed, Router } from "../../src/protocols/stepflow/dialect/router.ts";
import { encodeFlow } from "../../src/protocols/stepflow/dialect/source.ts";
import { prepareRun, type RunOptions } from "../../src/protocols/stepflow/dialect/start.ts";
import { openEngine } from "../../src/server/engine.ts";
import { plainDialects } from "../../src/server/protocols.ts";
import { TestClock } from "../../src/testing/clock.ts";

export type Outcome = { result: Json } | { error: FlowError };
/** What a component answers to an input. */
export type Component = (input: Json) => Outcome;

export const mockRouter: Router = {
  route(component, input): Routed | ReturnType<Router["route"]> {
    const name = /^\/mock\/(.+)$/.exec(component)?.[1];
    if (name === undefined) return { failed: "ORCHESTRATOR_ERROR", message: `error routing component: no route leads to '${component}'` };
    return {
      plugin: "mock",
      remainder: `/${name}`,
      params: {},
      lanes: [laneOf(name)],
      given: input,
      transport: { retries: 3, backoff: { kind: "fibonacci", delayMs: 1_000, maxMs: 10_000 } },
    };
  },
};

export type FlowWorld = Awaited<ReturnType<typeof openFlows>>;

export async function openFlows(options: { router?: Router; directory?: string } = {}) {
  const clock = new TestClock();
  const { router = mockRouter, directory = null } = options;
  const engine = await openEngine({ directory, clock, random: () => 0.5, dialects: [...(await plainDialects()), stepflowDialect(router)] });
  onTestFinished(() => engine.close());
  const { runs, board, reader } = engine;

  async function start(flow: JsonObject, input: Json = null, parts: Partial<RunOptions> = {}): Promise<string> {
    const { definition, run } = prepareRun({ source: encodeFlow(flow), input, ...parts });
    await runs.define(definition);
    return (await runs.begin(run)).run.id;
  }

  const found = async (id: string): Promise<Run> => (await runs.run(id)) as Run;

  async function claim(lane: string): Promise<TaskRow | undefined> {
    return (await board.claim({ reach: { names: [lane], labels: [] }, serves: lane, holder: "ann", termMs: 60_000 }))[0];
  }

  /** Claims one task from the lane and reports on it. Returns its input. */
  async function work(lane: string, outcome: Outcome): Promise<Json> {
    const task = await claim(lane);
    if (task === undefined) throw new Error(`There is nothing to do on ${lane}.`);
    await report(task, outcome);
    return JSON.parse(task.input) as Json;
  }

  async function report(task: TaskRow, outcome: Outcome): Promise<void> {
    const hold = { taskId: task.id, grant: task.grant };
    const verdict =
      "result" in outcome
        ? await board.complete(hold, JSON.stringify(outcome.result))
        : await board.fail(hold, failureReport(outcome.error));
    if (verdict !== "ok") throw new Error(`The report on ${task.id} was answered ${verdict}.`);
  }

  /** Performs all components until the run has ended. Lets time pass when all of them wait. Returns how often each was called. */
  async function play(id: string, components: { [name: string]: Component }): Promise<{ [name: string]: number }> {
    const calls: { [name: string]: number } = {};
    while (isRunOpen((await found(id)).state)) {
      let idle = true;
      for (const [name, component] of Object.entries(components)) {
        const task = await claim(name);
        if (task === undefined) continue;
        idle = false;
        calls[name] = (calls[name] ?? 0) + 1;
        await report(task, component(JSON.parse(task.input) as Json));
      }
      if (idle) await clock.advance(500);
    }
    return calls;
  }

  /** The result of each step that was wanted. */
  async function steps(id: string): Promise<{ [step: string]: FlowResult }> {
    const definition = await runs.definitionById((await found(id)).definitionId);
    const plan = engine.plan(definition as NonNullable<typeof definition>);
    const results: { [step: string]: FlowResult } = {};
    for await (const record of reader.records(id)) {
      const step = stepOf(plan.nodes[record.node]);
      if (step !== undefined) results[step.id] = stepResult(step, record);
    }
    return results;
  }

  async function result(id: string): Promise<FlowResult | null> {
    return flowResultOf(await found(id));
  }

  /** Starts a flow, performs its components and returns the result. */
  async function run(flow: JsonObject, input: Json, components: { [name: string]: Component } = {}, parts: Partial<RunOptions> = {}) {
    const id = await start(flow, input, parts);
    const calls = await play(id, components);
    return { id, calls, result: await result(id), steps: await steps(id) };
  }

  return { engine, clock, runs, board, reader, start, run, play, work, claim, report, steps, result, found };
}

export const succeeds =
  (result: Json): Component =>
  () => ({ result });

export const fails =
  (message = "boom", code: FlowError["code"] = "COMPONENT_FAILED"): Component =>
  () => ({ error: { code, message } });

/** A step on the lane of its own name. */
export function step(id: string, input: Json = null, parts: JsonObject = {}): JsonObject {
  return { id, component: `/mock/${id}`, input, ...parts };
}

export const ref = (id: string, path?: string): JsonObject => (path === undefined ? { $step: id } : { $step: id, path });

/** A condition. */
export function either(condition: Json, yes: Json, no?: Json): JsonObject {
  // biome-ignore lint/suspicious/noThenProperty: it is the language's own word, and a flow is never awaited
  return { $if: condition, then: yes, ...(no === undefined ? {} : { else: no }) };
}
