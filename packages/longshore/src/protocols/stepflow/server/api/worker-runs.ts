// Runs that workers start and read while they run a component, over any transport: SubmitRun and GetRun of gRPC, runs/submit and runs/get
// of JSON-RPC. They belong to the run of the requesting step.

import type { Caller } from "../../../../core/actions.ts";
import type { Json, JsonObject } from "../../../../core/json/json.ts";
import type { TaskRow } from "../../../../engine/board/task.ts";
import type { Reader } from "../../../../engine/run/reader.ts";
import type { RunHead } from "../../../../engine/run/run.ts";
import type { GrpcError } from "../../../../net/grpc/status.ts";
import type { Encodable } from "../../../../net/protobuf/protobuf.ts";
import type { ProtocolEngine } from "../../../server-half.ts";
import { settingsOf } from "../../dialect/settings.ts";
import { taskErrorNames } from "../../wire/codes.ts";
import { ExecutionStatus, type OrchestratorRunStatus, ResultOrder, type TaskErrorCode } from "../../wire/messages.ts";
import type { Observability } from "../../wire/observability.ts";
import { denied } from "../refuse.ts";
import { wireRunId } from "../run-id.ts";
import type { Flows } from "./flows.ts";
import { gathered } from "./gathered-entries.ts";
import { flowIdOf, type Item, type Renderer, type Summary } from "./render.ts";
import { timeText } from "./rest-json.ts";
import type { RunService, WaitOptions } from "./run-service.ts";
import type { Parent, RunRequest } from "./submit.ts";

export interface WorkerRunDeps {
  readonly reader: Reader;
  readonly runs: RunService;
  readonly flows: Flows;
  readonly renderer: Renderer;
  readonly spanOf: ProtocolEngine["spanOf"];
  /** Whether the caller holds a task of the run or of a run of the same family. */
  holds(caller: Caller, rootRunId: string): Promise<boolean>;
}

/** The requesting task or, when it is not known, its root run. */
export type Requester = { readonly taskId: string } | { readonly rootRunId: string };

/** The caller, and the task that it works on, if known. A caller that may start any run needs none. */
export interface From {
  readonly caller: Caller;
  readonly requester?: Requester;
}

/** A run in the answer to a worker. */
export interface RunStatus {
  readonly summary: Summary;
  /** Undefined when results were not requested. */
  readonly results: readonly Item[] | undefined;
}

export class WorkerRuns {
  readonly #deps: WorkerRunDeps;

  constructor(deps: WorkerRunDeps) {
    this.#deps = deps;
  }

  /**
   * Two requests with the same key start one run. They must come from the same task, or from the same run if the task is not known, in the
   * same life of the run.
   */
  submit(request: Omit<RunRequest, "parent">, from: From, key: string | undefined, waiting: WaitOptions): Promise<RunStatus> {
    // Not async: see RunService.submit.
    return this.#started(request, from, key).then((run) => this.#ended(run, waiting));
  }

