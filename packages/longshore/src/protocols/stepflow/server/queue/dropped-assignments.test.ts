import { expect, it } from "vitest";
import { DroppedAssignments } from "./dropped-assignments.ts";

const large = 4 * 1024 * 1024 + 1;

it("an unusually large assignment is refused when streams end on it again and again", () => {
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

it("an assignment of a usual size is sent again without a limit", () => {
  const dropped = new DroppedAssignments();
  for (let times = 0; times < 10; times++) expect(dropped.countDrop("t", large - 1)).toBeUndefined();
});

it("the number of counted assignments is limited", () => {
  const dropped = new DroppedAssignments();
  for (let times = 0; times < 2; times++) dropped.countDrop("first", large);
  for (let task = 0; task < 1_000; task++) dropped.countDrop(`t${task}`, large);
  expect(dropped.countDrop("first", large)).toBeUndefined();
});
