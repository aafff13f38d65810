import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import {
  codeOf,
  errorCodes,
  isClosing,
  isRefused,
  isTerminal,
  isTransient,
  LongshoreError,
  refusal,
  TerminalError,
  toError,
} from "./errors.ts";

describe("errors", () => {
  it("carry a code, a message, a cause and the place of the mistake", () => {
    const cause = new Error("below");
    const error = new LongshoreError("LONGSHORE_BAD_INPUT", "It is wrong.", { cause, detail: { field: "jobs[2]", expected: "text" } });
    expect(error).toMatchObject({
      name: "LongshoreError",
      code: "LONGSHORE_BAD_INPUT",
      cause,
      detail: { field: "jobs[2]", expected: "text" },
    });
    expect(new LongshoreError("LONGSHORE_CLOSED", "Closed.")).not.toHaveProperty("cause");
  });

  it("have codes that are unique and in one form", () => {
    expect(new Set(errorCodes).size).toBe(errorCodes.length);
    for (const code of errorCodes) expect(code).toMatch(/^LONGSHORE_[A-Z]+(_[A-Z]+)*$/);
  });

  it("recognise a terminal error of another copy of the package", () => {
    const foreign = Object.assign(new Error("from elsewhere"), { [Symbol.for("longshore.terminal")]: true });
    expect([new TerminalError("never"), foreign].map(isTerminal)).toEqual([true, true]);
    expect([new Error("x"), new LongshoreError("LONGSHORE_CLOSED", "x"), null, "text", undefined].some(isTerminal)).toBe(false);
  });

  it("of Node itself are recognised: no server, and a timeout", async () => {
    const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
    const fetchFailed = new TypeError("fetch failed", { cause: refused });
    expect(codeOf(new Error("the bank is away", { cause: fetchFailed }))).toBe("LONGSHORE_UNREACHABLE");
    expect(codeOf(new DOMException("The operation timed out.", "TimeoutError"))).toBe("LONGSHORE_DEADLINE");
    expect(codeOf(new TypeError("x is undefined"))).toBeUndefined();
    expect(codeOf(new LongshoreError("LONGSHORE_NOT_FOUND", "gone", { cause: refused }))).toBe("LONGSHORE_NOT_FOUND");
    expect(codeOf(new TerminalError("never", { cause: refused }))).toBe("LONGSHORE_TERMINAL");
    expect(codeOf(new TerminalError("never", { cause: new LongshoreError("LONGSHORE_BAD_INPUT", "n") }))).toBe("LONGSHORE_BAD_INPUT");
  });

  it("are at most one of these: transient, refused, caused by the end of a process", () => {
    const codesFor = (test: (error: unknown) => boolean) => errorCodes.filter((code) => test(new LongshoreError(code, "x")));
    expect(codesFor(isTransient)).toEqual(["LONGSHORE_STORE_UNAVAILABLE", "LONGSHORE_UNREACHABLE"]);
    expect(codesFor(isRefused)).toEqual(["LONGSHORE_BAD_INPUT", "LONGSHORE_BAD_OUTPUT", "LONGSHORE_LIMIT"]);
    expect(codesFor(isClosing)).toEqual(["LONGSHORE_CLOSED", "LONGSHORE_SHUTDOWN"]);
    expect(isRefused(refusal("LONGSHORE_BAD_INPUT", "x"))).toBe(true);
    for (const thrown of [new Error("x"), "x", undefined]) {
      expect([isTransient(thrown), isRefused(thrown), isClosing(thrown)]).toEqual([false, false, false]);
    }
  });

  it("are made from any thrown value", () => {
    const error = new Error("as it is");
    const circle: { self?: unknown } = {};
    circle.self = circle;
    expect(toError(error)).toBe(error);
    expect(toError("a text").message).toBe("a text");
    expect(toError({ status: 3 }).message).toContain('{"status":3}');
    expect(toError(circle).message).toContain("object");
    expect(toError(undefined)).toBeInstanceOf(Error);
    const foreign: unknown = runInNewContext("new TypeError('of another realm')");
    expect(foreign).not.toBeInstanceOf(Error);
    expect(toError(foreign)).toBe(foreign);
  });
});
