// A worker of Stepflow's queues under test, on a clock that does not move.

import { onTestFinished } from "vitest";
import type { Task } from "../../src/core/task.ts";
import type { Notice } from "../../src/runner/notices.ts";
import type { Transport } from "../../src/runner/transport.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { type WorkHandle, type WorkOptions, work } from "../../src/work.ts";

export interface TestWorker {
  readonly worker: WorkHandle;
  readonly clock: TestClock;
  readonly notices: Notice[];
  /** Lets time pass in steps until the condition holds: what happens in between may need the network. */
  readonly pass: (condition: () => boolean, stepMs?: number) => Promise<void>;
}

/** Stopped with the test. */
export async function startWorker(tasks: readonly Task[], on: Transport, options: Partial<WorkOptions> = {}): Promise<TestWorker> {
  const clock = new TestClock();
  const notices: Notice[] = [];
  const logger = (notice: Notice) => void notices.push(notice);
  const worker = await work({ tasks, on, signals: false, clock, logger, random: () => 0.5, ...options });
  onTestFinished(async () => {
    const stopped = worker.stop({ force: true });
    let over = false;
    void stopped.then(() => {
      over = true;
    });
    await pass(clock, () => over);
  });
  return { worker, clock, notices, pass: (condition, stepMs) => pass(clock, condition, stepMs) };
}

async function pass(clock: TestClock, condition: () => boolean, stepMs = 50): Promise<void> {
  while (!condition()) {
    await clock.advance(stepMs);
    // Sockets get a turn. `advance` itself lets only promises run.
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
}
