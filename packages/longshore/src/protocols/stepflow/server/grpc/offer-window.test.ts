import { expect, it } from "vitest";
import { OfferWindow } from "./offer-window.ts";

const claims = (ahead: OfferWindow, count: number, ms = 5): void => {
  for (let claim = 0; claim < count; claim++) ahead.claimedAfter(ms);
};

it("a worker that is new or has little work gets one task at a time", () => {
  const ahead = new OfferWindow();
  expect(ahead.most).toBe(1);
  claims(ahead, 3);
  expect(ahead.most).toBe(1);
});

it("a worker that repeatedly claims at once gets more tasks in advance, up to a limit", () => {
  const ahead = new OfferWindow();
  claims(ahead, 8);
  expect(ahead.most).toBe(3);
  claims(ahead, 1_000);
  expect(ahead.most).toBe(16);
});

it("a worker that claims slowly gets fewer, and must again show that it claims at once", () => {
  const ahead = new OfferWindow();
  claims(ahead, 1_000);
  claims(ahead, 1, 300);
  expect(ahead.most).toBe(8);
  claims(ahead, 3);
  expect(ahead.most).toBe(8);
  claims(ahead, 10, 300);
  expect(ahead.most).toBe(1);
});

it("a worker that leaves a task unclaimed gets one at a time again", () => {
  const ahead = new OfferWindow();
  claims(ahead, 1_000);
  ahead.lapsed();
  expect(ahead.most).toBe(1);
  claims(ahead, 4);
  expect(ahead.most).toBe(2);
});
