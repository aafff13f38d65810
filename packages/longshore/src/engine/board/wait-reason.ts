// Why no worker has taken a queued or sent task yet, as a text from which a person knows what to do.

import { functionOfLane } from "../../core/turn.ts";
import type { Crew } from "./crews.ts";
import type { Halt } from "./halts.ts";
import type { Lanes } from "./lanes.ts";
import type { Limits } from "./limits.ts";
import { isDriver, type TaskRowHead, type TaskState } from "./task.ts";

export type WaitReason =
  /** The task's delay has not ended. */
  | "not-due"
  /** The task's lane is paused. */
  | "paused"
  /** A limit key that it names is used up. */
  | "limit"
  /** No live worker could take it: it waits until one is started. */
  | "no-worker"
  /** Every worker that could take it is busy. */
  | "busy"
  /** A worker that could take it is idle: it is taken at that worker's next poll. */
  | "next"
  /** The transport to its workers cannot be reached. */
  | "unreachable"
  /** The task was sent to its workers, and no worker has taken it. */
  | "sent"
  /** The record waits for a signal. */
  | "signal"
  /** The run waits for its turn, because its workflow has a start limit. */
  | "turn"
  /** The record waits for a time. */
  | "sleeping"
  /** A record that waits for something else, such as a child run, and not for a worker. */
  | "record";

export interface Waiting {
  readonly reason: WaitReason;
  readonly text: string;
  /** When it may be taken, or wakes up, if that is known. */
  readonly at?: number;
  /** The name of the signal that ends it. */
  readonly signal?: string;
  /** The limit key that blocks it. */
  readonly key?: string;
  /** Labels that no live worker of this lane offers. */
  readonly missing?: readonly string[];
  /** Workers that could take it. */
  readonly workers?: readonly string[];
}

/** The part of the server that sends tasks to workers that do not poll. */
export interface Carrier {
  /** The protocol of these workers. */
  readonly protocol: string;
  /** What cannot be reached, since when, and with which error; null when everything is reachable. */
  trouble(): { readonly what: string; readonly since: number; readonly error: string } | null;
  /** Whether this carrier has sent the task, or is about to, and no worker has taken it. */
  carries(task: TaskRowHead): boolean;
}

export interface WaitingContext {
  lanes: Lanes;
  limits: Limits;
  /** The workers that could take from the task's lane; null when it has no lane. */
  crew: Crew | null;
  carriers?: readonly Carrier[];
  now: number;
}

/** Null for a task that is not waiting. */
export function whyWaiting(task: TaskRowHead, context: WaitingContext): Waiting | null {
  if (task.state === "offered") return onItsWay(task, context);
  if (task.state !== "queued") return null;
  if (task.lane === null) return whatRecordAwaits(task, context.now);
  if (task.dueAt > context.now) {
    return { reason: "not-due", text: `it is not due for another ${seconds(task.dueAt - context.now)}`, at: task.dueAt };
  }
  const pause = context.lanes.pauseOf(task.lane);
  if (pause !== undefined) return isPaused(task.lane.name, pause);
  const blocked = context.limits.blocked(task.limits, context.now);
  if (blocked !== null) {
    const until = blocked.freeAt === null ? "a task that counts against it ends" : `${seconds(blocked.freeAt - context.now)} have passed`;
    const at = blocked.freeAt === null ? {} : { at: blocked.freeAt };
    return { reason: "limit", text: `the limit ${blocked.limit.key} is used up until ${until}`, key: blocked.limit.key, ...at };
  }
  if (context.crew === null) return null;
  return asFarAsIsKnown(whoCould(context.crew, context.lanes.isAwaited(task.lane)), context.crew, context);
}

function isPaused(lane: string, { reason, by, at }: Halt): Waiting {
  const who = by === null ? "" : ` by ${by}`;
  const why = reason === null ? "" : `: ${reason}`;
  return { reason: "paused", text: `the queue ${lane} is paused${who} since ${new Date(at).toISOString()}${why}` };
}

/** The state of a task as people see it: a record that waits is not queued for a worker. */
export type ShownState = TaskState | "sleeping" | "awaiting";

/** `sleeping`: until a time. `awaiting`: a signal, a child run, or the steps of a function. */
export function shownState(task: Pick<TaskRowHead, "state" | "lane" | "step" | "signal" | "dueAt">, now: number): ShownState {
  if (task.state !== "queued" || task.lane !== null) return task.state;
  return sleeps(task, now) ? "sleeping" : "awaiting";
}

