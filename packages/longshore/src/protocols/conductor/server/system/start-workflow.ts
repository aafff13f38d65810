// START_WORKFLOW tasks: they start a run and do not wait for it. Texts are the real server's, without the names of its classes.

import { isObject, type Json, type JsonObject } from "../../../../core/json/json.ts";
import { parseExact } from "../../../../core/json/json-exact.ts";
import { kindOf } from "../../../../core/text.ts";
import { LaneFailure } from "../../../../engine/board/lane-worker.ts";
import type { TaskRow } from "../../../../engine/board/task.ts";
import { rootFrom } from "../../../../engine/run/run.ts";
import { attemptIdOf } from "../../dialect/ids.ts";
import { unquote } from "../../dialect/quoting.ts";
import { refusalOf, refusedByCore } from "../replies.ts";
import { inlineOf, type Starter, type StartRequest, startIn } from "../start.ts";
import type { Origin } from "./origin.ts";

export async function startWorkflow({ run, settings }: Origin, task: TaskRow, starter: Starter): Promise<JsonObject> {
  const given = requestIn(parseExact(task.input) as Json);
  const { correlationId, taskToDomain } = settings;
  try {
    const request = await requestOf(given);
    const inherited: StartRequest = {
      ...request,
      correlationId: request.correlationId || correlationId,
      taskToDomain: request.taskToDomain ?? taskToDomain,
      rootId: rootFrom(run),
    };
    // A task that runs again after a crash finds the run that it has started.
    return { workflowId: await starter.start(inherited, `START_WORKFLOW ${attemptIdOf(task.id, task.attempt)}`) };
  } catch (error) {
    const refused = refusalOf(error);
    throw refused === undefined ? error : failed(refused, error);
  }
}

/** Quoted. */
function requestIn(input: Json): JsonObject {
  const given = isObject(input) ? (input as JsonObject).startWorkflow : undefined;
  if (given === undefined || given === null) throw failed("Missing 'startWorkflow' in input data.");
  if (!isObject(given)) throw failed(`Error reading StartWorkflowRequest. startWorkflow is ${kindOf(given)}, expected an object`);
  return given as JsonObject;
}

async function requestOf(quoted: JsonObject): Promise<StartRequest> {
  const { workflowDef, input, ...rest } = quoted;
  const plain = unquote(rest) as JsonObject;
  // A definition may pass on secrets, so both keep their quotes.
  const inline = isObject(workflowDef) ? await inlineOf(workflowDef, "startWorkflow.workflowDef") : undefined;
  const name = inline?.name ?? plain.name;
  if (typeof name !== "string" || name === "")
    throw failed("startWorkflow validation failed. 'name' -> Workflow name cannot be null or empty. ");
  if (input !== undefined && input !== null && !isObject(input))
    throw failed(`Error reading StartWorkflowRequest. input is ${kindOf(input)}, expected an object`);
  const request = await startIn({ ...plain, name }).catch((error: unknown) => {
    const refused = refusedByCore(error);
    throw refused === undefined ? error : failed(`Error reading StartWorkflowRequest. ${refused.message}`, error);
  });
  return { ...request, inline, input: (input ?? {}) as JsonObject, quotedInput: true };
}

function failed(error: string, cause?: unknown): LaneFailure {
  return new LaneFailure({ error, retryable: true }, { cause });
}
