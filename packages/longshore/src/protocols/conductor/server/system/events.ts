// EVENT tasks: they send an event, whose payload is their own output. An event of this server is stored before the task ends: its runs are
// started, and the tasks of its handlers are queued (engine/event/). Texts are the real server's.

import { isObject, type Json, type JsonObject } from "../../../../core/json/json.ts";
import { parseExact, writeExact } from "../../../../core/json/json-exact.ts";
import { LaneFailure } from "../../../../engine/board/lane-worker.ts";
import type { TaskRow } from "../../../../engine/board/task.ts";
import type { ProtocolEngine } from "../../../server-half.ts";
import { attemptIdOf } from "../../dialect/ids.ts";
import { unquote } from "../../dialect/quoting.ts";
import { eventOfSink, kindOfSink, unsupportedSink } from "../../dialect/sinks.ts";
import { isLimit } from "../replies.ts";
import type { Origin } from "./origin.ts";

export async function sendEvent(origin: Origin, task: TaskRow, engine: Pick<ProtocolEngine, "events" | "makeId" | "clock">): Promise<Json> {
  const { run, settings, definition } = origin;
  const filled = unquote(parseExact(task.input) as Json);
  const input = isObject(filled) ? (filled as JsonObject) : {};
  const sink = typeof input.sink === "string" ? input.sink : "";
  const name = eventOfSink(sink, { workflow: definition.name, reference: origin.task.taskReferenceName });
  const output: JsonObject = {
    ...input,
    workflowInstanceId: run.id,
    workflowType: definition.name,
    workflowVersion: settings.version,
    correlationId: settings.correlationId ?? null,
    taskToDomain: { ...settings.taskToDomain },
    event_produced: name,
  };
  const id = attemptIdOf(task.id, task.attempt);
  const wrong = wrongSink(name);
  if (wrong !== undefined) {
    const error = `Error loading queue:${name}, for task:${id}, error: ${wrong}`;
    throw new LaneFailure({ error, retryable: true, output: writeExact(output) });
  }
  const event = { name, payload: writeExact(output), key: id, runId: run.id };
  try {
    await engine.events.emit(event, () => engine.makeId(engine.clock.now()));
  } catch (error) {
    if (!isLimit(error)) throw error;
    throw new LaneFailure({ error: error.message, retryable: true, output: event.payload }, { cause: error });
  }
  return output;
}

function wrongSink(name: string): string | undefined {
  if (!name.includes(":")) return `Illegal event ${name}`;
  const why = unsupportedSink(name);
  if (why !== undefined) return `this server cannot send to ${name}: ${why}`;
  return kindOfSink(name) === "conductor" ? undefined : `Unknown queue type ${kindOfSink(name)}`;
}
