// Counters of nodes that wait for several others: what this decision makes of them, over what the store says.

import type { Change, Frontier, Need } from "./decide.ts";
import type { PlanNode } from "./plan.ts";

/** Joins asked for at once at least, when a cascade of skips runs into one that has not been loaded. */
const aheadMin = 16;

export interface Counter {
  left: number;
  begun: boolean;
}

export class Joins {
  readonly #frontier: Pick<Frontier, "join">;
  readonly #need: Need;
  readonly #counters = new Map<number, Counter>();
  /** Counters that have been looked at, which is how far this decision has come. */
  #seen = 0;

  constructor(frontier: Pick<Frontier, "join">, need: Need) {
    this.#frontier = frontier;
    this.#need = need;
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
    if (node.waitsFor === "any" || (node.after.length === 1 && node.kind !== "join")) return true;
    const counter = this.of(at, node);
    if (counter === undefined) {
      this.set(at, { left: -1, begun: false });
      // Asks ahead along a cascade of skips, as far again as it has come: a long one takes few rounds, a short one asks for little too much.
      return blocked && this.#need.joins.length < Math.max(aheadMin, this.#seen);
    }
    const { left, begun } = counter;
    if (left === -1) return false;
    if (node.kind === "join") {
      this.set(at, { left: left - 1, begun });
      return begun && left === 1;
    }
    const starts = blocked || left === 1;
    this.set(at, { left: starts ? -1 : left - 1, begun });
    return starts;
  }
}
