// Counters of nodes that wait for several others: the changes of this decision, on top of the stored rows.

import type { Change, Frontier, Need } from "./decide.ts";
import { LazyMap } from "./lazy-map.ts";
import { countsAlways, type PlanNode, requiredOf } from "./plan.ts";

/** Minimum number of joins per load, when a cascade of skips or demands reaches one that has not been loaded. */
const aheadMin = 16;

export interface Counter {
  left: number;
  begun: boolean;
  missed: number;
}

export class Joins {
  readonly #frontier: Pick<Frontier, "join">;
  readonly #need: Need;
  /** True for a lazy plan: some nodes also wait until another node wants them. */
  readonly #lazy: boolean;
  readonly #counters = new LazyMap<number, Counter>();
  /** The number of visited counters: how far this decision has come. */
  #seen = 0;

  constructor(frontier: Pick<Frontier, "join">, need: Need, lazy: boolean) {
    this.#frontier = frontier;
    this.#need = need;
    this.#lazy = lazy;
  }

  set(node: number, counter: Counter): void {
    this.#counters.set(node, counter);
  }

  changes(): Change[] {
    return Array.from(this.#counters.entries(), ([node, { left, begun, missed }]) => ({ kind: "join", node, left, begun, missed }));
  }

  /** Undefined when the counter has to be loaded first. */
  of(at: number, node: PlanNode): Counter | undefined {
    const known = this.#counters.get(at);
    if (known !== undefined) return known;
    const row = this.#frontier.join(at);
    if (row === undefined) {
      this.#need.joins.push(at);
      return undefined;
    }
    this.#seen++;
    return row ?? { left: requiredOf(node), begun: false, missed: 0 };
  }

  /**
   * Counts one upstream of `node` that has settled or, with `blocked`, that can never succeed. Returns true when `node` must now start or
   * be skipped.
   */
  arrive(at: number, node: PlanNode, blocked: boolean): boolean {
    const lazy = this.#lazy && node.demanded === true;
    if (node.waitsFor === "any" || (!countsAlways(node) && !lazy)) return true;
    const counter = this.of(at, node);
    if (counter === undefined) {
      this.set(at, { left: -1, begun: false, missed: 0 });
      return blocked && this.#asksAhead();
    }
    const { left, begun, missed } = counter;
    // The node has been started or skipped, or it has all that it needs and only waits until another node wants it.
    if (left <= 0) return false;
    if (node.kind === "join") {
      this.set(at, { ...counter, left: left - 1 });
      return begun && left === 1;
    }
    if (blocked && node.after.length - missed > requiredOf(node)) {
      this.set(at, { ...counter, missed: missed + 1 });
      return false;
    }
    const decided = blocked || left === 1;
    const waits = lazy && !begun;
    this.set(at, { ...counter, left: decided && (blocked || !waits) ? -1 : left - 1 });
    return decided && !waits;
  }

  /**
   * A node of a lazy plan becomes wanted: `start` it or `skip` it now, let it `wait`, or `leave` it, because it was wanted before. When its
   * counter is not loaded yet, the result is a guess, so that the decision continues and loads more at once. The guess is `start` when
   * nothing else can block the node, or at the end of a long cascade; otherwise `wait`.
   */
  want(at: number, node: PlanNode): "start" | "skip" | "wait" | "leave" {
    const counter = this.of(at, node);
    if (counter === undefined) {
      this.set(at, { left: -1, begun: true, missed: 0 });
      if (!this.#asksAhead()) return "leave";
      return node.after.length === 0 || (node.kind === "instant" && this.#seen >= aheadMin) ? "start" : "wait";
    }
    const { left, begun, missed } = counter;
    if (begun) return "leave";
    // A join itself records that it has started to wait.
    if (node.kind === "join") return "start";
    this.set(at, { left: left === 0 ? -1 : left, begun: true, missed });
    return left === 0 ? "start" : left === -1 ? "skip" : "wait";
  }

  /**
   * Looks ahead along a cascade by the distance that the cascade has already come. So a long cascade takes few rounds, and a short one
   * loads few unneeded rows.
   */
  #asksAhead(): boolean {
    return this.#need.joins.length < Math.max(aheadMin, this.#seen);
  }
}
