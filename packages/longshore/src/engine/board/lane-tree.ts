// The lanes of one name in a tree by their labels, in alphabetical order: the lane of `gpu` and `linux` is below `gpu`, then `linux`. A
// claim follows only its own labels, and always the branch whose best task comes first. So it finds its lane without visiting the others,
// however many there are.
//
// A node keeps the heads of its branches in a heap. An entry is a lower bound: nothing below that branch comes before it. The entry is
// corrected when it reaches the top, so taking a task costs nothing here.

import { Heap } from "./heap.ts";
import type { Lane } from "./task.ts";

/** The place of a queued task: smaller priority first, then the order of queueing. */
export interface Place {
  id: string;
  priority: number;
  sequence: number;
}

export interface LaneQueue {
  readonly lane: Lane;
  /** Rises with each new lane. */
  readonly position: number;
  /** In a lane of the server itself, runs take turns. */
  readonly ready: Pick<Heap<Place>, "size" | "peek" | "push" | "pop" | "next" | "values">;
  node: LaneNode;
}

/** The entry of a branch in its parent's heap. */
interface Head {
  readonly place: Place;
  readonly node: LaneNode;
}

/** Outdated entries of a heap are removed when they outnumber its branches by this many. */
const staleMax = 64;

export function goesBefore(a: Place, b: Place): boolean {
  return a.priority < b.priority || (a.priority === b.priority && a.sequence < b.sequence);
}

export class LaneNode {
  queue: LaneQueue | null = null;
  readonly #label: string;
  readonly #parent: LaneNode | null;
  #branches: Map<string, LaneNode> | null = null;
  #heads: Heap<Head> | null = null;
  /** This node's entry in its parent's heap. Its place is never behind the best place below this node. */
  #entry: Head | null = null;

  constructor(label = "", parent: LaneNode | null = null) {
    this.#label = label;
    this.#parent = parent;
  }

  get isBare(): boolean {
    return this.queue === null && this.#branches === null;
  }

  get branches(): ReadonlyMap<string, LaneNode> | null {
    return this.#branches;
  }

  /** Returns the node of these labels below this one, and creates it when it does not exist. */
  at(labels: readonly string[]): LaneNode {
    let node: LaneNode = this;
    for (const label of labels) {
      node.#branches ??= new Map();
      let next = node.#branches.get(label);
      if (next === undefined) {
        next = new LaneNode(label, node);
        node.#branches.set(label, next);
      }
      node = next;
    }
    return node;
  }

  /** The lane of this node was removed: also removes the nodes that led only to it. */
  prune(): void {
    this.queue = null;
    for (let node: LaneNode = this; node.isBare && node.#parent !== null; node = node.#parent) {
      const siblings = node.#parent.#branches as Map<string, LaneNode>;
      siblings.delete(node.#label);
      node.#entry = null;
      if (siblings.size === 0) {
        node.#parent.#branches = null;
        node.#parent.#heads = null;
      }
    }
  }

  /** Must be called when `place` becomes the head of this node's lane. */
  rose(place: Place): void {
    for (let node: LaneNode = this; node.#parent !== null; node = node.#parent) {
      if (node.#entry !== null && !goesBefore(place, node.#entry.place)) return;
      node.#enter(place);
    }
  }

  /** Returns the first place in this node and below it. */
  best(): Place | undefined {
    const own = this.queue?.ready.peek();
    const below = this.#firstBelow();
    return below === undefined || (own !== undefined && goesBefore(own, below)) ? own : below;
  }

  #firstBelow(): Place | undefined {
    for (;;) {
      const head = this.#heads?.peek();
      if (head === undefined) return undefined;
      const { node, place } = head;
      const best = node.#entry === head ? node.best() : undefined;
      if (best === place) return place;
      this.#heads?.pop();
      if (node.#entry !== head) continue;
      node.#entry = null;
      if (best !== undefined) node.#enter(best);
    }
  }

  #enter(place: Place): void {
    const parent = this.#parent as LaneNode;
    this.#entry = { place, node: this };
    if (parent.#heads === null || parent.#heads.size > 2 * (parent.#branches?.size ?? 0) + staleMax) parent.#collect();
    else parent.#heads.push(this.#entry);
  }

  #collect(): void {
    this.#heads = new Heap<Head>((a, b) => goesBefore(a.place, b.place));
    for (const branch of this.#branches?.values() ?? []) if (branch.#entry !== null) this.#heads.push(branch.#entry);
  }
}

/** A node that a search has yet to visit, ordered by the best place it can contain. */
interface Candidate {
  readonly place: Place;
  readonly node: LaneNode;
  /** True for the node's own lane, false for its branches. */
  readonly itself: boolean;
}

/** Labels of a claim: iterable, with a fast lookup. */
export interface LabelSet {
  readonly size: number;
  has(label: string): boolean;
  [Symbol.iterator](): Iterator<string>;
}

/**
 * Returns the lane with the first task, among the lanes of these trees that a claim with these labels may take from. `looked` receives the
 * number of visited nodes.
 */
export function firstLane(roots: readonly LaneNode[], labels: LabelSet, looked: (nodes: number) => void): LaneQueue | null {
  if (roots.every((root) => root.branches === null)) return firstOf(roots);
  const candidates = new Heap<Candidate>((a, b) => goesBefore(a.place, b.place));
  const add = (node: LaneNode, place: Place | undefined, itself: boolean) => {
    if (place !== undefined) candidates.push({ place, node, itself });
  };
  for (const root of roots) add(root, root.best(), root.branches === null);
  let nodes = roots.length;
  for (let found = candidates.pop(); found !== undefined; found = candidates.pop()) {
    const { node, itself } = found;
    if (itself) {
      looked(nodes);
      return node.queue;
    }
    add(node, node.queue?.ready.peek(), true);
    for (const branch of branchesFor(node, labels)) {
      nodes++;
      add(branch, branch.best(), branch.branches === null);
    }
  }
  looked(nodes);
  return null;
}

/** The same for lanes without labels, which most claims use. */
function firstOf(roots: readonly LaneNode[]): LaneQueue | null {
  let found: LaneQueue | null = null;
  let first: Place | undefined;
  for (const { queue } of roots) {
    const head = queue?.ready.peek();
    if (head === undefined || (first !== undefined && !goesBefore(head, first))) continue;
    found = queue;
    first = head;
  }
  return found;
}

/** Iterates over the branches or the labels, whichever are fewer. */
function* branchesFor({ branches }: LaneNode, labels: LabelSet): Iterable<LaneNode> {
  if (branches === null) return;
  if (branches.size <= labels.size) {
    for (const [label, branch] of branches) if (labels.has(label)) yield branch;
    return;
  }
  for (const label of labels) {
    const branch = branches.get(label);
    if (branch !== undefined) yield branch;
  }
}
