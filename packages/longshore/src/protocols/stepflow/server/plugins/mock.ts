// Components with configured results, to try flows without workers.

import { isDeepStrictEqual } from "node:util";
import type { Json } from "../../../../core/json/json.ts";
import type { LaneWorker } from "../../../../engine/board/lane-worker.ts";
import { TaskErrorCode } from "../../wire/messages.ts";
import type { MockPlugin } from "../config/config.ts";
import { pluginLane } from "../config/queues.ts";
import { componentLane, StepFailure } from "../lane.ts";
import type { PluginHost } from "./host.ts";

/** Maximum number of tasks at once: a few are enough, because mocks return at once. */
const slots = 16;

export function mockLane(plugin: MockPlugin, { board, workers, clock, log }: PluginHost): LaneWorker {
  return componentLane({
    board,
    workers,
    clock,
    lane: pluginLane(plugin),
    holder: `stepflow-mock:${plugin.name}`,
    protocol: "stepflow",
    slots,
    own: true,
    perform: async ({ task, component, input }) => answer(plugin, { step: task.step, component, input }),
    failed: (what, error) => log.warn(`A ${what} for the plugin ${plugin.name} failed and is tried again`, { error }),
  });
}

export interface MockCall {
  readonly step: string;
  readonly component: string;
  readonly input: Json;
}

/**
 * Throws a StepFailure for every result that is not a success. A missing component or behaviour counts as unreachable and is not retried.
 */
export function answer(plugin: MockPlugin, call: MockCall): Json {
  const mocked = plugin.components.get(call.component);
  if (mocked === undefined) throw unreachable(call, `The plugin ${plugin.name} has no component ${call.component}`);
  const found = mocked.behaviors.find((behavior) => isDeepStrictEqual(behavior.input, call.input))?.answer;
  if (found === undefined) throw unreachable(call, `No behavior defined for ${call.component} on ${JSON.stringify(call.input)}`);
  if (found.kind === "success") return found.result;
  if (found.kind === "broken") throw unreachable(call, found.message);
  const { message, data } = found;
  throw new StepFailure({ code: codeOf(found.code), message, ...(data === null ? {} : { data }) });
}

/** By name or number. The HTTP releases had other numbers; they all mean that the component failed. */
function codeOf(code: string | number): TaskErrorCode {
  const name = typeof code === "string" ? code.replace(/^TASK_ERROR_CODE_/, "").toUpperCase() : null;
  const found = Object.entries(TaskErrorCode).find(([key, number]) => key === name || number === code);
  return found === undefined ? "COMPONENT_FAILED" : (found[0] as TaskErrorCode);
}

/**
 * The messages of the reference, because tests of flows compare them. Such a message names only the step, and the reason is in the stack.
 * Our own views show the reason.
 */
function unreachable({ step, component }: MockCall, reason: string): StepFailure {
  const message = `step ${JSON.stringify(step)} failed`;
  const attachments = [`Component: ${component}`, `Component execution failed for step '${step}'`, reason];
  const stack = [
    { error: message, attachments },
    { error: "error executing user-defined function", attachments: [] },
  ];
  return new StepFailure({ code: "UNREACHABLE", message, data: { stack } }, { final: true, shown: `${message}: ${reason}` });
}
