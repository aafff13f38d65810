// Runs that workers ask for while they carry out a component, over whichever transport: gRPC's SubmitRun and GetRun, and runs/submit and
// runs/get of JSON-RPC. They belong to the run whose step asks.

import type { Task } from "../../../board/task.ts";
import { settingsOf } from "../../../dialect/stepflow/settings.ts";
import type { Json, JsonObject } from "../../../json.ts";
import type { Encodable } from "../../../protobuf/protobuf.ts";
import type { Reader } from "../../../run/reader.ts";
import type { Run } from "../../../run/run.ts";
import { taskErrorNames } from "../codes.ts";
import { ExecutionStatus, type OrchestratorRunStatus, ResultOrder, type TaskErrorCode } from "../messages.ts";
import type { Observability } from "../observability.ts";
import { wireRunId } from "../run-id.ts";
import { flowIdOf, type Item, type Renderer, type Summary } from "./render.ts";
import { timeText } from "./rest-json.ts";
import type { Patience, RunService } from "./run-service.ts";
import type { Parent, Submitter, Wish } from "./submit.ts";

export interface WorkerRunDeps {
  readonly reader: Reader;
  readonly runs: RunService;
  readonly submitter: Submitter;
  readonly renderer: Renderer;
}

/** On whose behalf: the task that is carried out, or at least the run that it belongs to. */
export type Asker = { readonly taskId: string } | { readonly rootRunId: string };

/** A run as workers are told of it. */
export interface ToldRun {
  readonly summary: Summary;
  /** Undefined unless they were asked for. */
  readonly results: readonly Item[] | undefined;
}

export class WorkerRuns {
  readonly #deps: WorkerRunDeps;

  constructor(deps: WorkerRunDeps) {
    this.#deps = deps;
  }

  /** With a key, asking twice starts one run: twice for the same task, or for the same run where the task is not known. */
  async submit(wish: Omit<Wish, "parent">, asker: Asker | undefined, key: string | undefined, patience: Patience): Promise<ToldRun> {
    const parent = asker === undefined ? undefined : await this.#parentOf(asker, key);
    const run = await this.#deps.submitter.submit({ ...wish, ...(parent === undefined ? {} : { parent }) });
    return this.#told(await this.#deps.runs.waitFor(run, patience), patience.wait ? ResultOrder.BY_INDEX : undefined);
  }

  async get(runId: string, order: number | undefined, patience: Patience): Promise<ToldRun> {
    return this.#told(await this.#deps.runs.waitFor(await this.#deps.runs.find(runId), patience), order);
  }

  /** Which run, flow and step a task belongs to, as workers know them. */
  async observability(task: Task): Promise<Observability> {
    const run = task.runId === null ? undefined : await this.#deps.reader.run(task.runId);
    if (run === undefined) return { stepId: task.step };
    return { runId: wireRunId(run.id), flowId: flowIdOf(run), stepId: task.step };
  }

  /** The run that everything around a task belongs to, as workers know it; empty for a task without a run. */
  async rootRunId(task: Task): Promise<string> {
    const run = task.runId === null ? undefined : await this.#deps.reader.run(task.runId);
    return run === undefined ? "" : wireRunId(settingsOf(run).rootRunId ?? run.id);
  }

  async #parentOf(asker: Asker, key: string | undefined): Promise<Parent | undefined> {
    if ("rootRunId" in asker) {
      const run = await this.#deps.runs.find(asker.rootRunId);
      return { run, ...(key === undefined ? {} : { key: `subflow ${key}` }) };
    }
    const task = await this.#deps.reader.task(asker.taskId);
    const run = task?.runId == null ? undefined : await this.#deps.reader.run(task.runId);
    if (run === undefined) return undefined;
    return { run, taskId: asker.taskId, ...(key === undefined ? {} : { key: `${asker.taskId} subflow ${key}` }) };
  }

  async #told(run: Run, order: number | undefined): Promise<ToldRun> {
    const summary = await this.#deps.renderer.summary(run);
    return { summary, results: order === undefined ? undefined : await this.#deps.runs.results(run, order) };
  }
}

/** As gRPC has it. */
export function orchestratorStatus({ summary, results = [] }: ToldRun): Encodable<typeof OrchestratorRunStatus> {
  const { orchestratorId: _id, finishedAtSeqno: _end, ...shared } = summary;
  return { ...shared, results: [...results] };
}

const words: { readonly [status: number]: string } = {
  [ExecutionStatus.RUNNING]: "running",
  [ExecutionStatus.COMPLETED]: "completed",
  [ExecutionStatus.FAILED]: "failed",
  [ExecutionStatus.CANCELLED]: "cancelled",
  [ExecutionStatus.PAUSED]: "paused",
};

/** The numbers that JSON-RPC (0.10 and 0.11) has for what a step failed with; its clients want a number. */
const rpcNumbers: { readonly [code in TaskErrorCode]: number } = {
  UNSPECIFIED: -32202,
  TIMEOUT: -32300,
  INVALID_INPUT: -32003,
  COMPONENT_FAILED: -32100,
  CANCELLED: -32202,
  UNREACHABLE: -32300,
  COMPONENT_NOT_FOUND: -32001,
  RESOURCE_UNAVAILABLE: -32102,
  EXPRESSION_FAILURE: -32200,
  ORCHESTRATOR_ERROR: -32202,
  WORKER_ERROR: -32000,
};

/** As JSON-RPC has it: statuses as words, times as texts, results as FlowResult. */
export function runStatusJson({ summary, results }: ToldRun): JsonObject {
  const { runId = "", flowId = "", flowName, status = 0, items, createdAt = 0, completedAt, rootRunId = "", parentRunId } = summary;
  return {
    runId,
    flowId,
    ...(flowName === undefined ? {} : { flowName }),
    status: words[status] ?? "running",
    items: (items ?? {}) as JsonObject,
    createdAt: timeText(createdAt),
    ...(completedAt === undefined ? {} : { completedAt: timeText(completedAt) }),
    rootRunId,
    ...(parentRunId === undefined ? {} : { parentRunId }),
    ...(results === undefined ? {} : { results: results.map(itemStatusJson) }),
  };
}

function itemStatusJson({ itemIndex = 0, status = 0, completedAt, output, errorMessage, errorCode }: Item): JsonObject {
  const name = taskErrorNames.get(errorCode ?? 0) ?? "UNSPECIFIED";
  const failure = errorMessage === undefined ? undefined : { outcome: "failed", error: { code: rpcNumbers[name], message: errorMessage } };
  const result = failure ?? (output === undefined ? undefined : { outcome: "success", result: output as Json });
  return {
    itemIndex,
    status: words[status] ?? "running",
    ...(result === undefined ? {} : { result }),
    ...(completedAt === undefined ? {} : { completedAt: timeText(completedAt) }),
  };
}