/**
 * A signal with the name of the step may also end a wait for a time. Such a wait is shown as a wait for the time. A wait that names another
 * signal is shown as a wait for that signal.
 */
function whatRecordAwaits(task: TaskRowHead, now: number): Waiting {
  const { signal, dueAt } = task;
  const named = signal === null ? {} : { signal };
  if (sleeps(task, now)) return { reason: "sleeping", text: `sleeping until ${new Date(dueAt).toISOString()}`, at: dueAt, ...named };
  if (isDriver(task)) return { reason: "record", text: "the function waits for its steps" };
  if (signal === null) return { reason: "record", text: "it waits for something else to end, such as a child run" };
  return { reason: "signal", text: `waiting for signal ${JSON.stringify(signal)}`, ...named, ...(dueAt > now ? { at: dueAt } : {}) };
}

function sleeps({ step, signal, dueAt }: Pick<TaskRowHead, "step" | "signal" | "dueAt">, now: number): boolean {
  return dueAt > now && (signal === null || signal === step);
}

/** Other offered tasks are with the client that requested them, and do not wait. */
function onItsWay(task: TaskRowHead, { carriers = [], now }: WaitingContext): Waiting | null {
  const carrier = carriers.find((one) => one.carries(task));
  if (carrier === undefined) return null;
  const away = troubleOf(carrier, now);
  if (away !== null) return { reason: "unreachable", text: `it is sent as soon as that is possible: ${away}` };
  const sent = task.claimedAt === null ? "" : ` ${seconds(now - task.claimedAt)} ago`;
  return { reason: "sent", text: `it was sent to the workers of ${task.lane?.name}${sent}, and none has taken it up yet` };
}

/** Workers that cannot be reached can neither report nor receive anything, so earlier knowledge about them may be outdated. */
function asFarAsIsKnown(found: Waiting, { lane, protocols, able }: Crew, { carriers = [], now }: WaitingContext): Waiting {
  if (found.reason === "next" && able === 0) return found;
  for (const carrier of carriers) {
    const away = troubleOf(carrier, now);
    // Carriers send only tasks without labels.
    if (away === null || lane.labels.length > 0) continue;
    if (found.reason === "no-worker") return { reason: "unreachable", text: `${found.text}, as far as is known: ${away}` };
    const others = [...protocols].some((protocol) => protocol !== carrier.protocol);
    if (!others) return { ...found, reason: "unreachable", text: `the workers that could take it are out of reach: ${away}` };
  }
  return found;
}

function troubleOf(carrier: Carrier, now: number): string | null {
  const trouble = carrier.trouble();
  return trouble === null ? null : `${trouble.what} has been out of reach for ${seconds(now - trouble.since)} (${trouble.error})`;
}

function whoCould(crew: Crew, stands: boolean): Waiting {
  const { able, idle, busy, ids: workers } = crew;
  if (stands || idle > 0) return { reason: "next", text: "an idle worker takes it at its next poll", workers };
  if (busy > 0) return { reason: "busy", text: `every worker that could take it is at work (${busy})`, workers };
  // These workers may claim it at any moment. A worker that stays silent is shown as offline later.
  if (able > 0) {
    const text = `no worker that could take it has sent a request since the server started; the server waits for those that it knew before (${able})`;
    return { reason: "next", text, workers };
  }
  return noOne(crew);
}

/** Why no live worker could take from the lane of this crew. */
export function noOne({ lane, live, near, cordoned, missing: lacking }: Crew): Waiting {
  if (cordoned > 0) return { reason: "no-worker", text: `every live worker that could take it is cordoned (${cordoned})`, missing: [] };
  if (live === 0) return { reason: "no-worker", text: "no worker is connected", missing: lane.labels };
  if (near === 0) return { reason: "no-worker", text: `no live worker ${askFor(lane.name)}`, missing: lane.labels };
  const missing = [...lacking];
  if (missing.length > 0) return { reason: "no-worker", text: `no live worker has ${named(missing)}`, missing };
  return { reason: "no-worker", text: `no live worker has all of ${named(lane.labels)}`, missing: [] };
}

function askFor(lane: string): string {
  const name = functionOfLane(lane);
  return name === undefined ? `asks for ${lane}` : `has the code of workflow ${name}`;
}

function named(labels: readonly string[]): string {
  return `${labels.length === 1 ? "the label" : "the labels"} ${labels.join(", ")}`;
}

function seconds(ms: number): string {
  return `${Math.ceil(ms / 1_000)} s`;
}
