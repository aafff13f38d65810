// Lanes and the claims that may take from them. A lane is an interned {name, labels}; a claim names {names, labels}. The claim must list
// the lane's name and all of its labels. Lanes are found in a tree (lane-tree.ts), and waiting claims by their names. So neither a claim
// nor a post searches all of them.

import { LongshoreError } from "../../core/errors.ts";
import { ClaimGroup, type GroupKeeper, type Reach } from "./claim-group.ts";
import type { Halt } from "./halts.ts";
import { Heap } from "./heap.ts";
import { firstLane, goesBefore, LaneNode, type LaneQueue, type Place } from "./lane-tree.ts";
import { isServedHere } from "./reserved-lanes.ts";
import type { Lane } from "./task.ts";
import { TurnHeap } from "./turn-heap.ts";
import type { Waiter } from "./waiters.ts";

export type { Reach } from "./claim-group.ts";
export { goesBefore, type LaneQueue, type Place } from "./lane-tree.ts";

/** Groups without a waiting claim that are remembered, to know when a lane was last polled. */
const groupsMax = 2_000;
/** Maximum number of groups that wait for one name. A post compares them, so a thousand posts at once compare a million: about 20 ms. */
const standingMax = 1_000;
/** Maximum number of characters in the names and labels of all groups: 64 MB. */
const reachCharsMax = 33_554_432;
/** Maximum number of claimed names whose last claim time is remembered. */
const polledMax = 20_000;
/**
 * Maximum number of remembered lanes without a task. Labels may be generated for each task, and without a limit a lane for each would stay
 * permanently.
 */
const emptyMax = 10_000;

const separator = "\u0000";
const none: ReadonlySet<ClaimGroup> = new Set();

export function laneOf(name: string, labels: Iterable<string> = []): Lane {
  return { name, labels: [...new Set(labels)].sort() };
}

/** The tasks of a lane that are ready. The server has few slots for its own lanes, so one run must not fill them for long. */
function readyIn({ name }: Lane): LaneQueue["ready"] {
  return isServedHere(name)
    ? new TurnHeap<Place>({ turnOf: turnOfTask, priorityOf: ({ priority }) => priority, before: goesBefore })
    : new Heap(goesBefore);
}

/** The id of the run of a step. For tasks without a run: the common beginning of their ids. */
function turnOfTask({ id }: Place): string {
  return id.slice(0, Math.max(id.lastIndexOf("."), id.lastIndexOf("-"), 0));
}

export function laneKey(lane: Lane): string {
  return lane.labels.length === 0 ? lane.name : lane.name + separator + lane.labels.join(separator);
}

export class Lanes implements GroupKeeper {
  readonly #lanes = new Map<string, LaneQueue>();
  readonly #trees = new Map<string, LaneNode>();
  /** Lanes without a task, the longest empty first. */
  readonly #empty = new Set<LaneQueue>();
  readonly #groups = new Map<string, ClaimGroup>();
  /** Groups in which no claim waits, the longest idle first. */
  readonly #idle = new Set<ClaimGroup>();
  /** Groups in which a claim waits, by each of their names. */
  readonly #standing = new Map<string, Set<ClaimGroup>>();
  /** When each name was last claimed. The names are in the order in which they were first claimed. */
  readonly #polledAt = new Map<string, number>();
  /** Lanes that hand out nothing. They are in no tree, so that no claim finds their tasks. */
  readonly paused = new Map<string, readonly [Lane, Halt]>();
  #positions = 0;
  #reachChars = 0;
  #steps = 0;

  /** The number of nodes and groups visited so far: a measure of the work done here. */
  get steps(): number {
    return this.#steps;
  }

  queue(lane: Lane): LaneQueue {
    const key = laneKey(lane);
    const known = this.#lanes.get(key);
    if (known !== undefined) return known;
    const node = this.#nodeOf(lane);
    const queue: LaneQueue = { lane, position: ++this.#positions, ready: readyIn(lane), node };
    if (!this.paused.has(key)) node.queue = queue;
    this.#lanes.set(key, queue);
    this.#empty.add(queue);
    this.#forgetEmpty(queue);
    return queue;
  }

  #nodeOf({ name, labels }: Lane): LaneNode {
    let tree = this.#trees.get(name);
    if (tree === undefined) {
      tree = new LaneNode();
      this.#trees.set(name, tree);
    }
    return tree.at(labels);
  }

