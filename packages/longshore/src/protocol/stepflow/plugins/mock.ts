// Components whose answers stand in the configuration: for trying out flows without their workers.

import { isDeepStrictEqual } from "node:util";
import type { LaneWorker } from "../../../board/lane-worker.ts";
import type { Json } from "../../../json.ts";
import type { MockPlugin } from "../config/config.ts";
import { pluginLane } from "../config/queues.ts";
import { componentLane, StepFailure } from "../lane.ts";
import { TaskErrorCode } from "../messages.ts";
import type { PluginHost } from "./host.ts";

/** They answer at once. */
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
    perform: async ({ component, input }) => answer(plugin, component, input),
    failed: (what, error) => log.warn(`A ${what} for the plugin ${plugin.name} failed and is tried again`, { error }),
  });
}

/** Throws a StepFailure for every answer that is none. What is not there at all counts as out of reach, and is not tried again. */
export function answer(plugin: MockPlugin, component: string, input: Json): Json {
  const mocked = plugin.components.get(component);
  if (mocked === undefined) throw unreachable(`The plugin ${plugin.name} has no component ${component}`);
  const found = mocked.behaviors.find((behavior) => isDeepStrictEqual(behavior.input, input))?.answer;
  if (found === undefined) throw unreachable(`No behavior defined for ${component} on ${JSON.stringify(input)}`);
  if (found.kind === "success") return found.result;
  if (found.kind === "broken") throw unreachable(found.message);
  const { message, data } = found;
  throw new StepFailure({ code: codeOf(found.code), message, ...(data === null ? {} : { data }) });
}

/** By its name or its number; the HTTP releases had numbers of their own, of which nothing is known but that the component failed. */
function codeOf(code: string | number): TaskErrorCode {
  const name = typeof code === "string" ? code.replace(/^TASK_ERROR_CODE_/, "").toUpperCase() : null;
  const found = Object.entries(TaskErrorCode).find(([key, number]) => key === name || number === code);
  return found === undefined ? "COMPONENT_FAILED" : (found[0] as TaskErrorCode);
}

function unreachable(message: string): StepFailure {
  return new StepFailure({ code: "UNREACHABLE", message }, { final: true });
}
