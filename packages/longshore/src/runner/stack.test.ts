import { describe, expect, it } from "vitest";
import { LongshoreError, TerminalError } from "../core/errors.ts";
import { task } from "../core/task.ts";
import { TestClock } from "../testing/clock.ts";
import { Loopback } from "../testing/loopback.ts";
import { work } from "../work.ts";
import { stackOf } from "./stack.ts";

describe("the stack of an error", () => {
  it("has its name, its message and its frames", () => {
    expect(stackOf(new RangeError("too\nfar"))).toMatch(/^RangeError: too\nfar\n {4}at .*stack\.test\.ts:/);
  });

  it("has the reported message, also when the error was created with another one", () => {
    const error = new Error("the password 1234 is wrong");
    error.message = "the password is wrong";
    expect(stackOf(error)).toMatch(/^Error: the password is wrong\n {4}at .*stack\.test\.ts:/);
    expect(stackOf(error)).not.toContain("1234");
  });

  it("is cut in the middle when it is long", () => {
    const stack = stackOf(new Error("m".repeat(1_000_000)));
    expect(stack).toHaveLength(8_000);
    expect(stack).toContain("stack.test.ts");
  });

  it.each([
    ["a decision of the handler", new TerminalError("no")],
    ["an error of Longshore", new LongshoreError("LONGSHORE_BAD_INPUT", "no")],
    ["a value that is not an error", "no"],
    ["an error without frames", Object.assign(new Error("no"), { stack: "Error: no" })],
  ])("does not exist for %s", (_what, thrown) => {
    expect(stackOf(thrown)).toBeUndefined();
  });
});

describe("the log of a task", () => {
  const total = task("total", async (order: { items: number[] }, { log }) => {
    log("adding up");
    return order.items.reduce((sum, item) => sum + item, 0);
  });
  const never = task("never", () => Promise.reject(new TerminalError("never")));
  const untilAborted = (_input: unknown, { signal }: { signal: AbortSignal }) =>
    new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(new Error("aborted"))));

  it("ends with the stack of an unexpected error, but has no stack of a deliberate failure or a stop", async () => {
    const clock = new TestClock();
    const loop = new Loopback({ capabilities: { stacks: true } });
    const slow = task("slow", untilAborted, { timeout: "1s" });
    const worker = await work({ tasks: [total, never, slow], on: loop, clock, logger: false, signals: false });
    expect(await loop.run("total", {})).toMatchObject({ kind: "failed", retryable: true });
    expect(await loop.run("never")).toMatchObject({ kind: "failed", retryable: false });
    const stopped = loop.run("slow");
    await clock.armed(1_000);
    await clock.advance(1_000);
    expect(await stopped).toMatchObject({ kind: "failed", error: { code: "LONGSHORE_DEADLINE" } });
    await worker.stop();
    expect(loop.logs).toMatchObject([
      { stream: "stdout", text: "adding up\n" },
      { stream: "stderr", text: expect.stringMatching(/^TypeError: .*'reduce'\)\n {4}at .*stack\.test\.ts:/) },
    ]);
  });

  it("has no stack when the transport does not send stacks", async () => {
    const loop = new Loopback();
    const worker = await work({ tasks: [total], on: loop, clock: new TestClock(), logger: false, signals: false });
    await loop.run("total", {});
    await worker.stop();
    expect(loop.logs).toMatchObject([{ text: "adding up\n" }]);
  });
});
