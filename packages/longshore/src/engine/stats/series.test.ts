import { expect, it } from "vitest";
import { Series } from "./series.ts";

const levels = [
  { stepMs: 10, samples: 4 },
  { stepMs: 100, samples: 3 },
];

function setup() {
  return { series: new Series(levels) };
}

it("counts in each ring, and forgets what is older than a ring", () => {
  const { series } = setup();
  for (const at of [1_000, 1_005, 1_010, 1_039]) series.count("started", at);
  expect(series.columns(0, 1_039)).toMatchObject({ from: 1_000, stepMs: 10, counts: { started: [2, 1, 0, 1] } });
  series.count("started", 1_055);
  expect(series.columns(0, 1_055)).toMatchObject({ from: 1_020, counts: { started: [0, 1, 0, 1] } });
  expect(series.columns(1, 1_055)).toMatchObject({ from: 1_000, counts: { started: [5] } });
  expect(series.columns(1, 9_999).counts.started).toEqual([0, 0, 0]);
});

it("shows a gauge in every sample, also where nothing happened", () => {
  const { series } = setup();
  series.count("started", 1_000);
  series.look({ ready: 7, held: 0, workers: 0 }, 1_010);
  series.look({ ready: 8, held: 0, workers: 0 }, 1_038);
  expect(series.columns(0, 1_039).gauges.ready).toEqual([7, 8, 8, 8]);
});

it("an event that comes late counts in the current sample", () => {
  const { series } = setup();
  series.count("started", 1_020);
  series.count("started", 1_000);
  expect(series.columns(0, 1_020).counts.started).toEqual([2]);
});

it("measures times to within a power of two", () => {
  const { series } = setup();
  for (let ms = 1; ms <= 1_000; ms++) series.time("wait", ms, 1_000);
  series.time("work", 0, 1_000);
  const { wait, work } = series.columns(0, 1_000).times;
  expect(wait.p50[0]).toBeGreaterThan(400);
  expect(wait.p50[0]).toBeLessThan(600);
  expect(wait.p99[0]).toBeGreaterThan(900);
  expect(work.p50).toEqual([0]);
  expect(series.columns(0, 1_010).times.wait.p50).toEqual([wait.p50[0], null]);
  series.time("work", 1e12, 1_010);
  expect(series.columns(0, 1_010).times.work.p50[1]).toBeGreaterThan(2 ** 29);
});
