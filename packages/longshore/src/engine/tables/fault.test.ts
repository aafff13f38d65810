import { expect, it } from "vitest";
import type { Deadline, Fault } from "../board/task.ts";
import { faultOfText, faultText } from "./fault.ts";

const faults: (Fault | null)[] = [null, "failed", "final", "lost", "timed-out"];
const deadlines: (Deadline | null)[] = [null, "claimBy", "holdUntil", "endBy", "totalBy"];

it("a fault and the deadline that was missed come back as they were written", () => {
  for (const fault of faults) {
    for (const overdue of fault === "lost" || fault === "timed-out" ? deadlines.slice(1) : [null])
      expect(faultOfText(faultText({ fault, overdue }), "whatever")).toEqual({ fault, overdue });
  }
});

it.each([
  ["lost", "lease expired", "holdUntil"],
  ["lost", null, "holdUntil"],
  ["lost", "the peer went away", null],
  ["timed-out", "timed out: nobody took it in time", "claimBy"],
  ["timed-out", "timed out (claimBy)", "claimBy"],
  ["timed-out", "timed out: the task took too long", "totalBy"],
  ["timed-out", "timed out (totalBy)", "totalBy"],
  ["timed-out", "timed out: the attempt took too long", "endBy"],
  ["failed", "timed out (claimBy)", null],
] as const)("a row of an earlier version with fault %s and error %s missed %s", (fault, error, overdue) => {
  expect(faultOfText(fault, error)).toEqual({ fault, overdue });
});
