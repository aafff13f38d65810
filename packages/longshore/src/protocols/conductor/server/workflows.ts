// The API of runs: starting, reading and controlling them. README.md, "The life of a workflow".

import type { JsonObject } from "../../../core/json/json.ts";
import { parseExact, writeExact } from "../../../core/json/json-exact.ts";
import { isOpen } from "../../../engine/board/task.ts";
import type { Reader } from "../../../engine/run/reader.ts";
import { isRunOpen, type Run } from "../../../engine/run/run.ts";
import type { Runs } from "../../../engine/run/runs.ts";
import { Skips } from "../../../engine/run/skips.ts";
import type { HttpReply, HttpRequest } from "../../../net/http/http.ts";
import { dialectName } from "../dialect/compile.ts";
import { type AttemptId, parseAttemptId } from "../dialect/ids.ts";
import { quote } from "../dialect/quoting.ts";
import { workflowStatusOf } from "../dialect/records.ts";
import { settingsOf } from "../dialect/settings.ts";
import type { Registry } from "./registry.ts";
import { type RunRenderer, shownVariables } from "./render-run.ts";
import type { Try } from "./render-task.ts";
import { badRequest, braces, conflict, hits, json, jsonText, noContent, notFound, nothing, text } from "./replies.ts";
import { checkedId, flagInQuery, idsOf, listInQuery, mapIn, objectOf, textIn, textInQuery, wholeIn, wholeOf } from "./request.ts";
import { parseStart, priorityInQuery, type Starter, variablesOf } from "./start.ts";
import type { DefinitionView, Views } from "./view.ts";

export interface WorkflowsDeps {
  readonly runs: Runs;
  readonly reader: Reader;
  readonly registry: Registry;
  readonly renderer: RunRenderer;
  readonly starter: Starter;
  readonly views: Views;
  removeRun(runId: string): Promise<boolean>;
}

/** Maximum number of runs in one response about a correlation id. */
const correlatedMax = 1_000;
/** Maximum number of ids in one list of running runs. */
const runningMax = 10_000;

export class Workflows {
  readonly #deps: WorkflowsDeps;

  constructor(deps: WorkflowsDeps) {
    this.#deps = deps;
  }

