import { expect, it } from "vitest";
import type { Deadline, Fault } from "../board/task.ts";
import { faultOfRow, faultText } from "./fault.ts";

const faults: (Fault | null)[] = [null, "failed", "final", "lost", "timed-out", "unmade"];
const deadlines: (Deadline | null)[] = [null, "claimBy", "holdUntil", "endBy", "totalBy"];

it("a fault and the missed deadline are read as they were written", () => {
  for (const fault of faults) {
    for (const overdue of fault === "lost" || fault === "timed-out" ? deadlines.slice(1) : [null])
      expect(faultOfRow({ fault: faultText({ fault, overdue }), error: "whatever", grants: 1 })).toEqual({ fault, overdue });
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
  expect(faultOfRow({ fault, error, grants: 1 })).toEqual({ fault, overdue });
});

it.each([
  ["final", "Cannot map a dynamic task based on the parameter and input. Parameter= which, input= {}"],
  ["failed", "No evaluator registered for type: magic"],
  ["failed", "Fork task definition is not followed by a join task.  Check the blueprint"],
] as const)("a row of an earlier version with fault %s and error %s could not be made, unless a worker has reported it", (fault, error) => {
  expect(faultOfRow({ fault, error, grants: 0 })).toEqual({ fault: "unmade", overdue: null });
  expect(faultOfRow({ fault, error, grants: 1 })).toEqual({ fault, overdue: null });
});

it("another failure of a task that was never handed out is read as it was written", () => {
  expect(faultOfRow({ fault: "final", error: "there is no workflow x", grants: 0 })).toEqual({ fault: "final", overdue: null });
});
