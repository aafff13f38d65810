import { describe, expect, it } from "vitest";
import { classifyError } from "./classify.ts";
import { failureEvent } from "./outcome.ts";

describe("how a run ended", () => {
  it("a command for a role without a handler fails permanently, as on the reference's wire", () => {
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
