import { describe, expect, it } from "vitest";
import { LongshoreError, refusal, TerminalError } from "../../../core/errors.ts";
import { failureOf, outcomeOf } from "../../../runner/outcome.ts";
import { TaskErrorCode } from "../wire/messages.ts";
import { type FailedOutcome, taskErrorOf } from "./task-error.ts";

const thrown = (error: unknown) => outcomeOf({ kind: "threw", error }, undefined) as FailedOutcome;
const stopped = (reason: LongshoreError) => outcomeOf({ kind: "threw", error: reason }, reason) as FailedOutcome;

describe("the code of a reported failure", () => {
  it.each([
    ["anything a handler throws", thrown(new TypeError("x")), "COMPONENT_FAILED"],
    ["a text that a handler throws", thrown("x"), "COMPONENT_FAILED"],
    ["a TerminalError", thrown(new TerminalError("never")), "WORKER_ERROR"],
    ["input that does not fit the schema", thrown(refusal("LONGSHORE_BAD_INPUT", "n")), "INVALID_INPUT"],
    ["a component that is not here", thrown(refusal("LONGSHORE_NO_HANDLER", "n")), "COMPONENT_NOT_FOUND"],
    ["output that does not fit the schema", thrown(refusal("LONGSHORE_BAD_OUTPUT", "n")), "WORKER_ERROR"],
    ["a time that has passed", stopped(new LongshoreError("LONGSHORE_DEADLINE", "timed out")), "TIMEOUT"],
    ["a cancel", stopped(new LongshoreError("LONGSHORE_CANCELLED", "cancelled")), "CANCELLED"],
    ["a worker that stops", stopped(new LongshoreError("LONGSHORE_SHUTDOWN", "stopping")), "UNREACHABLE"],
    ["a peer that is not there", thrown(Object.assign(new Error("x"), { code: "ECONNREFUSED" })), "RESOURCE_UNAVAILABLE"],
    ["a peer that takes too long", thrown(new DOMException("late", "TimeoutError")), "RESOURCE_UNAVAILABLE"],
    [
      "a final word about a peer that is not there",
      { ...thrown(new LongshoreError("LONGSHORE_UNREACHABLE", "x")), retryable: false },
      "WORKER_ERROR",
    ],
  ] as const)("of %s is %s", (_name, outcome, code) => {
    expect(taskErrorOf(outcome).code).toBe(TaskErrorCode[code]);
  });

  it("is sent with the class, the stack and a partial output, which are cut when they are long", () => {
    const error = { ...failureOf(new RangeError("x".repeat(20_000))), stack: `top\n${"y".repeat(20_000)}\nend` };
    const told = taskErrorOf({ kind: "failed", retryable: true, error, output: { so: "far" } });
    expect(told.data).toMatchObject({ exception_type: "RangeError", details: { so: "far" } });
    expect(told.message.length).toBe(16_384);
    expect(String(told.data.traceback)).toMatch(/^top\n.*cut here.*\nend$/s);
  });
});
