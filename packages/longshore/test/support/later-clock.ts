// Replaces testing/clock.ts when tests run with LONGSHORE_TEST_ROWS=later (vitest.config.ts): the work of a timer takes more turns.

import { TestClock as ClockAtHand } from "../../src/testing/clock.ts";

/** Turns of the event loop for work that takes one when rows are in memory: several reads and a commit. */
const laterTurns = 30;

export class TestClock extends ClockAtHand {
  protected override async turn(): Promise<void> {
    for (let turn = 0; turn < laterTurns; turn++) await super.turn();
  }
}
