import { expect, it } from "vitest";
import { Age } from "./age.ts";

const dayMs = 86_400_000;
const start = 1_000 * dayMs;

it("the age follows the clock while the server runs, and over a restart", () => {
  const age = new Age(null, start);
  expect(age.at(start + 5)).toBe(start + 5);
  expect(new Age(age.mark, start + dayMs).at(start + dayMs)).toBe(start + dayMs);
});

it("a long absence counts as one day, and the rest is caught up at twice the speed", () => {
  const age = new Age({ seenAt: start, lagMs: 0 }, start + 11 * dayMs);
  expect(age.at(start + 11 * dayMs)).toBe(start + dayMs);
  expect(age.at(start + 14 * dayMs)).toBe(start + 7 * dayMs);
  expect(age.at(start + 21 * dayMs)).toBe(start + 21 * dayMs);
  expect(age.at(start + 22 * dayMs)).toBe(start + 22 * dayMs);
});

it("restarts while the clock is ahead do not raise the age further", () => {
  const ahead = start + 40 * dayMs;
  let { mark } = new Age({ seenAt: start, lagMs: 0 }, ahead);
  for (let restart = 1; restart <= 100; restart++) ({ mark } = new Age(mark, ahead + restart * 1_000));
  expect(new Age(mark, ahead + 101_000).at(ahead + 101_000)).toBeLessThanOrEqual(start + dayMs + 101_000);
});

it("the age is right again when a clock that was ahead is right again", () => {
  const { mark } = new Age({ seenAt: start, lagMs: 0 }, start + 40 * dayMs);
  expect(new Age(mark, start + dayMs / 2).at(start + dayMs / 2)).toBe(start + dayMs / 2);
});
