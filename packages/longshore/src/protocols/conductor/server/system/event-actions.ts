// What an event handler does with an event. Each handler has a task of its own for each event, so a handler that fails is tried again alone.
// Its actions may then be performed twice: a start has a key, and a task that has ended stays as it is.

import { isObject, isScalar, type Json, type JsonObject, setOwn } from "../../../../core/json/json.ts";
import { parseExact, writeExact } from "../../../../core/json/json-exact.ts";
import { LaneFailure } from "../../../../engine/board/lane-worker.ts";
import { isOpen, type TaskRow } from "../../../../engine/board/task.ts";
import type { SubscribedEvent } from "../../../../engine/event/store.ts";
import { isRunOpen } from "../../../../engine/run/run.ts";
import type { ProtocolEngine } from "../../../server-half.ts";
import { type EventAction, type EventHandler, readHandler } from "../../dialect/event-handler.ts";
import { compileValue } from "../../dialect/expression.ts";
import { fillValue } from "../../dialect/fill.ts";
import { parseAttemptId } from "../../dialect/ids.ts";
import { quote, unquote } from "../../dialect/quoting.ts";
import { documentKinds } from "../../dialect/settings.ts";
import { evaluationMsMax } from "../evaluate/evaluation.ts";
import { refusalOf } from "../replies.ts";
import { type Starter, startIn } from "../start.ts";
import type { Expressions } from "./expressions.ts";

export interface ActionDeps {
  readonly engine: Pick<ProtocolEngine, "board" | "reader" | "documents">;
  readonly expressions: Expressions;
  starter(): Promise<Starter>;
}

export class EventActions {
  readonly #deps: ActionDeps;

  constructor(deps: ActionDeps) {
    this.#deps = deps;
  }

  /** Returns what was done. Throws a LaneFailure when an action could not be performed. */
  async perform(task: TaskRow, signal: AbortSignal): Promise<Json> {
    const event = parseExact(task.input) as unknown as SubscribedEvent;
    const document = await this.#deps.engine.documents.document(documentKinds.eventHandler, event.subscriber);
    const handler = document === undefined ? undefined : readHandler(document.body);
    if (handler === undefined || !handler.active || handler.event !== event.event) return { status: "SKIPPED" };
    if (!(await this.#applies(handler, event, signal))) return { status: "SKIPPED" };
    const done: Json[] = [];
    for (const [at, action] of handler.actions.entries()) done.push(await this.#act(action, at, event, handler.name));
    return { status: "COMPLETED", actions: done };
  }

  async #applies(
    { condition, evaluatorType, name }: EventHandler,
    { payload, rootId = name }: SubscribedEvent,
    signal: AbortSignal,
  ): Promise<boolean> {
    if (condition === undefined || condition.trim() === "") return true;
    const input = writeExact(expanded(payload));
    if (evaluatorType === "value-param") return isTrue(isObject(payload) ? ((payload as JsonObject)[condition] ?? null) : null);
    const evaluation = { language: "javascript", code: condition, input, msMax: evaluationMsMax } as const;
    const evaluated = await this.#deps.expressions.evaluate(evaluation, signal, rootId);
    if ("output" in evaluated) return isTrue(parseExact(evaluated.output) as Json);
    throw failed(`the condition of the event handler ${name} cannot be evaluated: ${evaluated.failed}`, evaluated.isLimit === true);
  }

  async #act({ action, expandInlineJSON, ...given }: EventAction, at: number, event: SubscribedEvent, handler: string): Promise<Json> {
    const payload = expandInlineJSON ? expanded(event.payload) : event.payload;
    const filled = filledIn((given[action] ?? {}) as JsonObject, payload);
    const about = { "conductor.event.messageId": event.key, "conductor.event.name": event.event };
    try {
      if (action === "start_workflow") return await this.#start(filled, about, `event ${handler} ${at} ${event.event} ${event.key}`, event);
      return await this.#end(action === "complete_task" ? "complete" : "fail", filled, about);
    } catch (error) {
      const refused = refusalOf(error);
      throw refused === undefined ? error : failed(`the action ${at} of the event handler ${handler} failed: ${refused}`, true);
    }
  }

  async #start(filled: JsonObject, about: JsonObject, once: string, { event, payload, rootId }: SubscribedEvent): Promise<Json> {
    const sent = isObject(payload) ? (payload as JsonObject).taskToDomain : undefined;
    const input = isObject(filled.input) ? (filled.input as JsonObject) : {};
    const taskToDomain = filled.taskToDomain ?? (isObject(sent) && Object.keys(sent).length > 0 ? sent : null);
    const request = await startIn({ ...filled, taskToDomain, input: { ...input, ...about } });
    return {
      workflowId: await (await this.#deps.starter()).start({ ...request, event, ...(rootId === undefined ? {} : { rootId }) }, once),
    };
  }

  async #end(verb: "complete" | "fail", filled: JsonObject, about: JsonObject): Promise<Json> {
    const { workflowId = null, taskRefName = null, taskId = null, reasonForIncompletion = null } = filled;
    const task = taskId === null ? await this.#ofRun(String(workflowId), String(taskRefName)) : await this.#byId(String(taskId));
    if (task === undefined) return { skipped: `no open task ${String(taskId ?? taskRefName)} of workflow ${String(workflowId)}` };
    const hold = { taskId: task.id, attempt: task.attempt };
    const own = isObject(filled.output) ? (filled.output as JsonObject) : {};
    const output = writeExact({ ...own, workflowId, taskId, taskRefName, reasonForIncompletion, ...about });
    const { board } = this.#deps.engine;
    const error = reasonForIncompletion === null ? "" : String(reasonForIncompletion);
    const report = verb === "complete" ? board.complete(hold, output) : board.fail(hold, { error, retryable: true, output });
    const verdict = await report;
    // The task may have ended since it was read, or belong to the server.
    return verdict === "ok" || verdict === "again"
      ? { taskId: task.id }
      : { skipped: `the report on the task ${task.id} was refused: ${verdict}` };
  }

