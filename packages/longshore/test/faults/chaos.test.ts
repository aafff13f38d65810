import { expect, it } from "vitest";
import { planFaults } from "./chaos.ts";

const onServer = { "kill-server": 3, "end-server": 1, "stop-server": 2 };
const counts = { ...onServer, "kill-worker": 4, "stop-worker": 2, "silence-link": 2, "cut-link": 3, "cancel-run": 5 };
const options = { seed: 42, durationMs: 10_000, workers: 3, links: 1, termMs: 1000, counts };

it("the same seed gives the same schedule, another seed another one", () => {
  expect(planFaults(options)).toEqual(planFaults(options));
  expect(planFaults({ ...options, seed: 43 })).not.toEqual(planFaults(options));
});

it("a schedule has the requested number of each fault, in the order of time, and stops are longer than the lease", () => {
  const faults = planFaults(options);
  for (const [kind, count] of Object.entries(counts)) expect(faults.filter((fault) => fault.do === kind)).toHaveLength(count);
  expect(faults.map(({ atMs }) => atMs)).toEqual(faults.map(({ atMs }) => atMs).sort((a, b) => a - b));
  for (const fault of faults) if ("stopMs" in fault) expect(fault.stopMs).toBeGreaterThan(options.termMs);
});
