// The responses of our own API, made from stored rows.

import type { Json } from "../../../core/json/json.ts";
import { parseExact } from "../../../core/json/json-exact.ts";
import type { DeadLetter } from "../../../engine/board/dead-letter.ts";
import type { LimitKey } from "../../../engine/board/limits.ts";
import type { TaskRow } from "../../../engine/board/task.ts";
import { shownState, type Waiting } from "../../../engine/board/wait-reason.ts";
import type { Definition } from "../../../engine/run/dialect.ts";
import type { Plan, PlanNode } from "../../../engine/run/plan.ts";
import type { AttemptView } from "../../../engine/run/reader.ts";
import type { Run } from "../../../engine/run/run.ts";
import { runStatus } from "../../../engine/run/run-status.ts";
import type { RunWaiting } from "../../../engine/run/run-waiting.ts";
import type { Signal } from "../../../engine/signal/signal.ts";
import { deadLettersShown } from "../wire/shapes.ts";

export function runBody(run: Run) {
  return runStatus(run, parsed);
}

/** Lists that may be changed by their receiver, as the shape has them. */
export function waitingBody(waiting: RunWaiting | null) {
  if (waiting === null) return null;
  const { missing, workers, ...rest } = waiting;
  return { ...rest, ...(missing && { missing: [...missing] }), ...(workers && { workers: [...workers] }) };
}

export function signalBody(signal: Signal) {
  const { runId, number, name, key, sentAt, takenAt, taskId, attempt } = signal;
  return {
    ...{ runId, number, name, key },
    state: takenAt === null ? "kept" : "taken",
    value: parsed(signal.value),
    ...{ sentAt, takenAt, taskId, attempt: attempt === null ? null : attempt + 1 },
  };
}

export function taskBody(task: TaskRow, waiting: Waiting | null, now: number, childRunId?: string) {
  return {
    id: task.id,
    runId: task.runId,
    step: task.step,
    state: shownState(task, now),
    attempt: task.attempt + 1,
    grant: task.grant,
    failures: task.failures,
    lost: task.lost,
    holder: task.holder,
    lane: task.lane?.name ?? null,
    labels: task.lane?.labels ?? [],
    priority: task.priority,
    input: parsed(task.input),
    output: parsed(task.output),
    error: task.error,
    postedAt: task.postedAt,
    queuedAt: task.queuedAt,
    dueAt: task.dueAt,
    startedAt: task.startedAt,
    claimedAt: task.claimedAt,
    endedAt: task.endedAt,
    holdUntil: task.holdUntil,
    ...{ claimBy: task.claimBy, endBy: task.endBy, totalBy: task.totalBy },
    deferrals: task.deferrals,
    fault: task.fault,
    limits: task.limits.map(limitBody),
    childRunId,
    waiting: waiting ?? undefined,
  };
}

function limitBody({ key, held, rate }: LimitKey) {
  return { key, ...(held !== undefined && { held }), ...(rate !== undefined && { rate: { ...rate } }) };
}

/** What is shown of a step besides its task. */
export interface StepMore {
  readonly lastLine?: string | null | undefined;
  readonly waiting?: Waiting | null;
  readonly lastError?: string | undefined;
  readonly childRunId?: string | undefined;
  readonly deadLetters?: readonly DeadLetter[];
}

export function stepBody(plan: Plan, node: PlanNode, task: TaskRow | undefined, now: number, more: StepMore = {}) {
  const { lastLine, waiting, lastError, childRunId, deadLetters = [] } = more;
  const recorded = task !== undefined && isShown(task);
  return {
    id: node.id,
    state: recorded ? shownState(task, now) : "waiting",
    kind: node.kind,
    ...before(plan, node),
    taskId: recorded ? task.id : null,
    attempt: recorded ? task.attempt + 1 : 0,
    holder: recorded ? task.holder : null,
    error: recorded ? task.error : null,
    queuedAt: recorded ? task.queuedAt : null,
    dueAt: recorded ? task.dueAt : null,
    startedAt: recorded ? task.startedAt : null,
    endedAt: recorded ? task.endedAt : null,
    lastLine,
    waiting: waiting ?? undefined,
    lastError,
    childRunId,
    deadLetters: deadLetters.length === 0 ? undefined : { total: deadLetters.length, first: deadLetters.slice(0, deadLettersShown) },
  };
}

export function attemptBody(attempt: AttemptView) {
  const { grant, holder, error, fault, overdue, deferrals, attemptAt, queuedAt, dueAt, claimedAt, startedAt, endedAt, closedBy } = attempt;
  return {
    ...{ attempt: attempt.attempt + 1, grant, holder, error, fault, overdue, deferrals },
    ...{ attemptAt, queuedAt, dueAt, claimedAt, startedAt, endedAt, closedBy },
  };
}

/** Whether a step has a task. A step whose earlier life is void has none: it waits to be started again. */
export function isShown(task: TaskRow): boolean {
  return task.state !== "forgotten";
}

export function definitionBody(definition: Definition) {
  const { id, name, version, dialect, createdAt } = definition;
  return { id, name, version, dialect, createdAt };
}

/** The ids of the steps that a node waits for, and of those that start or choose it. */
function before(plan: Plan, node: PlanNode) {
  const starters = plan.starters.get(plan.index.get(node.id) ?? -1) ?? [];
  const after = shown(plan, node.after);
  const waitsFor = new Set(after);
  return { after, startedBy: shown(plan, starters).filter((id) => !waitsFor.has(id)) };
}

/** A hidden node is replaced by the nodes that it waits for, and those that chose it. */
function shown(plan: Plan, nodes: readonly number[]): string[] {
  const ids: string[] = [];
  // The loop also visits entries that it adds.
  const upstreams = new Set(nodes);
  for (const at of upstreams) {
    const upstream = plan.nodes[at] as PlanNode;
    if (!upstream.hidden) ids.push(upstream.id);
    else for (const further of [...upstream.after, ...(plan.starters.get(at) ?? [])]) upstreams.add(further);
  }
  return ids;
}

/** A step of a definition. */
export function planStep(plan: Plan, node: PlanNode) {
  const lane = node.kind === "task" ? node.lanes.at(-1) : undefined;
  return {
    id: node.id,
    kind: node.kind,
    ...before(plan, node),
    lane: lane?.name ?? null,
    labels: lane?.labels ?? [],
    workflow: node.kind === "run" ? node.workflow : null,
  };
}

function parsed(text: string | null): Json {
  return text === null ? null : (parseExact(text) as Json);
}
