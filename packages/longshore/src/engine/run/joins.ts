// Counters of nodes that wait for several others: the changes of this decision, over the rows of the store.

import type { Change, Frontier, Need } from "./decide.ts";
import { LazyMap } from "./lazy-map.ts";
import { countsAlways, type PlanNode, requiredOf } from "./plan.ts";

/** Joins loaded at once at least, when a cascade of skips or demands runs into one that has not been loaded. */
const aheadMin = 16;

export interface Counter {
  left: number;
  begun: boolean;
  missed: number;
}

export class Joins {
  readonly #frontier: Pick<Frontier, "join">;
  readonly #need: Need;
  /** Nodes that are demanded wait for that too. */
  readonly #lazy: boolean;
  readonly #counters = new LazyMap<number, Counter>();
  /** Counters that have been looked at, which is how far this decision has come. */
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

  /** Undefined when it has to be loaded first. */
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
   * Counts one upstream of `node`: it has come, or `blocked`: it never will. True when the node is to start now because of that, or to be
   * skipped.
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
    // It has been started or skipped; or has all that it needs, and only waits to be wanted.
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
   * The node of a lazy plan is wanted from now on: `start` it or `skip` it now, let it `wait`, or `leave` it, because it was wanted before.
   * For one that has to be loaded first it guesses, while it pays to look further, so that more is loaded at once: that it starts when
   * nothing else can keep it, or when a long cascade has come this far, and else that it waits.
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
    // A join records itself that it has begun to wait.
    if (node.kind === "join") return "start";
    this.set(at, { left: left === 0 ? -1 : left, begun: true, missed });
    return left === 0 ? "start" : left === -1 ? "skip" : "wait";
  }

  /** Along a cascade, as far again as it has come: a long one takes few rounds, a short one loads few rows too many. */
  #asksAhead(): boolean {
    return this.#need.joins.length < Math.max(aheadMin, this.#seen);
  }
}
