// Components that run flows: eval, map and iterate. They start sub-runs, which are identified by the step and a key. So after a restart,
// the step is handed out again and finds its sub-runs.

import { isObject, type Json, type JsonObject } from "../../../../core/json/json.ts";
import { shown } from "../../../../core/text.ts";
import { type FlowResult, success } from "../../dialect/result.ts";
import { type ComponentWork, StepFailure } from "../lane.ts";
import { itemsMax } from "../run-id.ts";
import { type Component, flowResultSchema, invalid, listIn, objectSchema, optionalWhole, textIn, valueIn } from "./component.ts";

/** Starts sub-runs for a step. */
export interface SubRuns {
  /**
   * Starts a run of a flow for the step, or finds the run with the same key, and waits until it ends. Rejects with a StepFailure when the
   * flow cannot run, and with the signal's reason when the step is cancelled.
   */
  run(call: ComponentWork, subRun: SubRun): Promise<SubRunResult>;
}

export interface SubRun {
  /** Unique for each run that the step starts. */
  readonly key: string;
  /** The id of a stored flow, or the flow itself. */
  readonly flow: string | JsonObject;
  readonly inputs: readonly Json[];
  readonly maxConcurrency?: number;
}

export interface SubRunResult {
  /** The id on the wire. */
  readonly runId: string;
  /** One result for each input, in the same order. */
  readonly results: readonly FlowResult[];
}

/** As in the reference. */
const iterationsDefault = 1_000;
/** Maximum number of iterations: each is a stored run. A loop with more is a mistake. */
const iterationsMax = 100_000;
const concurrencyMax = 10_000;

const flowIdSchema = { type: "string", description: "The id of the stored flow." };
const inlineSchema = {
  type: "object",
  description: "The flow itself. Write it as $literal, so that its expressions are not evaluated too early.",
};

export function evaluate(runs: SubRuns): Component {
  return {
    path: "/eval",
    description: "Runs a stored flow and returns its result.",
    inputSchema: objectSchema("EvalInput", { flow_id: flowIdSchema, input: { description: "The input of the flow." } }, [
      "flow_id",
      "input",
    ]),
    outputSchema: objectSchema("EvalOutput", { result: flowResultSchema, run_id: { type: "string" } }, ["result", "run_id"]),
    async perform(call) {
      const flow = textIn(call, "flow_id");
      const { runId, results } = await runs.run(call, { key: "eval", flow, inputs: [valueIn(call, "input")] });
      return { result: (results[0] ?? success(null)) as unknown as Json, run_id: runId };
    },
  };
}

export function map(runs: SubRuns): Component {
  return {
    path: "/map",
    description: "Runs a flow for each item of a list and returns the results.",
    inputSchema: objectSchema(
      "MapInput",
      {
        workflow: inlineSchema,
        items: { type: "array", maxItems: itemsMax },
        max_concurrency: {
          type: ["integer", "null"],
          minimum: 1,
          maximum: concurrencyMax,
          description: "Maximum number of steps in flight.",
        },
      },
      ["workflow", "items"],
    ),
    outputSchema: objectSchema(
      "MapOutput",
      {
        results: { type: "array", items: flowResultSchema },
        successful: { type: "integer" },
        failed: { type: "integer" },
      },
      ["results", "successful", "failed"],
    ),
    async perform(call) {
      const flow = flowIn(call, "workflow");
      const items = listIn(call, "items");
      const maxConcurrency = optionalWhole(call, "max_concurrency", 1, concurrencyMax);
      if (items.length > itemsMax) throw invalid(call, `items has ${items.length} entries, expected at most ${itemsMax}`);
      if (items.length === 0) return { results: [], successful: 0, failed: 0 };
      const subRun = { key: "map", flow, inputs: items, ...(maxConcurrency === undefined ? {} : { maxConcurrency }) };
      const { results } = await runs.run(call, subRun);
      const successful = results.filter(({ outcome }) => outcome === "success").length;
      return { results: results as unknown as Json[], successful, failed: results.length - successful };
    },
  };
}

export function iterate(runs: SubRuns): Component {
  return {
    path: "/iterate",
    description:
      "Runs a flow repeatedly: when it returns { next }, this is the input of the next run; when it returns { result }, the loop ends.",
    inputSchema: objectSchema(
      "IterateInput",
      {
        flow: inlineSchema,
        initial_input: { description: "The input of the first run." },
        max_iterations: { type: ["integer", "null"], minimum: 0, maximum: iterationsMax, default: iterationsDefault },
      },
      ["flow", "initial_input"],
    ),
    outputSchema: objectSchema(
      "IterateOutput",
      {
        result: { description: "The final result; when `terminated` is true, the input of the next run." },
        iterations: { type: "integer" },
        terminated: { type: "boolean", description: "True when the loop was ended because it reached its maximum number of iterations." },
      },
      ["result", "iterations", "terminated"],
    ),
    async perform(call) {
      const flow = flowIn(call, "flow");
      const iterations = optionalWhole(call, "max_iterations", 0, iterationsMax) ?? iterationsDefault;
      let input = valueIn(call, "initial_input");
      for (let at = 0; at < iterations; at++) {
        const { results } = await runs.run(call, { key: `iterate ${at}`, flow, inputs: [input] });
        const output = outputOf(results[0]);
        if (Object.hasOwn(output, "result")) return { result: output.result ?? null, iterations: at + 1, terminated: false };
        if (!Object.hasOwn(output, "next")) throw neither();
        input = output.next ?? null;
      }
      return { result: input, iterations, terminated: true };
    },
  };
}

function flowIn(call: ComponentWork, field: string): JsonObject {
  const value = valueIn(call, field);
  if (isObject(value)) return value as JsonObject;
  throw invalid(call, `${field} is ${shown(value)}, expected a flow`);
}

function outputOf(result: FlowResult | undefined): JsonObject {
  if (result?.outcome === "failed") throw new StepFailure(result.error);
  if (isObject(result?.result)) return result.result as JsonObject;
  throw neither();
}

/** The message of the reference. */
function neither(): StepFailure {
  return new StepFailure({ code: "COMPONENT_FAILED", message: "Workflow result must contain either 'result' or 'next' field" });
}
