// What a task is, and the rules by which its state changes.
//
// A task is one activation of a step. An attempt is one try of it. A grant is one hand-out of an attempt: the counter rises when the task
// leaves `queued` and again when it is queued again. So a hold is current only while its grant equals the task's.
//
//   queued      no worker has it; claimable from `dueAt` on
//   offered     handed out, holder not yet known; the first extend names it, and the attempt begins. Without one it is queued again
//   held        a holder works on it until `holdUntil`
//   cancelling  held, but no longer wanted; ends as cancelled however the holder reports
//   done, failed, cancelled, skipped   ended; nothing moves it but pruning, or a retry of its run
//   forgotten   ended in an earlier life of its run, to be started again; kept so that its grants continue counting
//
// `table` is the whole machine as data. docs/concepts/board.md draws it and a test walks it cell by cell.

import type { Verdict } from "../../core/verdict.ts";
import type { LimitKey } from "./limits.ts";

/**
 * Number of attempts that are kept of one task: the newest. A task that fails at once and has no limit of its own must not grow without
 * end.
 */
export const attemptsKeptMax = 1_000;

export type OpenState = "queued" | "offered" | "held" | "cancelling";
export type EndState = "done" | "failed" | "cancelled" | "skipped" | "forgotten";
/**
 * Why a task or an attempt ended without a result: it failed, failed permanently, lost its holder, took too long, or could not be made from
 * its definition.
 */
export type Fault = "failed" | "final" | "lost" | "timed-out" | "unmade";
/**
 * The fault of a step that was cancelled alone: its run continues without it, as after a failure. A step that is cancelled along with its
 * run has no fault.
 */
export const cancelledAlone: Fault = "failed";
export type TaskState = OpenState | EndState;
export type Verb = "claim" | "offer" | "extend" | "complete" | "fail" | "defer" | "cancel" | "expire";
/** The verbs that a holder reports with. */
export type ReportVerb = "extend" | "complete" | "fail" | "defer";
/** Which of a task's deadlines has passed. */
export type Deadline = "claimBy" | "holdUntil" | "endBy" | "totalBy";

export interface Lane {
  readonly name: string;
  /** Sorted, without duplicates. A claim must have all of them. */
  readonly labels: readonly string[];
}

export interface TaskRow {
  /** `<run id>.<address>` for a step of a run, else an id of its own. */
  readonly id: string;
  readonly runId: string | null;
  /** Index of the plan's node; 0 for a task without a run. */
  readonly node: number;
  /** The name shown to people: the step's id, or the handler's name for a task without a run. */
  readonly step: string;
  /** Null for a record that no worker claims (a wait, a child run, a skipped step). */
  readonly lane: Lane | null;
  readonly priority: number;
  readonly state: TaskState;
  /** Place in its lane. Set again whenever the task is queued, so a retried task comes after those that already wait. */
  readonly sequence: number;
  /** Number of the current attempt, from 0; and of the first attempt in the current life of the run. */
  readonly attempt: number;
  readonly firstAttempt: number;
  /** The current attempt's place among the records of its run, from 1; 0 when it has no place. */
  readonly ordinal: number;
  readonly grant: number;
  readonly holder: string | null;
  /** How long one hold lasts without an extend. */
  readonly termMs: number;
  /** JSON text. */
  readonly input: string;
  /** JSON text of the result, or of the latest progress before it; null when there is none. */
  readonly output: string | null;
  readonly error: string | null;
  /** Null when it has not failed. */
  readonly fault: Fault | null;
  /** The deadline that passed, when the fault is a timeout. */
  readonly overdue: Deadline | null;
  /** Attempts that failed, and holds that were lost: two budgets. */
  readonly failures: number;
  readonly lost: number;
  /** How often the current attempt was deferred. */
  readonly deferrals: number;
  /** JSON text of the retry policy; null for a step whose plan carries it. */
  readonly policy: string | null;
  readonly limits: readonly LimitKey[];
  /** Maximum term of a hold; 0 without a limit, null as the claim requests. */
  readonly holdMs: number | null;
  /** The lengths of time from which `claimBy` and `endBy` of each attempt are computed. */
  readonly claimMs: number | null;
  readonly endMs: number | null;
  /** When the task was first queued, when this attempt was queued, and when it was last queued. */
  readonly postedAt: number;
  readonly attemptAt: number;
  readonly queuedAt: number;
  readonly dueAt: number;
  /** When this attempt was first claimed, and when the current hold began. */
  readonly startedAt: number | null;
  readonly claimedAt: number | null;
  readonly endedAt: number | null;
  readonly claimBy: number | null;
  readonly holdUntil: number | null;
  readonly endBy: number | null;
  readonly totalBy: number | null;
  /** How the newest closed grant was closed. */
  readonly closedGrant: number;
  readonly closedBy: Verb | null;
  /** The receipt by which a repetition of the closing report is recognised; null when the reporter left none. */
  readonly closedReceipt: string | null;
  /**
   * The task has produced a part in this life of its run, and the run was notified because another step waits for the part. For a child
   * run: the parent run has already continued with the steps after it, and waits for the child again.
   */
  readonly streamed: boolean;
  /** For a record that waits for a signal: the name of that signal. Null for everything else. */
  readonly signal: string | null;
  /**
   * For the task of a durable function: `function`. For one of its commands: how many results it had received by then, the kind and the
   * name, such as `3 step price`. The `ordinal` of a command is the number of its result. Null for all other tasks.
   */
  readonly command: string | null;
}

