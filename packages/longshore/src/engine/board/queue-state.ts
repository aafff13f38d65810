// The tasks on each lane, and those that have left it but have no holder yet. A lane's heap may still contain places of tasks that were
// cancelled or moved; they are dropped when a claim reaches them, and left out here.

import type { Clock } from "../../core/clock.ts";
import { type Slices, wholeRow } from "../../core/slices/slices.ts";
import type { Reader } from "../run/reader.ts";
import { type LaneQueue, type Lanes, laneKey, type Place } from "./lanes.ts";
import type { Lane, TaskRow, TaskRowHead } from "./task.ts";
import type { Carrier } from "./wait-reason.ts";

/** The ready tasks of each lane, and the claims that wait for them. */
export type LaneView = Pick<Lanes, "all" | "awaiting" | "polledAt" | "knows" | "pauseOf">;

export interface QueueState {
  readonly lane: Lane;
  /** Tasks that could be taken now. Exact up to 200; above that, places are counted, which may be slightly too many. */
  readonly ready: number;
  /** The task that has waited longest, among those checked. */
  readonly oldest: TaskRow | null;
  /** Claims that wait for this lane. They may wait for other lanes too. */
  readonly pollers: number;
  /** When a worker last claimed this lane's tasks; 0 for never. */
  readonly polledAt: number;
}

/** Tasks of a lane that were sent to workers, and that no worker has taken yet. These workers do not poll. */
export interface SentTasks {
  readonly lane: Lane;
  readonly count: number;
  readonly oldest: TaskRowHead;
}

/** Tasks of one lane that are checked one by one. */
const looksMax = 200;
/** The cost of comparing a lane with the waiting and remembered claims, in rows. */
const standingRows = 50;
/** Lanes, or places of one lane, that are passed without a pause. */
const pieceMax = 500;
/** Sent tasks that are checked, newest first. */
const sentMax = 1_000;
/** Queued tasks that are checked for a delay, newest first. */
const delayedMax = 1_000;

export interface LaneDeps {
  readonly lanes: LaneView;
  readonly slices: Slices;
}

export interface StateDeps extends LaneDeps {
  readonly reader: Reader;
}

export interface SentDeps {
  readonly carriers: ReadonlySet<Carrier>;
  readonly reader: Reader;
}

/** Every lane behind a position, in the order in which the lanes became known. The lists may be long, so they are read in slices. */
export async function* lanesAfter({ lanes, slices }: LaneDeps, position = 0): AsyncGenerator<LaneQueue> {
  let passed = 0;
  for (const queue of lanes.all()) {
    if (passed++ % pieceMax === 0) await slices.turn(pieceMax);
    if (queue.position > position) yield queue;
  }
}

/** Returns the sent tasks, by the name and labels of their lane. */
export async function sentTasks({ carriers, reader }: SentDeps): Promise<Map<string, SentTasks>> {
  const sent = new Map<string, SentTasks>();
  if (carriers.size === 0) return sent;
  const { items } = await reader.taskHeads({ state: "offered", limit: sentMax });
  for (const task of items) {
    if (task.lane === null || ![...carriers].some((carrier) => carrier.carries(task))) continue;
    const key = laneKey(task.lane);
    const { count = 0, oldest = task } = sent.get(key) ?? {};
    sent.set(key, { lane: task.lane, count: count + 1, oldest: task.queuedAt < oldest.queuedAt ? task : oldest });
  }
  return sent;
}

/** Returns how many tasks of each lane are not due, by the key of the lane. */
export async function delayedTasks({ reader, clock }: { readonly reader: Reader; readonly clock: Clock }): Promise<Map<string, number>> {
  const delayed = new Map<string, number>();
  const { items } = await reader.taskHeads({ state: "queued", limit: delayedMax });
  for (const { lane, dueAt } of items) {
    if (lane === null || dueAt <= clock.now()) continue;
    delayed.set(laneKey(lane), (delayed.get(laneKey(lane)) ?? 0) + 1);
  }
  return delayed;
}

export async function stateOf({ lanes, reader, slices }: StateDeps, queue: LaneQueue): Promise<QueueState> {
  const { lane } = queue;
  const standing = async (place: Place) => {
    const task = await reader.task(place.id);
    if (task !== undefined) slices.spent(task.input.length);
    return task?.state === "queued" && task.sequence === place.sequence ? task : null;
  };
  let ready = queue.ready.size;
  // Sequences rise with time: the task with the smallest is the oldest, if it is still queued.
  const first = await firstPlace(queue, slices);
  await slices.turn(wholeRow);
  let oldest = first === undefined ? null : await standing(first);
  const places = [...take(queue.ready.values(), looksMax)];
  for (const place of places) {
    await slices.turn(wholeRow);
    const task = await standing(place);
    if (task === null) ready--;
    else if (oldest === null || task.queuedAt < oldest.queuedAt) oldest = task;
  }
  await slices.turn(standingRows);
  return { lane, ready, oldest, pollers: lanes.awaiting(lane), polledAt: lanes.polledAt(lane) };
}

async function firstPlace({ ready }: LaneQueue, slices: Slices): Promise<Place | undefined> {
  let first: Place | undefined;
  let passed = 0;
  for (const place of ready.values()) {
    if (passed++ % pieceMax === 0) await slices.turn(pieceMax);
    if (first === undefined || place.sequence < first.sequence) first = place;
  }
  return first;
}

function* take<Item>(items: Iterable<Item>, most: number): Iterable<Item> {
  let taken = 0;
  for (const item of items) {
    if (taken++ === most) return;
    yield item;
  }
}
