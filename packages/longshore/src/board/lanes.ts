// Lanes and who may take from them. A lane is an interned {name, labels}; a claim names {names, labels}; it is eligible for a lane
// when the name is one of its names and the lane's labels are a subset of its labels. Eligibility is worked out once per distinct
// claim and once per new lane, so a claim looks only at lane heads and a post only at waiting claims.

import { Heap } from "./heap.ts";
import type { Lane } from "./task.ts";
import type { Waiter } from "./waiters.ts";

/** One queued task's place: smaller priority first, then the order of queueing. */
export interface Place {
  id: string;
  priority: number;
  sequence: number;
}

/** What a claim asks for. Labels that no lane mentions do no harm. */
export interface Reach {
  names: readonly string[];
  labels: readonly string[];
}

export interface LaneQueue {
  readonly lane: Lane;
  readonly ready: Heap<Place>;
  /** Every claim group that may take from here. */
  readonly groups: Set<ClaimGroup>;
  /** When a worker last asked for this lane's tasks; 0 for never. */
  polledAt: number;
}

/** All claims with the same reach. */
export interface ClaimGroup {
  readonly reach: Reach;
  readonly lanes: LaneQueue[];
  /** Idle claims, longest waiting first. */
  readonly waiting: Set<Waiter>;
  usedAt: number;
}

/** Distinct claims remembered while nobody waits in them. Above this the oldest idle ones are forgotten. */
const groupsMax = 2_000;

/** Lanes remembered although nothing stands on them. Labels may be made up per task, and a lane for each would never go. */
const lanesMax = 10_000;
/** An empty lane that was asked for within this time stays: a claim of the batch at hand may yet be taken back. */
const laneIdleMs = 60_000;

const separator = "\u0000";

/** How the names of lanes begin that belong to one dialect: a task of another is never posted there, whatever it is called. */
const ownMark = "$";

export function ownLane(name: string): string {
  return ownMark + name;
}

/** The first of these lanes that is some dialect's own, and not `own`; undefined for none. */
export function foreignLane(lanes: readonly Lane[], own: string | undefined): Lane | undefined {
  return lanes.find(({ name }) => name.startsWith(ownMark) && name !== own);
}

export function keptName(name: string): string {
  return `No task may be called ${JSON.stringify(name)}: names that begin with ${ownMark} are kept for the server. Give the task another name.`;
}

export function laneOf(name: string, labels: Iterable<string> = []): Lane {
  return { name, labels: [...new Set(labels)].sort() };
}

export function laneKey(lane: Lane): string {
  return lane.labels.length === 0 ? lane.name : lane.name + separator + lane.labels.join(separator);
}

export function goesBefore(a: Place, b: Place): boolean {
  return a.priority < b.priority || (a.priority === b.priority && a.sequence < b.sequence);
}

export class Lanes {
  readonly #lanes = new Map<string, LaneQueue>();
  readonly #groups = new Map<string, ClaimGroup>();
  #forgetAbove = lanesMax;
  #now = 0;

  queue(lane: Lane): LaneQueue {
    const key = laneKey(lane);
    const known = this.#lanes.get(key);
    if (known !== undefined) return known;
    if (this.#lanes.size >= this.#forgetAbove) this.#forgetEmpty();
    const queue: LaneQueue = {
      lane,
      ready: new Heap(goesBefore),
      groups: new Set(),
      polledAt: 0,
    };
    this.#lanes.set(key, queue);
    for (const group of this.#groups.values()) if (eligible(lane, group.reach)) link(queue, group);
    return queue;
  }

  group(reach: Reach, now: number): ClaimGroup {
    const key = `${reach.names.join(separator)}${separator}${separator}${reach.labels.join(separator)}`;
    let group = this.#groups.get(key);
    if (group === undefined) {
      group = { reach, lanes: [], waiting: new Set(), usedAt: now };
      this.#groups.set(key, group);
      for (const queue of this.#lanes.values()) if (eligible(queue.lane, reach)) link(queue, group);
      if (this.#groups.size > groupsMax) this.#forgetIdle();
    }
    this.#now = now;
    group.usedAt = now;
    for (const queue of group.lanes) queue.polledAt = now;
    return group;
  }

  /** The first lane with a recent or waiting poller, else the last: a task that may stand on several is never stranded on a deserted one. */
  choose(lanes: readonly Lane[], polledSince: number): Lane {
    if (lanes.length === 1) return lanes[0] as Lane;
    for (const lane of lanes) {
      const queue = this.queue(lane);
      if (queue.polledAt > 0 && queue.polledAt >= polledSince) return lane;
      for (const group of queue.groups) if (group.waiting.size > 0) return lane;
    }
    const last = lanes[lanes.length - 1];
    if (last === undefined) throw new Error("A task needs at least one lane.");
    return last;
  }

  all(): IterableIterator<LaneQueue> {
    return this.#lanes.values();
  }

  waiting(): number {
    let count = 0;
    for (const group of this.#groups.values()) count += group.waiting.size;
    return count;
  }

  #forgetEmpty(): void {
    for (const [key, queue] of this.#lanes) {
      if (queue.ready.size > 0 || queue.polledAt > this.#now - laneIdleMs) continue;
      this.#lanes.delete(key);
      for (const group of queue.groups) group.lanes.splice(group.lanes.indexOf(queue), 1);
    }
    // Looked at again only when there are many more, so that a long backlog on many lanes is not walked for each new one.
    this.#forgetAbove = Math.max(lanesMax, 2 * this.#lanes.size);
  }

  #forgetIdle(): void {
    const idle = [...this.#groups.entries()].filter(([, group]) => group.waiting.size === 0).sort((a, b) => a[1].usedAt - b[1].usedAt);
    for (const [key, group] of idle.slice(0, Math.ceil(groupsMax / 4))) {
      this.#groups.delete(key);
      for (const queue of group.lanes) queue.groups.delete(group);
    }
  }
}

export function eligible(lane: Lane, reach: Reach): boolean {
  return reach.names.includes(lane.name) && lane.labels.every((label) => reach.labels.includes(label));
}

function link(queue: LaneQueue, group: ClaimGroup): void {
  queue.groups.add(group);
  group.lanes.push(queue);
  // A worker may have asked for this lane before the first task stood on it.
  queue.polledAt = Math.max(queue.polledAt, group.usedAt);
}
