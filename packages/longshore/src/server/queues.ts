// What stands in each lane, and what has left it without being anybody's yet. A lane's heap may still hold places of tasks that were cancelled
// or moved on meanwhile; they are dropped when a claim meets them, and left out here.

import { type LaneQueue, type Lanes, laneKey } from "../board/lanes.ts";
import type { Lane, Task } from "../board/task.ts";
import type { Engine } from "./engine.ts";

export interface QueueState {
  readonly lane: Lane;
  /** Tasks that could be taken now. Exact up to `walkMax`; of more it counts places, which may be a few too many. */
  readonly ready: number;
  /** The task that has been waiting for longest, among those looked at. */
  readonly oldest: Task | null;
  /** Claims that stand in line for this lane, perhaps among others. */
  readonly pollers: number;
  /** When somebody last asked for this lane's tasks; 0 for never. */
  readonly polledAt: number;
}

/** Tasks of a lane on their way to workers that do not come for them. */
export interface SentTasks {
  readonly lane: Lane;
  readonly count: number;
  readonly oldest: Task;
}

/** Places of one lane that are looked at one by one: about a millisecond. */
const walkMax = 5_000;
/** Tasks on their way that are looked at, newest first. */
const sentMax = 1_000;

export function queueStates({ store }: Engine): QueueState[] {
  const { lanes, tasks } = store.board;
  return Array.from(lanes.all(), (queue) => stateOf(queue, lanes, (id) => tasks.get(id)));
}

/** By the name of their lane and its labels. */
export async function sentTasks({ carriers, reader }: Engine): Promise<Map<string, SentTasks>> {
  const sent = new Map<string, SentTasks>();
  if (carriers.size === 0) return sent;
  const { items } = await reader.tasks({ state: "offered", limit: sentMax });
  for (const task of items) {
    if (task.lane === null || ![...carriers].some((carrier) => carrier.carries(task))) continue;
    const key = laneKey(task.lane);
    const { count = 0, oldest = task } = sent.get(key) ?? {};
    sent.set(key, { lane: task.lane, count: count + 1, oldest: task.queuedAt < oldest.queuedAt ? task : oldest });
  }
  return sent;
}

function stateOf(queue: LaneQueue, lanes: Lanes, find: (id: string) => Task | null): QueueState {
  let looked = 0;
  let ready = 0;
  let oldest: Task | null = null;
  for (const place of queue.ready.values()) {
    if (looked++ === walkMax) break;
    const task = find(place.id);
    if (task?.state !== "queued" || task.sequence !== place.sequence) continue;
    ready++;
    if (oldest === null || task.queuedAt < oldest.queuedAt) oldest = task;
  }
  const beyond = Math.max(0, queue.ready.size - walkMax);
  return { lane: queue.lane, ready: ready + beyond, oldest, pollers: lanes.awaiting(queue.lane), polledAt: lanes.polledAt(queue.lane) };
}
