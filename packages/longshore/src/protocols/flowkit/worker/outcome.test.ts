import { describe, expect, it } from "vitest";
import { classifyError } from "./classify.ts";
import { failureEvent } from "./outcome.ts";

describe("the outcome of a run", () => {
  it("a command for a role without a handler fails permanently, as in the reference", () => {
    const error = { name: "TerminalError", message: "handler not registered", code: "LONGSHORE_NO_HANDLER" as const, stack: undefined };
    const facts = { failure: undefined, cancelReason: undefined, classify: classifyError };
    expect(failureEvent({ kind: "failed", error, retryable: false }, facts)).toEqual({
      kind: "failed",
      reason: "no_handler",
      permanent: true,
      error: "handler not registered",
    });
  });
});