  /** The task of this reference name; in a loop that of the last iteration. */
  async #ofRun(runId: string, reference: string): Promise<TaskRow | undefined> {
    const { reader } = this.#deps.engine;
    const run = await reader.runHead(runId);
    if (run === undefined || !isRunOpen(run.state)) return undefined;
    const open = (await reader.heads(runId)).filter((task) => isOpen(task.state) && task.state !== "cancelling");
    const found = open.find(({ step }) => step === reference) ?? open.findLast(({ step }) => step.startsWith(`${reference}__`));
    return found === undefined ? undefined : reader.task(found.id);
  }

  async #byId(text: string): Promise<TaskRow | undefined> {
    const id = parseAttemptId(text);
    const task = id === undefined ? undefined : await this.#deps.engine.reader.task(id.taskId);
    return task !== undefined && task.attempt === id?.attempt && isOpen(task.state) ? task : undefined;
  }
}

/** `${...}` in the parameters of an action reads the payload. */
function filledIn(parameters: JsonObject, payload: Json): JsonObject {
  const fields = isObject(payload) ? (payload as JsonObject) : {};
  const filled = fillValue(compileValue(parameters), {
    entry: (name) => (Object.hasOwn(fields, name) ? (fields[name] as Json) : null),
    isData: () => true,
    document: () => quote(payload),
    environment: () => null,
    taskId: null,
  });
  if ("value" in filled) return unquote(filled.value) as JsonObject;
  throw failed("failed" in filled ? filled.failed : "a parameter of the action cannot be filled in", false);
}

/** Texts that are JSON objects or lists become these. */
function expanded(value: Json): Json {
  if (typeof value === "string") return /^\s*[[{]/.test(value) ? parsedOr(value) : value;
  if (Array.isArray(value)) return value.map(expanded);
  if (isScalar(value)) return value;
  const fields: JsonObject = {};
  for (const [name, field] of Object.entries(value)) setOwn(fields, name, expanded(field));
  return fields;
}

function parsedOr(text: string): Json {
  try {
    return parseExact(text) as Json;
  } catch {
    // The text only looks like JSON.
    return text;
  }
}

function isTrue(value: Json): boolean {
  return typeof value === "number" ? value > 0 : value === true;
}

function failed(error: string, retryable: boolean): LaneFailure {
  return new LaneFailure({ error, retryable });
}
