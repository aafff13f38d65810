// Converts runs to the form of the wire: summaries, results of items, states of steps. gRPC sends them as messages. REST sends them as JSON
// (api/rest-json.ts writes times as texts).

import type { Json } from "../../../../core/json/json.ts";
import { parseExact } from "../../../../core/json/json-exact.ts";
import type { TaskRow, TaskRowHead } from "../../../../engine/board/task.ts";
import { isOpen } from "../../../../engine/board/task.ts";
import type { Reader } from "../../../../engine/run/reader.ts";
import { isRunOpen, type Run, type RunHead, type RunState } from "../../../../engine/run/run.ts";
import type { Encodable } from "../../../../net/protobuf/protobuf.ts";
import { countsIn, type ItemCounts } from "../../dialect/items.ts";
import { stepResult } from "../../dialect/resolve.ts";
import { errorOf, type FlowError, type FlowResult, failed, flowResultOf, success } from "../../dialect/result.ts";
import { type FlowSettings, settingsOf } from "../../dialect/settings.ts";
import type { RunSummary, StepStatus } from "../../wire/api-messages.ts";
import { ExecutionStatus, type ItemResult, type ItemStatistics, TaskErrorCode } from "../../wire/messages.ts";
import { itemPrefix, wireRunId } from "../run-id.ts";
import { numberAt, numberOfEnd } from "./sequence.ts";
import type { FlowView, FlowViews, StepView } from "./view.ts";

export type Summary = Encodable<typeof RunSummary>;
export type Item = Encodable<typeof ItemResult>;
export type Step = Encodable<typeof StepStatus>;
type Statistics = Encodable<typeof ItemStatistics>;

const statuses: { readonly [state in RunState]: number } = {
  running: ExecutionStatus.RUNNING,
  paused: ExecutionStatus.PAUSED,
  blocked: ExecutionStatus.PAUSED,
  succeeded: ExecutionStatus.COMPLETED,
  failed: ExecutionStatus.FAILED,
  cancelled: ExecutionStatus.CANCELLED,
  "timed-out": ExecutionStatus.FAILED,
};

export function statusOf(state: RunState): number {
  return statuses[state];
}

/** The states of our runs that have this status on the wire. */
export function statesOf(status: number): RunState[] {
  return (Object.keys(statuses) as RunState[]).filter((state) => statuses[state] === status);
}

export class Renderer {
  readonly #reader: Reader;
  readonly #views: FlowViews;

  constructor(reader: Reader, views: FlowViews) {
    this.#reader = reader;
    this.#views = views;
  }

  /** The flow of a run. For a run with items, the flow of its items. */
  async viewOf(run: RunHead): Promise<FlowView> {
    const id = settingsOf(run).itemDefinitionId ?? run.definitionId;
    const definition = await this.#reader.definitionById(id);
    if (definition === undefined) throw new Error(`Run ${run.id} has no definition ${id}.`);
    return this.#views.of(definition);
  }

  async summary(run: RunHead): Promise<Summary> {
    const settings = settingsOf(run);
    const { name } = await this.viewOf(run);
    const startedAt = await this.startOf(run, settings);
    return {
      runId: wireRunId(run.id),
      flowId: flowIdOf(run, settings),
      ...(name === undefined ? {} : { flowName: name }),
      status: statusOf(run.state),
      items: await this.#statistics(run, settings),
      createdAt: run.createdAt,
      ...(run.endedAt === null ? {} : { completedAt: run.endedAt, finishedAtSeqno: numberOfEnd(startedAt, run.endedAt) }),
      rootRunId: wireRunId(settings.rootRunId ?? run.id),
      ...(settings.parentRunId === undefined ? {} : { parentRunId: wireRunId(settings.parentRunId) }),
      createdAtSeqno: numberAt(startedAt, run.createdAt),
    };
  }

