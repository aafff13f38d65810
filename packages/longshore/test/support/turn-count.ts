// Counts what happens in one turn of the event loop. The count is the same on every machine, so a test can bound it.

import { onTestFinished } from "vitest";

export interface TurnCount {
  /** Something has happened. */
  add(): void;
  /** The total count. */
  readonly total: number;
  /** The highest count of one turn. */
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
