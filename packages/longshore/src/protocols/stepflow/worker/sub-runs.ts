// Runs that a component starts and reads, over gRPC.

import { ExecutionStatus, type ItemResult, type OrchestratorRunStatus, ResultOrder } from "../wire/messages.ts";
import { OrchestratorService } from "../wire/services.ts";
import type { SubmitRun } from "./callbacks.ts";
import { failureOfCall } from "./grpc-failure.ts";
import type { CallOptions } from "./orchestrators.ts";
import type { GetRunOptions, RunResult, RunState, RunStatus } from "./task-context.ts";
import type { TaskOrchestrator } from "./task-orchestrator.ts";

/** The orchestrator's default for how long a call waits for a run. */
const waitSecsDefault = 300;
/** How long the answer may take beyond the requested wait. */
const graceMs = 30_000;

const states: { readonly [status: number]: RunState } = {
  [ExecutionStatus.RUNNING]: "running",
  [ExecutionStatus.COMPLETED]: "completed",
  [ExecutionStatus.FAILED]: "failed",
  [ExecutionStatus.CANCELLED]: "cancelled",
  [ExecutionStatus.PAUSED]: "paused",
  [ExecutionStatus.RECOVERY_FAILED]: "recovery-failed",
};

const orders = { index: ResultOrder.BY_INDEX, completion: ResultOrder.BY_COMPLETION } as const;

/** The root run of the task. An orchestrator that is still recovering that run refuses the call, and says so. */
type Root = { readonly rootRunId: string } | Record<never, never>;

export class SubRuns {
  readonly #home: TaskOrchestrator;
  readonly #root: Root;
  readonly #signal: AbortSignal;

  constructor(home: TaskOrchestrator, rootRunId: string | undefined, signal: AbortSignal) {
    this.#home = home;
    this.#root = rootRunId === undefined ? {} : { rootRunId };
    this.#signal = signal;
  }

  async submit({ key: subflowKey, ...run }: SubmitRun): Promise<RunStatus> {
    try {
      const request = { runRequest: { ...run, input: [...run.input] }, subflowKey, ...this.#root };
      return statusOf(await this.#home.call(OrchestratorService.SubmitRun, request, this.#options(run)));
    } catch (error) {
      throw failureOfCall(`SubmitRun at ${this.#home.url}`, error);
    }
  }

  async get(runId: string, options: GetRunOptions): Promise<RunStatus> {
    const { wait = false, results: includeResults = false, order, timeoutSecs } = options;
    const resultOrder = order === undefined ? ResultOrder.UNSPECIFIED : orders[order];
    const timeout = timeoutSecs === undefined ? {} : { timeoutSecs };
    try {
      const request = { runId, wait, includeResults, resultOrder, ...timeout, ...this.#root };
      return statusOf(await this.#home.call(OrchestratorService.GetRun, request, this.#options(options)));
    } catch (error) {
      throw failureOfCall(`GetRun at ${this.#home.url}`, error);
    }
  }

  #options({ wait, timeoutSecs }: { readonly wait?: boolean; readonly timeoutSecs?: number }): CallOptions {
    const waitSecs = wait === true ? (timeoutSecs ?? waitSecsDefault) : 0;
    return { signal: this.#signal, timeoutMs: waitSecs * 1_000 + graceMs };
  }
}

function statusOf(run: OrchestratorRunStatus): RunStatus {
  const { runId, flowId, flowName, status, items, rootRunId, parentRunId, results } = run;
  const { total = 0, completed = 0, running = 0, failed = 0, cancelled = 0 } = items ?? {};
  return {
    runId,
    flowId,
    ...(flowName === undefined ? {} : { flowName }),
    status: states[status] ?? "unspecified",
    items: { total, completed, running, failed, cancelled },
    ...(rootRunId === "" ? {} : { rootRunId }),
    ...(parentRunId === undefined ? {} : { parentRunId }),
    results: results.map(resultOf),
  };
}

function resultOf({ itemIndex: index, status, output, errorMessage: message, errorCode: code }: ItemResult): RunResult {
  return {
    index,
    status: states[status] ?? "unspecified",
    ...(output === undefined ? {} : { output }),
    ...(message === undefined ? {} : { error: code === undefined ? { message } : { code, message } }),
  };
}
