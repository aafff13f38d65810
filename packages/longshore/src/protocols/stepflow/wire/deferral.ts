// How a task that wants to be called later travels over a queue of Stepflow. Only our worker and our server know deferrals. A worker
// recognises our server by the form of its task ids (task-id.ts).
//
// The deferral is the data of the error that ends the hold. The next assignment has it among its path parameters.

import { isObject, type Json } from "../../../core/json/json.ts";
import { waitMsMax } from "../../../core/step-bounds.ts";
import { type TaskError, TaskErrorCode } from "./messages.ts";

const key = "longshore.defer";
const paramName = "longshore.deferred";

export interface Deferral {
  readonly delayMs: number;
  readonly output: Json;
}

/** What the earlier calls of an attempt have left. */
export interface Deferred {
  readonly deferrals: number;
  readonly output: Json;
}

export function deferralError({ delayMs, output }: Deferral): TaskError {
  return { code: TaskErrorCode.WORKER_ERROR, message: "deferred", data: { [key]: { delayMs, output } } };
}

/** Undefined for a failure. */
export function deferralOf({ data }: Pick<TaskError, "data">): Deferral | undefined {
  const given = isObject(data) ? data[key] : undefined;
  if (!isObject(given)) return undefined;
  const { delayMs, output = null } = given;
  const isDelay = typeof delayMs === "number" && Number.isSafeInteger(delayMs) && delayMs >= 0 && delayMs <= waitMsMax;
  return isDelay ? { delayMs, output: output as Json } : undefined;
}

export function deferredParams({
  deferrals,
  output,
}: {
  readonly deferrals: number;
  readonly output: string | null;
}): Record<string, string> {
  return deferrals === 0 ? {} : { [paramName]: `{"deferrals":${deferrals},"output":${output ?? "null"}}` };
}

/** The path parameters without what was deferred, and what was deferred. */
export function takeDeferred(params: Readonly<Record<string, string>>): { params: Readonly<Record<string, string>>; deferred?: Deferred } {
  const text = params[paramName];
  if (text === undefined) return { params };
  const { [paramName]: _taken, ...rest } = params;
  return { params: rest, deferred: JSON.parse(text) as Deferred };
}
