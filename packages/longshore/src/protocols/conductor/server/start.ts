// Starts runs: by request, by name, by a step of another run, and after a failure. All of these use one function, which adds Conductor's
// settings of a run.

import type { Clock } from "../../../core/clock.ts";
import { isObject, type JsonObject } from "../../../core/json/json.ts";
import { parseExact, writeExact } from "../../../core/json/json-exact.ts";
import { inBodyTurns, parseInSlices as parseJsonInSlices } from "../../../core/json/json-slices.ts";
import { payloadBytesMax } from "../../../core/payload-size.ts";
import { inTurns } from "../../../core/slices/slice-work.ts";
import type { Board } from "../../../engine/board/board.ts";
import type { Definition } from "../../../engine/run/dialect.ts";
import type { Message, Run } from "../../../engine/run/run.ts";
import type { Runs } from "../../../engine/run/runs.ts";
import type { NewChild } from "../../../engine/run/store.ts";
import type { HttpRequest } from "../../../net/http/http.ts";
import { dialectName } from "../dialect/compile.ts";
import { readTaskToDomain, type TaskToDomain } from "../dialect/domains.ts";
import { attemptIdOf, parseAttemptId } from "../dialect/ids.ts";
import { javaText } from "../dialect/java-text.ts";
import type { WorkflowDef } from "../dialect/model.ts";
import { quote, unquote } from "../dialect/quoting.ts";
import { namesSecret } from "../dialect/secrets.ts";
import { type Settings, settingsOf } from "../dialect/settings.ts";
import { childInput } from "../dialect/snapshot.ts";
import { parseInSlices } from "../dialect/workflow-def.ts";
import type { Registry } from "./registry.ts";
import { badRequest, conflict, invalid, notFound, Refused, refusedByCore } from "./replies.ts";
import { checkedId, mapIn, numberIn, objectOf, textIn } from "./request.ts";
import type { Views } from "./view.ts";

export interface StartDeps {
  readonly clock: Clock;
  readonly runs: Runs;
  readonly registry: Registry;
  readonly board: Board;
  readonly views: Views;
  /** Returns a whole run in the form of this wire: the input of the run that follows its failure. */
  shown(run: Run): Promise<string>;
}

export interface StartRequest {
  readonly name: string;
  readonly version: number | undefined;
  readonly inline: WorkflowDef | undefined;
  readonly input: JsonObject;
  readonly priority: number;
  readonly correlationId: string | undefined;
  readonly taskToDomain: TaskToDomain | undefined;
  readonly createdBy: string | undefined;
  readonly idempotencyKey: string | undefined;
  /** Of a test: the reference names of the tasks whose results it gives. */
  readonly mocked?: readonly string[];
  readonly idempotencyStrategy: "FAIL" | "RETURN_EXISTING" | "FAIL_ON_RUNNING";
  /** The input is quoted: it comes from a definition, which may pass on secrets. */
  readonly quotedInput?: true;
  /** The event that starts it. */
  readonly event?: string;
  /** The root of the run that starts it. */
  readonly rootId?: string;
}

/** An input above this is refused: README.md, "Limits". */
const inputBytesMax = payloadBytesMax;
const tooLargeText = `The workflow input is larger than ${inputBytesMax} bytes, which is the limit.`;

/** Maximum nesting of workflows: one that starts itself would never end. */
const depthMax = 100;

export class Starter {
  readonly #deps: StartDeps;