  /** The start of the root run: the numbers of events count from it. */
  async startOf(run: RunHead, { rootRunId } = settingsOf(run)): Promise<number> {
    if (rootRunId === undefined || rootRunId === run.id) return run.createdAt;
    return (await this.#reader.runHead(rootRunId))?.createdAt ?? run.createdAt;
  }

  async #statistics(run: RunHead, { items }: FlowSettings): Promise<Statistics> {
    if (items === undefined) return ofOne(run.state);
    const output = isRunOpen(run.state) ? null : ((await this.#reader.run(run.id))?.output ?? null);
    const counts = (output === null ? null : countsIn(parseExact(output) as Json)) ?? (await this.#count(run, items));
    const { completed, failed: failures, cancelled } = counts;
    return { total: items, completed, failed: failures, cancelled, running: items - completed - failures - cancelled };
  }

  /** Counts the items of an open run, or of a run that ended early. Items that had not begun count as cancelled. */
  async #count(run: RunHead, items: number): Promise<ItemCounts> {
    const states = await this.#reader.statesUnder(itemPrefix(run.id));
    const counted = (...of: RunState[]) => of.reduce((sum, state) => sum + (states.get(state) ?? 0), 0);
    const completed = counted("succeeded");
    const failures = counted("failed", "timed-out");
    const cancelled = isRunOpen(run.state) ? counted("cancelled") : items - completed - failures;
    return { completed, failed: failures, cancelled };
  }
}

export function flowIdOf(run: RunHead, settings: FlowSettings = settingsOf(run)): string {
  return settings.flowId === "" ? run.definitionId : settings.flowId;
}

function ofOne(state: RunState): Statistics {
  const status = statusOf(state);
  const is = (wanted: number) => (status === wanted ? 1 : 0);
  return {
    total: 1,
    completed: is(ExecutionStatus.COMPLETED),
    running: is(ExecutionStatus.RUNNING) + is(ExecutionStatus.PAUSED),
    failed: is(ExecutionStatus.FAILED),
    cancelled: is(ExecutionStatus.CANCELLED),
  };
}

/** The result of a run that has ended. */
export function resultOf(run: Run): FlowResult {
  return flowResultOf(run) ?? failed({ code: "ORCHESTRATOR_ERROR", message: "the run has not ended" });
}

/** The result of one item; `run` is its run, or undefined when it has not begun. */
export function renderItem(itemIndex: number, run: Run | undefined, whole: RunHead): Item {
  const state = run?.state ?? (isRunOpen(whole.state) ? "running" : "cancelled");
  const base = { itemIndex, status: statusOf(state), ...(run?.endedAt == null ? {} : { completedAt: run.endedAt }) };
  if (run === undefined || isRunOpen(run.state)) return base;
  const result = resultOf(run);
  return { ...base, ...(result.outcome === "success" ? { output: result.result } : errorParts(result.error)) };
}

/** The result of a step, after the flow's error policy; null while the step is open. */
export function stepResultOf(task: TaskRow, { step }: StepView): FlowResult | null {
  if (isOpen(task.state)) return null;
  if (step !== undefined) return stepResult(step, task);
  if (task.state === "failed" || task.state === "cancelled") return failed(errorOf(task));
  return success(task.output === null ? null : (parseExact(task.output) as Json));
}

export function stepStatusOf(task: TaskRow, result: FlowResult | null): number {
  if (result === null) return ExecutionStatus.RUNNING;
  if (result.outcome === "success") return ExecutionStatus.COMPLETED;
  return task.state === "cancelled" ? ExecutionStatus.CANCELLED : ExecutionStatus.FAILED;
}

/**
 * The status from a record without its texts. Undefined when the texts are needed: a step with a default may have inherited another step's
 * failure.
 */
export function headStatusOf(task: TaskRowHead, { step }: StepView): number | undefined {
  if (isOpen(task.state)) return ExecutionStatus.RUNNING;
  if (task.state === "done" || task.state === "skipped") return ExecutionStatus.COMPLETED;
  if (step?.onError.action === "useDefault") return undefined;
  return task.state === "cancelled" ? ExecutionStatus.CANCELLED : ExecutionStatus.FAILED;
}

/** `startedAt` is the start of the root run. */
export function renderStep(task: TaskRow, step: StepView, itemIndex: number, startedAt: number): Step {
  const { stepId, stepIndex, component } = step;
  const result = stepResultOf(task, step);
  return {
    stepId,
    stepIndex,
    itemIndex,
    status: stepStatusOf(task, result),
    component,
    ...(result === null ? {} : result.outcome === "success" ? { output: result.result } : errorParts(result.error)),
    startedAt: task.startedAt ?? task.attemptAt,
    ...(task.endedAt === null ? {} : { completedAt: task.endedAt }),
    journalSeqno: numberAt(startedAt, task.endedAt ?? task.attemptAt),
    updatedAt: task.endedAt ?? task.claimedAt ?? task.queuedAt,
  };
}

function errorParts(error: FlowError): { errorMessage: string; errorCode: number } {
  return { errorMessage: error.message, errorCode: TaskErrorCode[error.code] };
}