  async #started(request: Omit<RunRequest, "parent">, from: From, key: string | undefined): Promise<RunHead> {
    const parent = from.requester === undefined ? undefined : await this.#parentOf(from.requester, key);
    if (!from.caller.may("run.start")) await this.#refuseUnlessBound(request, from, parent?.run);
    return this.#deps.runs.submit({ ...request, ...(parent === undefined ? {} : { parent }) });
  }

  async #ended(run: RunHead, waiting: WaitOptions): Promise<RunStatus> {
    return this.#statusOf(await this.#deps.runs.waitFor(run, waiting), waiting.wait ? ResultOrder.BY_INDEX : undefined);
  }

  async get(runId: string, from: From, order: number | undefined, waiting: WaitOptions): Promise<RunStatus> {
    const run = await this.#deps.runs.findHead(runId);
    if (!from.caller.may("run.read") && !(await this.#isOfFamily(from, run))) throw notOfFamily(runId);
    return this.#statusOf(await this.#deps.runs.waitFor(run, waiting), order);
  }

  /** The run, flow, step and span of a task, as workers know them. */
  async observability(task: TaskRow): Promise<Observability> {
    const run = task.runId === null ? undefined : await this.#deps.reader.run(task.runId);
    const span = this.#deps.spanOf(task);
    if (run === undefined) return { ...span, stepId: task.step };
    return { ...span, runId: wireRunId(run.id), flowId: flowIdOf(run), stepId: task.step };
  }

  /** The root run of a task, as workers know it; empty for a task without a run. */
  async rootRunId(task: TaskRow): Promise<string> {
    const run = task.runId === null ? undefined : await this.#deps.reader.run(task.runId);
    return run === undefined ? "" : wireRunId(rootOf(run));
  }

  /** A worker may start runs only for a task that it holds, and only of flows that no worker has written. */
  async #refuseUnlessBound({ flowId, overrides }: Omit<RunRequest, "parent">, from: From, run: RunHead | undefined): Promise<void> {
    if (run === undefined || !(await this.#isOfFamily(from, run))) {
      throw denied(
        "A worker's token starts runs only on behalf of a task that it holds: root_run_id must name the root run of such a task.",
      );
    }
    if (overrides !== undefined && Object.keys(overrides).length > 0) {
      throw denied(
        "overrides rewrite a flow, which requires a token of the scope operator: store the flow in the form in which it must run.",
      );
    }
    const { flows } = this.#deps;
    // Blobs are not searched: the check ignores flows that a worker has stored there.
    if (!(await flows.isStored(flowId)) && !(await this.#isNamed(flows.checkId(flowId), run))) {
      throw denied(
        `The flow ${flowId} is not stored: a worker's token starts flows that an operator has stored, or that the flow of its run names.`,
      );
    }
  }

  async #isOfFamily({ caller, requester }: From, run: RunHead): Promise<boolean> {
    if (requester === undefined || "rootRunId" in requester) return this.#deps.holds(caller, rootOf(run));
    // The server has called the worker for this task.
    const task = await this.#deps.reader.task(requester.taskId);
    const own = task?.runId == null ? undefined : await this.#deps.reader.run(task.runId);
    return own !== undefined && rootOf(own) === rootOf(run);
  }

  /** Whether the flow of this run, or of its root, contains the id. */
  async #isNamed(flowId: string, run: RunHead): Promise<boolean> {
    const root = await this.#deps.reader.run(rootOf(run));
    const ids = [run, ...(root === undefined ? [] : [root])].map((each) => settingsOf(each).itemDefinitionId ?? each.definitionId);
    const texts = await Promise.all(ids.map((id) => this.#deps.flows.text(id)));
    return texts.some((text) => text?.includes(flowId));
  }

  async #parentOf(requester: Requester, key: string | undefined): Promise<Parent | undefined> {
    if ("rootRunId" in requester) {
      const run = await this.#deps.runs.find(requester.rootRunId);
      return { run, ...(key === undefined ? {} : { key: keyIn(run, `subflow ${key}`) }) };
    }
    const task = await this.#deps.reader.task(requester.taskId);
    const run = task?.runId == null ? undefined : await this.#deps.reader.run(task.runId);
    if (run === undefined) return undefined;
    return { run, taskId: requester.taskId, ...(key === undefined ? {} : { key: keyIn(run, `${requester.taskId} subflow ${key}`) }) };
  }

  async #statusOf(run: RunHead, order: number | undefined): Promise<RunStatus> {
    const summary = await this.#deps.renderer.summary(run);
    return { summary, results: order === undefined ? undefined : await gathered((count) => this.#deps.runs.results(run, order, count)) };
  }
}

function rootOf(run: RunHead): string {
  return settingsOf(run).rootRunId ?? run.id;
}

/** A run that is retried starts new runs: those of its earlier life may have been cancelled with it. */
function keyIn({ retries }: RunHead, key: string): string {
  return retries === 0 ? key : `life ${retries} ${key}`;
}

function notOfFamily(runId: string): GrpcError {
  return denied(`A worker's token reads only runs of the families in which it holds a task, and ${runId} belongs to none of them.`);
}

/** The form of gRPC. */
export function orchestratorStatus({ summary, results = [] }: RunStatus): Encodable<typeof OrchestratorRunStatus> {
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

/** The numbers of JSON-RPC (0.10 and 0.11) for the failure of a step; its clients need a number. */
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

/** The form of JSON-RPC: statuses as words, times as texts, results as FlowResult. */
export function runStatusJson({ summary, results }: RunStatus): JsonObject {
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
