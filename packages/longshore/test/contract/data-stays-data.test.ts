// The input of a run and the outputs of workers are never interpreted, also when they look like a template of a dialect. The next worker
// gets exactly the same data.

import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Json, JsonObject } from "../../src/core/json/json.ts";
import { codeDialect } from "../../src/protocols/longshore/dialect/dialect.ts";
import { encodeFlow } from "../../src/protocols/stepflow/dialect/source.ts";
import { prepareRun } from "../../src/protocols/stepflow/dialect/start.ts";
import { encodeSource, plainJob } from "../../src/protocols/workflow-graph/dialect/source.ts";
import { readCommand } from "../../src/protocols/workflow-graph/wire/command.ts";
import { openEngine } from "../../src/server/engine.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { templateData } from "../support/template-data.ts";

const numRuns = 150;

async function world() {
  const engine = await openEngine({ directory: null, clock: new TestClock() });
  onTestFinished(() => engine.close());
  /** Claims the next task of a lane, reports `output`, and returns the task's input. */
  const work = async (lane: string, output: Json): Promise<Json> => {
    const [task] = await engine.board.claim({ reach: { names: [lane], labels: [] }, serves: lane, holder: "ann", termMs: 60_000 });
    if (task === undefined) throw new Error(`There is nothing to do on ${lane}.`);
    await engine.board.complete({ taskId: task.id, grant: task.grant }, JSON.stringify(output));
    return JSON.parse(task.input) as Json;
  };
  return { engine, work };
}

const any = (check: (input: Json, output: Json) => Promise<void>) =>
  fc.assert(fc.asyncProperty(templateData, templateData, check), { numRuns });

describe("data stays data", () => {
  it("in a workflow in code", async () => {
    const { engine, work } = await world();
    const step = { path: [] };
    const source = {
      name: "w",
      steps: [
        { id: "a", task: "first", input: { given: { $ref: step } } },
        { id: "b", task: "second", input: { given: { $ref: step }, got: { $ref: { step: "a", path: [] } } } },
      ],
      output: { $ref: { step: "a", path: [] } },
    };
    const { id: definitionId } = await engine.runs.define({ name: "w", dialect: codeDialect.name, source: JSON.stringify(source) });
    await any(async (input, output) => {
      const { run } = await engine.runs.begin({ workflow: "w", definitionId, input: JSON.stringify(input) });
      expect(await work("first", output)).toEqual({ given: input });
      expect(await work("second", null)).toEqual({ given: input, got: output });
      expect(JSON.parse((await engine.runs.run(run.id))?.output ?? "")).toEqual(output);
    });
  });

  it("in a Stepflow flow", async () => {
    const { engine, work } = await world();
    const flow: JsonObject = {
      schema: "https://stepflow.org/schemas/v1/flow.json",
      steps: [
        { id: "a", component: "/first", input: { given: { $input: "$" } } },
        { id: "b", component: "/second", input: { given: { $input: "$" }, got: { $step: "a" }, v: { $variable: "v" } } },
      ],
      output: { got: { $step: "a" }, end: { $step: "b" } },
    };
    await any(async (input, output) => {
      const { definition, run } = prepareRun({ source: encodeFlow(flow), input, variables: { v: output } });
      await engine.runs.define(definition);
      const { run: begun } = await engine.runs.begin(run);
      expect(await work("first", output)).toEqual({ given: input });
      expect(await work("second", null)).toEqual({ given: input, got: output, v: output });
      expect((await engine.runs.run(begun.id))?.output).toContain(JSON.stringify({ got: output, end: null }));
    });
  });

  it("in a workflow graph, in which outputs are not part of commands", async () => {
    const { engine, work } = await world();
    const jobs = [plainJob("a", "echo a"), { ...plainJob("b", "echo b"), depends_on: ["a"] }];
    const { id: definitionId } = await engine.runs.define({
      name: "w",
      dialect: "workflow-graph",
      source: encodeSource({ name: "w", trigger: "", jobs }),
    });
    await any(async (_input, output) => {
      await engine.runs.begin({ workflow: "w", definitionId, input: "{}" });
      expect(await work("$command", { out: output })).toEqual({ command: "echo a", upstream: {} });
      const text = typeof output === "string" ? output : JSON.stringify(output);
      expect(await work("$command", null)).toEqual({ command: "echo b", upstream: { a: { out: text } } });
    });
  });

  it("in the command of a handler call, which is never a shell command", async () => {
    await fc.assert(
      fc.asyncProperty(templateData, async (input) => {
        const call = readCommand(`{"handler":"greet","input":${JSON.stringify(input)}}`);
        expect(call).toEqual({ kind: "handler", name: "greet", input });
      }),
      { numRuns: 1_000 },
    );
  });
});