/** The `command` of the task in which a durable function runs. */
export const driverCommand = "function";

/** Whether the task is the one in which a durable function runs, turn by turn. */
export function isDriver({ command }: Pick<TaskRow, "command">): boolean {
  return command === driverCommand;
}

/**
 * Whether a step of a run waits for a time, a signal, a child run, or news for its function. It has no lane: no worker was ever given it, and
 * its id is easily guessed, so its grant protects nothing.
 */
export function isWait({ lane, runId }: Pick<TaskRow, "lane" | "runId">): boolean {
  return lane === null && runId !== null;
}

/**
 * Checks whether a hold is that of the current turn of a durable function: returns `current`, or the verdict that refuses it. Other tasks
 * keep their hold while they are queued. But between two turns no worker has the function, and before the first one its grant, 0, is easily
 * guessed.
 */
export function fenceTurn(task: TaskRow | undefined, hold: Hold, now: number): Verdict | "current" {
  if (task !== undefined && (task.state === "queued" || !isDriver(task))) return "stale";
  return fence(task, hold, "extend", now, () => null);
}

/** A task without its texts, which may have megabytes. */
export type TaskRowHead = Omit<TaskRow, "input" | "output">;

/** What a reporter can prove about the task it reports on. Absent fields are not compared. */
export interface Hold {
  taskId: string;
  attempt?: number;
  grant?: number;
  holder?: string;
  /** The output so far that the report continues: with another one, the verdict is `busy`. */
  output?: string | null;
}

/** For its run the task has ended, although its holder may not know this yet. */
export function isCancelled({ state }: Pick<TaskRow, "state">): boolean {
  return state === "cancelled" || state === "cancelling";
}

/** The step was cancelled along with its run, and not alone. */
export function isCancelledAlong(task: Pick<TaskRow, "state" | "fault">): boolean {
  return isCancelled(task) && task.fault === null;
}

/** Where a verb leads: a state, `close` (the attempt is over; policy decides what follows), or `same`. */
export interface Cell {
  to: TaskState | "close" | "same";
  verdict: Verdict;
}
type Row = { readonly [verb in Verb]: Cell | null };

const to = (state: Cell["to"], verdict: Verdict = "ok"): Cell => ({ to: state, verdict });

