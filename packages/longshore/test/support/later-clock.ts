// In place of testing/clock.ts when tests run with LONGSHORE_TEST_ROWS=later (vitest.config.ts): what a timer has woken takes more turns.

import { TestClock as ClockAtHand } from "../../src/testing/clock.ts";

/** Turns of the event loop for what takes one where rows are at hand: several reads, one after the other, and a commit. */
const laterTurns = 30;

export class TestClock extends ClockAtHand {
  protected override async turn(): Promise<void> {
    for (let turn = 0; turn < laterTurns; turn++) await super.turn();
  }
}