  constructor(deps: StartDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the id of the run, or of an earlier run with the same idempotency key. With `once`, a second start with the same text returns
   * the first run.
   */
  async start(request: StartRequest, once?: string): Promise<string> {
    const run = await this.made(request);
    if (once !== undefined && request.idempotencyKey === undefined) return (await this.#deps.runs.begin({ ...run, key: once })).run.id;
    return request.idempotencyKey === undefined
      ? (await this.#deps.runs.begin(run)).run.id
      : this.#startOnce(request, run, request.idempotencyKey);
  }

  /** The run that a request starts, without its id and key. */
  async made(request: StartRequest) {
    const definition = await this.#definition(request);
    const root = request.rootId === undefined ? {} : { rootId: request.rootId };
    return { workflow: request.name, ...runOf(definition, this.#source(definition), request), ...root };
  }

  /** The same for a request with the name in its path, for which Conductor has other error texts. */
  async startNamed(request: StartRequest): Promise<string> {
    if (await this.#known(request)) return this.start(request);
    throw notFound(`No such workflow found by name: ${request.name}, version: ${request.version ?? null}`);
  }

  async #startOnce(request: StartRequest, run: Parameters<Runs["begin"]>[0], key: string): Promise<string> {
    const strategy = request.idempotencyStrategy;
    const first = await this.#deps.runs.begin({ ...run, key, keyWhileOpen: strategy === "FAIL_ON_RUNNING" });
    if (first.created || strategy === "RETURN_EXISTING") return first.run.id;
    throw conflict(`Workflow with idempotency key ${key} already exists: ${first.run.id}`);
  }

  async #definition({ name, version, inline }: StartRequest): Promise<Definition> {
    if (inline !== undefined) return this.#deps.registry.define(inline);
    const known = await this.#known({ name, version });
    if (known === undefined) throw notFound(`No such workflow defined. name=${name}, version=${version ?? null}`);
    return known;
  }

  async #known({ name, version }: Pick<StartRequest, "name" | "version">): Promise<Definition | undefined> {
    const { registry, runs } = this.#deps;
    const own = await registry.startable(name, version === 0 ? undefined : version);
    return own ?? (version === undefined ? runs.definition(name) : undefined);
  }

  /** Resolves what a step of a run, or the failure of a run, starts. */
  child = async (message: Message & { kind: "start-run" }, id: string): Promise<NewChild> => {
    const from = await this.#deps.runs.run(message.from);
    if (from === undefined) return { failed: "the run that started it was removed" };
    try {
      return message.parentTaskId === null ? await this.#afterFailure(from, id) : await this.#ofStep(from, message, id);
    } catch (error) {
      const refused = refusedByCore(error);
      if (refused === undefined) throw error;
      return { failed: refused.message };
    }
  };

  async #ofStep(parent: Run, message: Message & { kind: "start-run" }, id: string): Promise<NewChild> {
    const request = parseExact(message.input) as JsonObject;
    const settings = settingsOf(parent);
    const depth = (settings.depth ?? 0) + 1;
    if (depth > depthMax) return { failed: `There are ${depthMax} workflows around it already, which is the limit.` };
    const name = typeof request.subWorkflowName === "string" ? request.subWorkflowName : "";
    const inline = isObject(request.subWorkflowDefinition)
      ? await inlineOf(request.subWorkflowDefinition, "subWorkflowDefinition")
      : undefined;
    const version = Number(request.subWorkflowVersion ?? 0);
    const definition =
      inline === undefined
        ? await this.#deps.registry.startable(name, version > 0 ? version : undefined)
        : await this.#deps.registry.define(inline);
    if (definition === undefined) return { failed: `No such workflow defined. name=${name}, version=${version > 0 ? version : null}` };
    const input = childInput(request);
    const given = request.subWorkflowTaskToDomain;
    const own = isObject(given) ? readTaskToDomain(given as JsonObject, "subWorkflowTaskToDomain") : undefined;
    if (own !== undefined && "violations" in own) return { failed: own.violations.map(({ message }) => message).join(" ") };
    const domains = own?.value ?? settings.taskToDomain;
    const priority = clampPriority(Number(request.priority ?? 0));
    const kept: Settings = {
      version: this.#source(definition).version,
      priority,
      ...(settings.correlationId === undefined ? {} : { correlationId: settings.correlationId }),
      ...(domains === undefined ? {} : { taskToDomain: domains }),
      ...(settings.mocked === undefined ? {} : { mocked: settings.mocked }),
      parentWorkflowId: parent.id,
      depth,
      ...(message.parentTaskId === null ? {} : { parentWorkflowTaskId: await this.#attemptOf(message.parentTaskId, message.attempt) }),
    };
    return this.#newChild(id, inline?.name ?? name, definition, input, kept);
  }

  async #attemptOf(taskId: string, attempt: number | undefined): Promise<string> {
    return attemptIdOf(taskId, attempt ?? (await this.#deps.board.task(taskId))?.attempt ?? 0);
  }

  #source(definition: Definition): WorkflowDef {
    return this.#deps.views.of(definition).definition;
  }

  async #afterFailure(failed: Run, id: string): Promise<NewChild> {
    const definition = await this.#deps.runs.definitionById(failed.definitionId);
    const source = definition === undefined ? undefined : this.#source(definition);
    if (source === undefined) return { failed: "the definition of the failed run is gone" };
    const own = parseExact(failed.input) as JsonObject;
    const input = settingsOf(failed).quotedInput ? own : (quote(own) as JsonObject);
    const name = failureName(source.failureWorkflow ?? "", input);
    const next = await this.#deps.registry.startable(name, source.failureWorkflowVersion);
    if (next === undefined) {
      const reason = `No such workflow defined. name=${name}, version=${source.failureWorkflowVersion ?? null}`;
      return { failed: `Error workflow ${name} failed to start.  reason: ${reason}` };
    }
    const text = await this.#deps.shown(failed);
    const shown = (await inBodyTurns(text, parseJsonInSlices(text))) as JsonObject;
    const settings = settingsOf(failed);
    const about = {
      workflowId: failed.id,
      reason: failed.error ?? "",
      failureStatus: String(shown.status),
      ...failureTask(shown),
      failedWorkflow: shown,
    };
    const kept: Settings = {
      version: this.#source(next).version,
      priority: 0,
      ...(settings.correlationId === undefined ? {} : { correlationId: settings.correlationId }),
      ...(settings.taskToDomain === undefined ? {} : { taskToDomain: settings.taskToDomain }),
    };
    const child = this.#newChild(id, name, next, { ...input, ...(quote(about) as JsonObject) }, kept);
    if (!isTooLarge(child)) return child;
    // The successor can still look up the failed run.
    const { failedWorkflow: _shown, ...less } = about;
    const smaller = this.#newChild(id, name, next, { ...input, ...(quote(less) as JsonObject) }, kept);
    return isTooLarge(smaller) ? { failed: `Error workflow ${name} failed to start.  reason: ${tooLargeText}` } : smaller;
  }

  /** `given` is quoted. */
  #newChild(id: string, workflow: string, definition: Definition, given: JsonObject, settings: Settings): NewChild {
    const source = this.#source(definition);
    const { input, ...quoted } = inputFor(definition, source, given);
    return {
      id,
      workflow,
      definitionId: definition.id,
      input,
      alias: settings.correlationId ?? null,
      priority: settings.priority === 0 ? 0 : -settings.priority,
      settings: writeExact({ ...settings, ...quoted }),
      variables: variablesOf(source),
    };
  }
}

type RunRequest = Pick<StartRequest, "input" | "priority"> & Partial<StartRequest>;

/** The fields of a new run of a definition. */
export function runOf(definition: Definition, source: WorkflowDef, request: RunRequest) {
  const given = request.quotedInput ? request.input : (quote(request.input) as JsonObject);
  const { input, ...quoted } = inputFor(definition, source, given);
  if (Buffer.byteLength(input) > inputBytesMax) throw new Refused(413, tooLargeText);
  const settings: Settings = {
    version: source.version,
    priority: request.priority,
    ...(request.correlationId === undefined ? {} : { correlationId: request.correlationId }),
    ...(request.taskToDomain === undefined ? {} : { taskToDomain: request.taskToDomain }),
    ...(request.createdBy === undefined ? {} : { createdBy: request.createdBy }),
    ...(request.idempotencyKey === undefined ? {} : { idempotencyKey: request.idempotencyKey }),
    ...(request.mocked === undefined ? {} : { mocked: request.mocked }),
    ...(request.event === undefined ? {} : { event: request.event }),
    ...quoted,
  };
  return {
    definitionId: definition.id,
    input,
    alias: request.correlationId ?? null,
    priority: request.priority === 0 ? 0 : -request.priority,
    settings: writeExact(settings),
    variables: variablesOf(source),
  };
}

/** A run's input as JSON text, and the settings for this input. `given` is quoted; a run of another dialect gets the unquoted input. */
function inputFor(definition: Definition, source: WorkflowDef, given: JsonObject): { input: string } & Pick<Settings, "quotedInput"> {
  if (definition.dialect !== dialectName) return { input: writeExact(unquote(given)) };
  const input = writeExact({ ...source.inputTemplate, ...given });
  return namesSecret(input) ? { input, quotedInput: true } : { input };
}

/** A name in the path replaces the one in the body. */
export function parseStart(request: HttpRequest, given?: string): Promise<StartRequest> {
  return startIn(objectOf(request, "the start request"), given);
}

/** `path` begins the names of fields in errors. */
export async function startIn(body: JsonObject, given?: string, path = "startWorkflow.arg0"): Promise<StartRequest> {
  if (body.externalInputPayloadStoragePath)
    throw badRequest("externalInputPayloadStoragePath is set, but Longshore has no external payload storage: send the input in `input`.");
  if (body.input === null) throw badRequest("NULL input passed when starting workflow");
  const inline =
    body.workflowDef === undefined || body.workflowDef === null ? undefined : await inlineOf(body.workflowDef, `${path}.workflowDef`);
  const name = inline?.name ?? given ?? textIn(body, "name") ?? "";
  if (name === "") throw invalid([{ path: `${path}.name`, message: "Workflow name cannot be null or empty" }]);
  return {
    name,
    version: numberIn(body, "version"),
    inline,
    input: mapIn(body, "input") ?? {},
    priority: priorityOf(numberIn(body, "priority") ?? 0),
    correlationId: idIn(body, "correlationId"),
    taskToDomain: domainsIn(body),
    createdBy: idIn(body, "createdBy"),
    idempotencyKey: idIn(body, "idempotencyKey") || undefined,
    idempotencyStrategy: strategyOf(textIn(body, "idempotencyStrategy")),
  };
}

function idIn(body: JsonObject, field: string): string | undefined {
  return checkedId(textIn(body, field), `startWorkflow.arg0.${field}`);
}

function domainsIn(body: JsonObject): TaskToDomain | undefined {
  const given = mapIn(body, "taskToDomain");
  if (given === undefined) return undefined;
  const checked = readTaskToDomain(given, "startWorkflow.arg0.taskToDomain");
  if ("violations" in checked) throw invalid(checked.violations);
  return checked.value;
}

function priorityOf(priority: number): number {
  if (isPriority(priority)) return priority;
  const bound = priority < 0 ? "minimum 0" : "maximum 99";
  const message = `priority: ${priority} should be ${bound}`;
  throw invalid([{ path: "startWorkflow.arg0.priority", message, invalidValue: String(priority) }]);
}

export function priorityInQuery(priority: number): number {
  if (isPriority(priority)) return priority;
  const message = priority < 0 ? "0 is the minimum priority value" : "99 is the maximum priority value";
  throw invalid([{ path: "startWorkflow.arg3", message, invalidValue: String(priority) }]);
}

function isPriority(priority: number): boolean {
  return priority >= 0 && priority <= 99;
}

function clampPriority(priority: number): number {
  return Number.isFinite(priority) ? Math.min(Math.max(Math.trunc(priority), 0), 99) : 0;
}

function strategyOf(text: string | undefined): StartRequest["idempotencyStrategy"] {
  if (text === undefined || text === "" || text === "RETURN_EXISTING") return "RETURN_EXISTING";
  if (text === "FAIL" || text === "FAIL_ON_RUNNING") return text;
  throw badRequest(`idempotencyStrategy is ${JSON.stringify(text)}, expected one of FAIL, RETURN_EXISTING, FAIL_ON_RUNNING.`);
}

export async function inlineOf(value: unknown, path: string): Promise<WorkflowDef> {
  const checked = await inTurns(parseInSlices(value, path, { mayBeEmpty: true }));
  if ("violations" in checked) throw invalid(checked.violations);
  return checked.value;
}

/** The initial variables of a run, as JSON text; null when there are none. */
export function variablesOf({ variables }: WorkflowDef): string | null {
  return Object.keys(variables).length === 0 ? null : writeExact(variables);
}

/** The workflow's name, or `$workflow.input.<key>` for a name from the failed run's input. */
function failureName(wanted: string, input: JsonObject): string {
  if (!wanted.startsWith("$")) return wanted;
  const key = wanted.replace(/[${}]/g, "").split(".")[2] ?? "";
  return javaText(input[key] ?? "");
}

function failureTask(shown: JsonObject): { failureTaskId?: string } {
  const tasks = Array.isArray(shown.tasks) ? (shown.tasks as JsonObject[]) : [];
  const failed = tasks.findLast((task) => ["FAILED", "FAILED_WITH_TERMINAL_ERROR", "TIMED_OUT"].includes(String(task.status)));
  return typeof failed?.taskId === "string" && parseAttemptId(failed.taskId) !== undefined ? { failureTaskId: failed.taskId } : {};
}

function isTooLarge(child: NewChild): boolean {
  return "input" in child && Buffer.byteLength(child.input) > inputBytesMax;
}
