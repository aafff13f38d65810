// Counters of nodes that wait for several others: what this decision makes of them, over what the store says.

import type { Change, Frontier, Need } from "./decide.ts";
import type { PlanNode } from "./plan.ts";

/** Joins asked for at once at least, when a cascade of skips or demands runs into one that has not been loaded. */
const aheadMin = 16;

export interface Counter {
  left: number;
  begun: boolean;
}

export class Joins {
  readonly #frontier: Pick<Frontier, "join">;
  readonly #need: Need;
  /** Nodes that are demanded wait for that too. */
  readonly #lazy: boolean;
  readonly #counters = new Map<number, Counter>();
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
    return Array.from(this.#counters, ([node, { left, begun }]) => ({ kind: "join", node, left, begun }));
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
    return row ?? { left: node.after.length, begun: false };
  }

  /** Counts one upstream of `node` as settled. True when the node is to start now, or to be skipped because it is blocked. */
  arrive(at: number, node: PlanNode, blocked: boolean): boolean {
    const lazy = this.#lazy && node.demanded === true;
    if (node.waitsFor === "any" || (node.after.length === 1 && node.kind !== "join" && !lazy)) return true;
    const counter = this.of(at, node);
    if (counter === undefined) {
      this.set(at, { left: -1, begun: false });
      return blocked && this.#asksAhead();
    }
    const { left, begun } = counter;
    if (left === -1) return false;
    if (node.kind === "join") {
      this.set(at, { left: left - 1, begun });
      return begun && left === 1;
    }
    if (lazy && !begun) {
      this.set(at, { left: blocked ? -1 : left - 1, begun });
      return false;
    }
    const starts = blocked || left === 1;
    this.set(at, { left: starts ? -1 : left - 1, begun });
    return starts;
  }

  /**
   * The node of a lazy plan is wanted from now on: `start` it or `skip` it now, let it `wait`, or `leave` it, because it was wanted before.
   * For one that has to be loaded first it guesses, while it pays to look further, so that more is asked for at once: that it starts when
   * nothing else can keep it, or when a long cascade has come this far, and else that it waits.
   */
  want(at: number, node: PlanNode): "start" | "skip" | "wait" | "leave" {
    const counter = this.of(at, node);
    if (counter === undefined) {
      this.set(at, { left: -1, begun: true });
      if (!this.#asksAhead()) return "leave";
      return node.after.length === 0 || (node.kind === "instant" && this.#seen >= aheadMin) ? "start" : "wait";
    }
    const { left, begun } = counter;
    if (begun) return "leave";
    // A join says itself that it has begun to wait.
    if (node.kind === "join") return "start";
    this.set(at, { left: left === 0 ? -1 : left, begun: true });
    return left === 0 ? "start" : left === -1 ? "skip" : "wait";
  }

  /** Along a cascade, as far again as it has come: a long one takes few rounds, a short one asks for little too much. */
  #asksAhead(): boolean {
    return this.#need.joins.length < Math.max(aheadMin, this.#seen);
  }
}