  pauseOf(lane: Lane): Halt | undefined {
    return this.paused.size === 0 ? undefined : this.paused.get(laneKey(lane))?.[1];
  }

  pause(lane: Lane, halt: Halt): void {
    const key = laneKey(lane);
    this.paused.set(key, [lane, halt]);
    // Creates the lane, so that lists name it.
    const queue = this.queue(lane);
    if (queue.node.queue === queue) queue.node.queue = null;
  }

  /** Only later claims find its tasks. The caller hands tasks to the claims that wait already. */
  resume(lane: Lane): void {
    const key = laneKey(lane);
    this.paused.delete(key);
    const queue = this.#lanes.get(key);
    if (queue === undefined) return;
    // The lane's place in the tree may have been removed in the meantime.
    queue.node = this.#nodeOf(lane);
    queue.node.queue = queue;
    const first = queue.ready.peek();
    if (first !== undefined && lane.labels.length > 0) queue.node.rose(first);
  }

  /** Adds a task to its lane. */
  push(lane: Lane, place: Place): void {
    const queue = this.queue(lane);
    if (queue.ready.size === 0) this.#empty.delete(queue);
    queue.ready.push(place);
    if (lane.labels.length > 0 && queue.ready.peek() === place) queue.node.rose(place);
  }

  /** Removes the first task of a lane. */
  pop(queue: LaneQueue): Place | undefined {
    const place = queue.ready.pop();
    if (queue.ready.size === 0) this.#empty.add(queue);
    return place;
  }

  group(reach: Reach, now: number): ClaimGroup {
    const key = `${reach.names.join(separator)}${separator}${separator}${reach.labels.join(separator)}`;
    let group = this.#groups.get(key);
    if (group === undefined) {
      group = new ClaimGroup(key, reach, this);
      this.#groups.set(key, group);
      this.#idle.add(group);
      this.#reachChars += key.length;
      this.#forgetIdle();
    }
    if (group.usedAt !== now) {
      group.usedAt = now;
      for (const name of reach.names) this.#note(name, now);
    }
    return group;
  }

  /** Among the lanes that these claims may take from, returns the one whose first task comes first. */
  first({ reach, labels }: ClaimGroup): LaneQueue | null {
    const [name] = reach.names;
    const tree = reach.names.length === 1 ? this.#trees.get(name as string) : undefined;
    const trees = tree === undefined ? this.#treesOf(reach.names) : [tree];
    return firstLane(trees, labels, (nodes) => {
      this.#steps += nodes;
    });
  }

  /** Returns the longest waiting claim that may take from this lane. */
  nextWaiter(lane: Lane): Waiter | undefined {
    if (this.paused.size > 0 && this.paused.has(laneKey(lane))) return undefined;
    let found: Waiter | undefined;
    for (const group of this.#standing.get(lane.name) ?? none) {
      this.#steps++;
      if (!group.carries(lane)) continue;
      const first = group.first();
      if (first !== undefined && (found === undefined || first.arrival < found.arrival)) found = first;
    }
    return found;
  }

  /** Returns the first lane with a recent or waiting poller, else the last one. So a task does not wait on a lane that no worker polls. */
  choose(lanes: readonly Lane[], polledSince: number): Lane {
    if (lanes.length === 1) return lanes[0] as Lane;
    for (const lane of lanes) {
      const polledAt = this.polledAt(lane);
      if ((polledAt > 0 && polledAt >= polledSince) || this.isAwaited(lane)) return lane;
    }
    const last = lanes[lanes.length - 1];
    if (last === undefined) throw new Error("A task needs at least one lane.");
    return last;
  }

