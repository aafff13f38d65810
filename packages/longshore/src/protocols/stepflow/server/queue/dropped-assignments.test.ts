import { expect, it } from "vitest";
import { DroppedAssignments } from "./dropped-assignments.ts";

const large = 4 * 1024 * 1024 + 1;

it("an assignment that is larger than usual is refused when streams keep ending on it", () => {
  const dropped = new DroppedAssignments();
  expect([dropped.countDrop("t", large), dropped.countDrop("other", large), dropped.countDrop("t", large)]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  const message =
    "the assignment has 4194305 bytes, and 3 streams of workers ended on it: gRPC takes 4194304 bytes by default. Keep large inputs as blobs";
  expect(dropped.countDrop("t", large)).toEqual({ code: "INVALID_INPUT", message });
});

it("one of a usual size is sent again as often as it takes", () => {
  const dropped = new DroppedAssignments();
  for (let times = 0; times < 10; times++) expect(dropped.countDrop("t", large - 1)).toBeUndefined();
});

it("only so many are counted at once", () => {
  const dropped = new DroppedAssignments();
  for (let times = 0; times < 2; times++) dropped.countDrop("first", large);
  for (let task = 0; task < 1_000; task++) dropped.countDrop(`t${task}`, large);
  expect(dropped.countDrop("first", large)).toBeUndefined();
});
