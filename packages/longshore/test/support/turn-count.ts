// Counts what happens in one turn of the event loop: a bound on the loop is a bound on this count, on every machine.

import { onTestFinished } from "vitest";

export interface TurnCount {
  /** Something has happened. */
  add(): void;
  /** All of it. */
  readonly total: number;
  /** The most of one turn. */
  readonly most: number;
}

/** Counts until the end of the test. */
export function countTurns(): TurnCount {
  let total = 0;
  let most = 0;
  let inTurn = 0;
  const next = () => {
    inTurn = 0;
    immediate = setImmediate(next);
  };
  let immediate = setImmediate(next);
  onTestFinished(() => clearImmediate(immediate));
  return {
    add() {
      total++;
      most = Math.max(most, ++inTurn);
    },
    get total() {
      return total;
    },
    get most() {
      return most;
    },
  };
}