  /** When a worker last claimed this lane's tasks; 0 for never, or when that time is no longer remembered. */
  polledAt(lane: Lane): number {
    if (lane.labels.length === 0) return this.#polledAt.get(lane.name) ?? 0;
    let at = 0;
    for (const group of this.#groups.values()) if (group.usedAt > at && eligible(lane, group.reach)) at = group.usedAt;
    return at;
  }

  /** Whether a claim that may take from this lane waits. */
  isAwaited(lane: Lane): boolean {
    for (const group of this.#standing.get(lane.name) ?? none) if (group.carries(lane)) return true;
    return false;
  }

  /** The number of waiting claims that may take from this lane. */
  awaiting(lane: Lane): number {
    let count = 0;
    for (const group of this.#standing.get(lane.name) ?? none) if (group.carries(lane)) count += group.size;
    return count;
  }

  knows(lane: Lane): boolean {
    return this.#lanes.has(laneKey(lane));
  }

  get size(): number {
    return this.#lanes.size;
  }

  all(): IterableIterator<LaneQueue> {
    return this.#lanes.values();
  }

  stands(group: ClaimGroup): void {
    const lines = group.reach.names.map((name) => this.#lineOf(name));
    const crowded = lines.findIndex((line) => line.size >= standingMax && !line.has(group));
    if (crowded >= 0) throw tooManyKinds(group.reach.names[crowded] as string);
    if (this.#reachChars > reachCharsMax) throw tooLongKinds();
    this.#idle.delete(group);
    // The group may have been removed while a transaction had reserved its only claim.
    if (!this.#groups.has(group.key)) {
      this.#groups.set(group.key, group);
      this.#reachChars += group.key.length;
    }
    for (const line of lines) line.add(group);
  }

  rests(group: ClaimGroup): void {
    for (const name of group.reach.names) {
      const line = this.#standing.get(name);
      line?.delete(group);
      if (line?.size === 0) this.#standing.delete(name);
    }
    this.#idle.add(group);
    this.#forgetIdle();
  }

  #lineOf(name: string): Set<ClaimGroup> {
    let line = this.#standing.get(name);
    if (line === undefined) {
      line = new Set();
      this.#standing.set(name, line);
    }
    return line;
  }

  #treesOf(names: readonly string[]): LaneNode[] {
    const trees: LaneNode[] = [];
    this.#steps += names.length;
    for (const name of names) {
      const tree = this.#trees.get(name);
      if (tree !== undefined) trees.push(tree);
    }
    return trees;
  }

  #note(name: string, now: number): void {
    if (!this.#polledAt.has(name) && this.#polledAt.size >= polledMax) {
      const [longestAgo] = this.#polledAt.keys();
      this.#polledAt.delete(longestAgo as string);
    }
    this.#polledAt.set(name, now);
  }

  /** A lane that is removed here may still be needed when a transaction is undone: `push` creates it again. */
  #forgetEmpty(except: LaneQueue): void {
    for (const queue of this.#empty) {
      if (this.#empty.size <= emptyMax) return;
      if (queue === except) continue;
      this.#empty.delete(queue);
      this.#lanes.delete(laneKey(queue.lane));
      queue.node.prune();
      if (this.#trees.get(queue.lane.name)?.isBare) this.#trees.delete(queue.lane.name);
    }
  }

  #forgetIdle(): void {
    for (const group of this.#idle) {
      if (this.#idle.size <= groupsMax && this.#reachChars <= reachCharsMax) return;
      this.#idle.delete(group);
      if (this.#groups.get(group.key) !== group) continue;
      this.#groups.delete(group.key);
      this.#reachChars -= group.key.length;
    }
  }
}

export function eligible(lane: Lane, reach: Reach): boolean {
  return reach.names.includes(lane.name) && lane.labels.every((label) => reach.labels.includes(label));
}

function tooManyKinds(name: string): LongshoreError {
  const message = `Claims with ${standingMax} different sets of names and labels wait for ${name}, which is the limit: claim again later, without waiting or with labels that other workers have.`;
  return new LongshoreError("LONGSHORE_LIMIT", message);
}

function tooLongKinds(): LongshoreError {
  const message = `The names and labels of the claims that wait have ${reachCharsMax} characters together, which is the limit: claim again later, without waiting.`;
  return new LongshoreError("LONGSHORE_LIMIT", message);
}