  start = async (request: HttpRequest): Promise<HttpReply> => text(await this.#deps.starter.start(await parseStart(request)));

  startByName = async (request: HttpRequest): Promise<HttpReply> => {
    const name = request.params.name as string;
    const version = request.params.version ?? textInQuery(request, "version");
    const id = await this.#deps.starter.startNamed({
      name,
      version: version === undefined ? undefined : wholeOf(version, "The version"),
      inline: undefined,
      input: objectOf(request, "the workflow's input"),
      priority: priorityInQuery(wholeIn(request, "priority", 0)),
      correlationId: checkedId(textInQuery(request, "correlationId"), "startWorkflow.arg2"),
      taskToDomain: undefined,
      createdBy: undefined,
      idempotencyKey: checkedId(textInQuery(request, "idempotencyKey"), "startWorkflow.idempotencyKey"),
      idempotencyStrategy: "RETURN_EXISTING",
    });
    return text(id);
  };

  get = async (request: HttpRequest): Promise<HttpReply> => {
    const id = request.params.workflow as string;
    return jsonText(await this.#deps.renderer.answer(() => this.known(id), flagInQuery(request, "includeTasks", true)));
  };

  status = async (request: HttpRequest): Promise<HttpReply> => {
    const run = await this.known(request.params.workflow as string);
    const { correlationId } = settingsOf(run);
    const { renderer } = this.#deps;
    return json({
      workflowId: run.id,
      ...(correlationId === undefined ? {} : { correlationId }),
      ...(flagInQuery(request, "includeOutput", false) ? { output: parseExact(run.output ?? "{}") } : {}),
      ...(flagInQuery(request, "includeVariables", false)
        ? { variables: parseExact(shownVariables(run, await renderer.viewOf(run))) }
        : {}),
      status: workflowStatusOf(run.state),
    });
  };

  tasks = async (request: HttpRequest): Promise<HttpReply> => {
    const shown = headOf(await this.known(request.params.workflow as string));
    const wanted = listInQuery(request, "status");
    const start = Math.max(0, wholeIn(request, "start", 0));
    const end = start + Math.max(0, wholeIn(request, "count", 15));
    const { renderer, reader } = this.#deps;
    const view = await renderer.viewOf(shown);
    // Without their texts, which are read for those that are shown.
    const matching: Pick<Try, "taskId" | "attempt" | "ordinal">[] = [];
    for await (const record of renderer.records(shown, view)) {
      const { taskId, attempt, ordinal, status } = record.shown;
      if (wanted.length === 0 || wanted.includes(status)) matching.push({ taskId, attempt, ordinal });
    }
    matching.sort((a, b) => a.ordinal - b.ordinal);
    const settings = settingsOf(shown);
    const texts = async function* () {
      for (const { taskId, attempt } of matching.slice(start, end)) {
        const task = await reader.task(taskId);
        const records = task === undefined ? [] : await renderer.recordsOf(task, view);
        const recorded = records.find((record) => record.shown.attempt === attempt);
        if (recorded !== undefined) yield renderer.taskText(recorded, shown, settings);
      }
    };
    return jsonText(await reader.listBody(texts, { cut: true, around: hits(matching.length) }));
  };

  running = async (request: HttpRequest): Promise<HttpReply> => {
    const version = wholeIn(request, "version", 1);
    const from = wholeIn(request, "startTime", 0);
    const until = wholeIn(request, "endTime", 0);
    const open = await this.#deps.reader.openRuns(request.params.name as string, runningMax);
    const matching = open.filter(
      (run) => settingsOf(run).version === version && run.createdAt >= from && (until === 0 || run.createdAt <= until),
    );
    return json(matching.map(({ id }) => id));
  };

  correlated = async (request: HttpRequest): Promise<HttpReply> => {
    const { name, correlation } = request.params as { name: string; correlation: string };
    return jsonText(await this.#deps.reader.listBody(() => this.#correlated(request, name, correlation)));
  };

  correlatedList = async (request: HttpRequest): Promise<HttpReply> => {
    const ids = idsOf(request, "getWorkflows.arg1", correlatedMax);
    const entries = () => this.#correlatedEntries(request, request.params.name as string, ids);
    return jsonText(await this.#deps.reader.listBody(entries, { around: braces }));
  };

  /** The texts of a map from ids to lists, in pieces separated by commas. One limit applies to all lists together. */
  async *#correlatedEntries(request: HttpRequest, name: string, ids: readonly string[]): AsyncGenerator<string, void, void> {
    for (const id of ids) {
      let piece = `${JSON.stringify(id)}:[`;
      let count = 0;
      for await (const text of this.#correlated(request, name, id)) {
        if (count++ > 0) yield piece;
        piece = count === 1 ? piece + text : text;
      }
      yield `${piece}]`;
    }
  }

  /** Oldest first. */
  async *#correlated(request: HttpRequest, name: string, correlation: string): AsyncGenerator<string, void, void> {
    const closed = flagInQuery(request, "includeClosed", false);
    const withTasks = flagInQuery(request, "includeTasks", false);
    const order = { by: "created", down: false } as const;
    const states = closed ? {} : { states: ["running", "paused"] as const };
    const wanted = { workflows: [name], aliases: [correlation], ...states, order, offset: 0, limit: correlatedMax };
    const { runs } = await this.#deps.reader.search(wanted);
    for await (const run of runs) yield await this.#deps.renderer.run(run, withTasks);
  }

  terminate = async (request: HttpRequest): Promise<HttpReply> => {
    await this.terminateRun(request.params.workflow as string, textInQuery(request, "reason"));
    return nothing;
  };

  async terminateRun(id: string, reason: string | undefined): Promise<void> {
    const run = await this.known(id);
    const after = run.state === "succeeded" ? run : await this.#deps.runs.tell(id, { kind: "cancel", error: reason });
    // The run may have completed since it was read.
    if (after?.state === "succeeded") throw conflict("Cannot terminate a COMPLETED workflow.");
  }

  remove = async (request: HttpRequest): Promise<HttpReply> => {
    await this.removeRun(request.params.workflow as string, flagInQuery(request, "archiveWorkflow", true));
    return nothing;
  };

  async removeRun(id: string, archive: boolean): Promise<void> {
    const run = await this.known(id);
    if (isRunOpen(run.state)) {
      if (archive) throw badRequest(`Cannot archive workflow: ${id} with status: ${workflowStatusOf(run.state)}`);
      await this.#deps.runs.tell(id, { kind: "cancel" });
    }
    await this.#deps.removeRun(id);
  }

  terminateAndRemove = async (request: HttpRequest): Promise<HttpReply> => {
    const id = request.params.workflow as string;
    await this.terminateRun(id, textInQuery(request, "reason"));
    await this.removeRun(id, flagInQuery(request, "archiveWorkflow", true));
    return nothing;
  };

  pause = async (request: HttpRequest): Promise<HttpReply> => {
    await this.pauseRun(request.params.workflow as string);
    return nothing;
  };

  async pauseRun(id: string): Promise<void> {
    const run = await this.known(id);
    if (!isRunOpen(run.state)) throw conflict(`Workflow ${named(run)} has ended, status cannot be updated.`);
    await this.#deps.runs.tell(id, { kind: "pause" });
  }

  resume = async (request: HttpRequest): Promise<HttpReply> => {
    await this.resumeRun(request.params.workflow as string);
    return nothing;
  };

  async resumeRun(id: string): Promise<void> {
    const run = await this.known(id);
    if (run.state !== "paused")
      throw conflict(`The workflow ${id} is not PAUSED so cannot resume. Current status is ${workflowStatusOf(run.state)}`);
    await this.#deps.runs.tell(id, { kind: "resume" });
  }

  retry = async (request: HttpRequest): Promise<HttpReply> => {
    await this.retryRun(request.params.workflow as string, flagInQuery(request, "resumeSubworkflowTasks", false));
    return noContent;
  };

  /** With `deep`, the failed run at the bottom is retried, and those above wait for it again. */
  async retryRun(id: string, deep: boolean): Promise<void> {
    const run = await this.known(id);
    if (isRunOpen(run.state)) throw notFound(`Workflow is still running.  status=${workflowStatusOf(run.state)}`);
    if (run.state === "succeeded")
      throw conflict("There are no retryable tasks! Use restart if you want to attempt entire workflow execution again.");
    const child = deep ? await this.#failedChild(run) : undefined;
    if (child !== undefined) return this.retryRun(child.id, true);
    await this.#deps.runs.tell(id, { kind: "retry" });
  }

  async #failedChild(run: Run): Promise<Run | undefined> {
    const { renderer, reader } = this.#deps;
    const { steps } = await renderer.viewOf(run);
    const ended = (await reader.heads(run.id)).filter(({ state }) => !isOpen(state) && state !== "done" && state !== "forgotten");
    for (const { id: taskId, attempt, node } of ended.sort((a, b) => a.ordinal - b.ordinal)) {
      if (steps[node]?.task.type !== "SUB_WORKFLOW") continue;
      const child = await reader.childOf(taskId, attempt);
      if (child !== undefined && !isRunOpen(child.state) && child.state !== "succeeded") return child;
    }
    return undefined;
  }

  restart = async (request: HttpRequest): Promise<HttpReply> => {
    await this.restartRun(request.params.workflow as string, flagInQuery(request, "useLatestDefinitions", false));
    return noContent;
  };

  async restartRun(id: string, latest: boolean): Promise<void> {
    const run = await this.known(id);
    if (isRunOpen(run.state)) throw conflict(`Workflow: ${stated(run)} is not in terminal state, unable to restart.`);
    const view = await this.#deps.renderer.viewOf(run);
    if (run.state === "succeeded" && !view.definition.restartable) {
      throw notFound(`Workflow: ${stated(run)} is non-restartable`);
    }
    const newest = latest ? await this.#deps.registry.startable(run.workflow) : undefined;
    if (latest && newest === undefined) throw notFound(`No such workflow found by name: ${run.workflow}`);
    const definition = newest === undefined ? view.definition : this.#deps.views.of(newest).definition;
    await this.#deps.runs.tell(id, { kind: "restart", definitionId: newest?.id, variables: variablesOf(definition) });
  }

  rerun = async (request: HttpRequest): Promise<HttpReply> => {
    const id = request.params.workflow as string;
    const run = await this.known(id);
    const body = objectOf(request, "the rerun request");
    if (isRunOpen(run.state)) throw conflict(`Workflow: ${stated(run)} is not in terminal state, unable to rerun.`);
    const input = mapIn(body, "workflowInput");
    const from = textIn(body, "reRunFromTaskId");
    const correlationId = checkedId(textIn(body, "correlationId"), "rerunWorkflow.arg1.correlationId");
    const changed = await this.#changed(run, input, correlationId);
    if (from === undefined) {
      const variables = variablesOf((await this.#deps.renderer.viewOf(run)).definition);
      await this.#deps.runs.tell(run.id, { kind: "restart", ...changed, variables });
    } else await this.#rerunFrom(run, from, mapIn(body, "taskInput"), changed);
    return text(id);
  };

  /** The fields of the run itself that a rerun changes. */
  async #changed(run: Run, given: JsonObject | undefined, correlationId: string | undefined): Promise<Changed> {
    const { quotedInput, ...before } = settingsOf(run);
    // A new input is data, even if the earlier input was quoted.
    const keeps = given === undefined || quotedInput === undefined;
    const kept = { ...before, ...(keeps && quotedInput ? { quotedInput } : {}), ...(correlationId === undefined ? {} : { correlationId }) };
    return {
      ...(given === undefined ? {} : { input: writeExact(given) }),
      ...(keeps && correlationId === undefined ? {} : { settings: JSON.stringify(kept) }),
      ...(correlationId === undefined ? {} : { alias: correlationId }),
    };
  }

  /** The task may be in a run that a step of this one started, however deep. */
  async #rerunFrom(run: Run, attemptId: string, taskInput: JsonObject | undefined, changed: Changed): Promise<void> {
    const id = parseAttemptId(attemptId);
    const dot = id?.taskId.lastIndexOf(".") ?? -1;
    const runId = id?.taskId.slice(0, dot);
    const node = Number(id?.taskId.slice(dot + 1));
    const target = runId === undefined ? undefined : await this.#deps.runs.run(runId);
    if (id === undefined || target === undefined || !(await this.#descendsFrom(target, run.id)) || !(await this.#hasBegun(id))) {
      throw badRequest(`Task ${attemptId} not found in workflow ${run.id}`);
    }
    const input = taskInput === undefined ? undefined : taskInputText(taskInput, await this.#deps.renderer.viewOf(target));
    const { input: runInput, ...others } = changed;
    const ofRun = { ...others, ...(runInput === undefined ? {} : { runInput }) };
    await this.#deps.runs.tell(target.id, { kind: "rerun", node, input, ...(target.id === run.id ? ofRun : {}) });
  }

  /** A step that was skipped by order has a record, but may still be run. */
  async #hasBegun({ taskId, attempt }: AttemptId): Promise<boolean> {
    const task = await this.#deps.reader.task(taskId);
    return task !== undefined && task.state !== "forgotten" && attempt <= task.attempt;
  }

  async #descendsFrom(run: Run, ancestorId: string): Promise<boolean> {
    let at: Run | undefined = run;
    for (let level = 0; at !== undefined && level < ancestorsMax; level++) {
      if (at.id === ancestorId) return true;
      const parent: string | undefined = settingsOf(at).parentWorkflowId;
      at = parent === undefined ? undefined : await this.#deps.runs.run(parent);
    }
    return false;
  }

  skip = async (request: HttpRequest): Promise<HttpReply> => {
    const { workflow: id, reference } = request.params as { workflow: string; reference: string };
    const run = await this.known(id);
    const body = objectOf(request, "the skip request");
    if (run.state !== "running")
      throw conflict(`The workflow ${id} is not running so the task referenced by ${reference} cannot be skipped`);
    const view = await this.#deps.renderer.viewOf(run);
    const node = view.steps.findIndex((step) => step?.task.taskReferenceName === reference);
    if (node < 0) throw badRequest(`The task referenced by ${reference} does not exist in the WorkflowDefinition ${run.workflow}`);
    const processed = () => conflict(`The task referenced ${reference} has already been processed, cannot be skipped`);
    const begun = (await this.#deps.reader.heads(id)).some((task) => task.node === node && task.state !== "forgotten");
    if (begun) throw processed();
    const input = taskInputText(mapIn(body, "taskInput") ?? {}, view);
    const after = await this.#deps.runs.tell(id, { kind: "skip", node, input, output: writeExact(mapIn(body, "taskOutput") ?? {}) });
    // The step may have started in the meantime.
    if (after === undefined || !new Skips(after).has(node)) throw processed();
    return nothing;
  };

  resetCallbacks = async (request: HttpRequest): Promise<HttpReply> => {
    const id = request.params.workflow as string;
    const run = await this.known(id);
    if (!isRunOpen(run.state)) throw conflict(`Workflow is in terminal state. Status = ${workflowStatusOf(run.state)}`);
    await this.#deps.runs.hasten(id);
    return noContent;
  };

  /** Here a decision is never pending, so this only reports whether the run exists. */
  decide = async (request: HttpRequest): Promise<HttpReply> => {
    await this.known(request.params.workflow as string);
    return nothing;
  };

  async known(id: string): Promise<Run> {
    const run = await this.#deps.runs.run(id);
    if (run === undefined) throw notFound(`No such workflow found by id: ${id}`);
    return run;
  }
}

/** A run as Conductor names it in its messages. */
function named(run: Run): string {
  return `${run.workflow}.${settingsOf(run).version}/${run.id}`;
}

function stated(run: Run): string {
  return `${named(run)}.${workflowStatusOf(run.state)}`;
}

/** Other fields of a run, as JSON texts. */
interface Changed {
  readonly input?: string;
  readonly settings?: string;
  readonly alias?: string;
}

/** Maximum nesting of runs that is searched. */
const ancestorsMax = 100;

/** A task's input from a caller, in the form that a record stores. */
function taskInputText(given: JsonObject, { dialect }: DefinitionView): string {
  return writeExact(dialect === dialectName ? quote(given) : given);
}

/** A run without its texts, which a waiting list must not keep in memory. */
function headOf({ id, workflow, definitionId, settings }: Run): Pick<Run, "id" | "workflow" | "definitionId" | "settings"> {
  return { id, workflow, definitionId, settings };
}
