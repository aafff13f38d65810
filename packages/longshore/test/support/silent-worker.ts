// A worker in a separate process, whose clock the test controls. Each message moves the clock by the given milliseconds, and the reply has
// the resources that the process has used so far. Everything except the clock is real: the command, its pipes, the connections.

import { performance } from "node:perf_hooks";
import type { Clock } from "../../src/core/clock.ts";
import { work } from "../../src/index.ts";
import { workflowGraph } from "../../src/protocols/workflow-graph/worker/index.ts";
import { TestClock } from "../../src/testing/clock.ts";

export interface Cost {
  /** Timers that have fired. */
  fired: number;
  /** Processor time of this process, its own and the kernel's for it. */
  cpuMs: number;
  /** Turns of the event loop. */
  turns: number;
}

const time = new TestClock();
let fired = 0;
const clock: Clock = {
  now: () => time.now(),
  at: (atMs, fn) =>
    time.at(atMs, () => {
      fired++;
      fn();
    }),
};
const on = workflowGraph(process.argv[2] as string, { shell: true, workerId: "silent" });
await work({ tasks: [], on, slots: 1, clock, logger: false });

process.on("message", async (ms: number) => {
  await time.advance(ms);
  const { user, system } = process.cpuUsage();
  const cost: Cost = { fired, cpuMs: (user + system) / 1_000, turns: performance.nodeTiming.uvMetricsInfo.loopCount };
  process.send?.(cost);
});
