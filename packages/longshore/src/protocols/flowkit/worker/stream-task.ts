// A task whose input is a stream of batches. On FlowKit its batches come from adapters and its results are sent one by one. On other
// protocols it makes its batches itself, emits their results, and returns its final metrics with a count.

import type { Context } from "../../../core/context.ts";
import { LongshoreError } from "../../../core/errors.ts";
import { isObject, type JsonObject } from "../../../core/json/json.ts";
import { type Task, type TaskOptions, task } from "../../../core/task.ts";
import type { StreamWork } from "./drive.ts";
import type { BatchGenerator, StreamHandler } from "./handler.ts";
import { driveHere } from "./inline-drive.ts";

/** A task with batches, which FlowKit's worker recognises. Its handler runs in the worker's own thread. */
export interface StreamTask extends Task<unknown, JsonObject> {
  readonly stream: StreamWork;
}

/** The options of `streamTask()`. */
export type StreamTaskOptions = Pick<TaskOptions, "description" | "timeout" | "retry" | "concurrency" | "labels">;

/** `streamTask("probe", { processBatch })`, or `streamTask("probe", async function* (batches, ctx) { ... })`. */
export function streamTask(role: string, work: StreamHandler | BatchGenerator, options: StreamTaskOptions = {}): StreamTask {
  if (typeof work !== "function" && typeof (work as Partial<StreamHandler> | undefined)?.processBatch !== "function") {
    throw new LongshoreError(
      "LONGSHORE_BAD_CONFIG",
      `The stream task "${role}" has no processBatch, expected an object with that function, or an async generator over batches.`,
    );
  }
  const stream: StreamWork = typeof work === "function" ? { kind: "generator", generate: work } : { kind: "handler", handler: work };
  const handle = (input: unknown, context: Context): Promise<JsonObject> => driveHere(role, stream, input, context);
  return Object.freeze({ ...(task(role, handle, options) as Task<unknown, JsonObject>), stream });
}

export function isStreamTask(value: Task): value is StreamTask {
  const { stream } = value as Partial<StreamTask>;
  return isObject(stream) && (stream.kind === "handler" || stream.kind === "generator");
}