/** Null marks impossible transitions: only a queued task is handed out, and a second cancel changes nothing. */
export const table: { readonly [state in OpenState | "ended"]: Row } = {
  queued: {
    claim: to("held"),
    offer: to("offered"),
    extend: to("queued"),
    complete: to("done"),
    fail: to("close"),
    defer: to("queued"),
    cancel: to("cancelled"),
    expire: to("close"),
  },
  offered: {
    claim: null,
    offer: null,
    extend: to("held"),
    complete: to("done"),
    fail: to("close"),
    defer: to("queued"),
    cancel: to("cancelled"),
    // The end of the offer itself. The deadlines of the task close it, as they close a queued one.
    expire: to("queued"),
  },
  held: {
    claim: null,
    offer: null,
    extend: to("held"),
    complete: to("done"),
    fail: to("close"),
    defer: to("queued"),
    cancel: to("cancelling"),
    expire: to("close"),
  },
  cancelling: {
    claim: null,
    offer: null,
    extend: to("same", "cancel"),
    complete: to("cancelled", "cancel"),
    fail: to("cancelled", "cancel"),
    defer: to("cancelled", "cancel"),
    cancel: null,
    expire: to("cancelled"),
  },
  ended: {
    claim: null,
    offer: null,
    extend: to("same", "stale"),
    complete: to("same", "stale"),
    fail: to("same", "stale"),
    defer: to("same", "stale"),
    cancel: null,
    expire: null,
  },
};

export function isOpen(state: TaskState): state is OpenState {
  return state === "queued" || state === "offered" || state === "held" || state === "cancelling";
}

export function cell(state: TaskState, verb: Verb): Cell | null {
  return table[isOpen(state) ? state : "ended"][verb];
}

/**
 * Whether `hold` may report on `task` with this verb: `current`, or the verdict that refuses it.
 * `closedBy` returns how an older grant was closed; it is called only for late reports.
 */
export function fence(
  task: TaskRow | undefined,
  hold: Hold,
  verb: ReportVerb,
  now: number,
  closedBy: (grant: number) => Verb | null,
): Verdict | "current" {
  if (task === undefined) return "gone";
  if (hold.grant !== undefined && hold.grant !== task.grant) {
    if (hold.grant > task.grant) return "gone";
    return late(verb, closedBy(hold.grant));
  }
  if (hold.attempt !== undefined && hold.attempt !== task.attempt) return hold.attempt > task.attempt ? "gone" : late(verb, task.closedBy);
  if (!isOpen(task.state)) return late(verb, task.closedBy);
  if (hold.holder !== undefined && task.holder !== null && hold.holder !== task.holder) return "busy";
  if (task.state !== "queued" && task.holdUntil !== null && now >= task.holdUntil) return "stale";
  return hold.output === undefined || hold.output === task.output ? "current" : "busy";
}

/** Returns `again` for a report that was applied before; extends are not recorded. */
function late(verb: ReportVerb, closedBy: Verb | null): Verdict {
  return verb !== "extend" && verb === closedBy ? "again" : "stale";
}

/** The earliest time at which something happens to this task without a request. A deadline that has already passed counts too. */
export function nextDeadline(task: Pick<TaskRow, "lane" | "state" | "dueAt" | Deadline>, now: number): number | null {
  if (!isOpen(task.state)) return null;
  let next = Number.POSITIVE_INFINITY;
  for (const which of deadlinesOf[task.state]) next = Math.min(next, task[which] ?? next);
  // A delay that has passed is not a deadline any more: the task is on its lane.
  if (task.state === "queued" && task.dueAt > now) next = Math.min(next, task.dueAt);
  return next === Number.POSITIVE_INFINITY ? null : next;
}

/**
 * The deadline that has passed, the earliest when there are several; null when none has passed. The end of an offer counts after all
 * others.
 */
export function passedDeadline(task: TaskRow, now: number): Deadline | null {
  if (!isOpen(task.state)) return null;
  let passed: Deadline | null = null;
  for (const which of deadlinesOf[task.state]) {
    const at = task[which];
    if (at === null || at > now || (task.state === "offered" && which === "holdUntil" && passed !== null)) continue;
    if (passed === null || at < (task[passed] as number)) passed = which;
  }
  return passed;
}

/** When several deadlines pass at the same time, the first in the list counts. The list begins with the deadline that ends most. */
const deadlinesOf: { readonly [state in OpenState]: readonly Deadline[] } = {
  queued: ["totalBy", "claimBy"],
  offered: ["totalBy", "endBy", "claimBy", "holdUntil"],
  held: ["totalBy", "endBy", "holdUntil"],
  cancelling: ["holdUntil"],
};
