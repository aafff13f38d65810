import { describe, expect, it } from "vitest";
import type { Ending } from "../core/context.ts";
import { LongshoreError, TerminalError } from "../core/errors.ts";
import { type Ended, outcomeOf } from "./outcome.ts";

const deferral = { "longshore.deferral": true, delayMs: 5, output: { at: 1 } } as const;
const ends: Record<string, Ended> = {
  value: { kind: "returned", value: { a: 1 } },
  deferral: { kind: "returned", value: deferral },
  terminal: { kind: "threw", error: new TerminalError("never") },
  error: { kind: "threw", error: new Error("oops") },
};
const cancelled = new LongshoreError("LONGSHORE_CANCELLED", "cancelled");
const deadline = new LongshoreError("LONGSHORE_DEADLINE", "timed out");
const shutdown = new LongshoreError("LONGSHORE_SHUTDOWN", "stopping");

/** An outcome in short: its kind and, for failures, the text and whether a retry is allowed. */
function short(end: string, stopped?: LongshoreError): string {
  const outcome = outcomeOf(ends[end] as Ended, stopped);
  return outcome.kind === "failed" ? `${outcome.error.message} ${outcome.retryable ? "retry" : "final"}` : outcome.kind;
}

describe("the table of outcomes", () => {
  it.each([
    ["value", undefined, "done"],
    ["deferral", undefined, "deferred"],
    ["terminal", undefined, "never final"],
    ["error", undefined, "oops retry"],
    ["value", cancelled, "cancelled final"],
    ["deferral", cancelled, "cancelled final"],
    ["terminal", cancelled, "cancelled final"],
    ["error", cancelled, "cancelled final"],
    ["value", deadline, "done"],
    ["deferral", deadline, "deferred"],
    ["terminal", deadline, "never final"],
    ["error", deadline, "timed out retry"],
    ["value", shutdown, "done"],
    ["deferral", shutdown, "deferred"],
    ["terminal", shutdown, "never final"],
    ["error", shutdown, "stopping retry"],
  ] as const)("a handler that ended with %s when stopped by %s gives: %s", (end, stopped, expected) => {
    expect(short(end, stopped)).toBe(expected);
  });

  it("turns an absent value into null, and permanently refuses a value that JSON cannot hold", () => {
    expect(outcomeOf({ kind: "returned", value: undefined }, undefined)).toEqual({ kind: "done", output: null });
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    expect(outcomeOf({ kind: "returned", value: cycle }, undefined)).toMatchObject({
      kind: "failed",
      retryable: false,
      error: { code: "LONGSHORE_BAD_OUTPUT" },
    });
    expect(outcomeOf({ kind: "returned", value: 1n }, undefined)).toMatchObject({ kind: "failed", retryable: false });
  });

  it("reports the ending that a handler returned instead of a value, with the output of a failure", () => {
    const ending = (outcome: Ending["outcome"]) => outcomeOf({ kind: "returned", value: { "longshore.ending": true, outcome } }, undefined);
    expect(ending({ kind: "done", output: { a: 1 } })).toEqual({ kind: "done", output: { a: 1 } });
    expect(ending({ kind: "failed", message: "no stock", retryable: true, output: { asked: 3 } })).toMatchObject({
      kind: "failed",
      retryable: true,
      output: { asked: 3 },
      error: { message: "no stock" },
    });
    expect(ending({ kind: "failed", message: "never", retryable: false })).not.toHaveProperty("output");
  });

  it("includes each cause once, and accepts thrown values that are not an Error", () => {
    const error = new Error("fetch failed", { cause: new Error("fetch failed", { cause: new Error("ECONNREFUSED") }) });
    expect(outcomeOf({ kind: "threw", error }, undefined)).toMatchObject({ error: { message: "fetch failed\ncaused by: ECONNREFUSED" } });
    expect(outcomeOf({ kind: "threw", error: "plain text" }, undefined)).toMatchObject({ error: { message: "plain text" } });
    expect(outcomeOf({ kind: "threw", error: new RangeError() }, undefined)).toMatchObject({ error: { message: "RangeError" } });
  });
});
