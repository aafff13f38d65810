import { describe, expect, it } from "vitest";
import { callOf } from "../../../../../test/support/stepflow-call.ts";
import { TestClock } from "../../../../testing/clock.ts";
import { createMessages, noop, sleep } from "./basic.ts";

const invalid = (message: string | RegExp) =>
  expect.objectContaining({ error: expect.objectContaining({ code: "INVALID_INPUT" }), message: expect.stringMatching(message) });

describe("noop", () => {
  it("answers what it is given", () => {
    for (const input of [null, 42, "x", [1, { a: null }]]) expect(noop.perform(callOf("/noop", input))).toEqual(input);
  });
});

describe("create_messages", () => {
  it("puts the instructions before the prompt, and skips absent ones", () => {
    const messages = (input: { [key: string]: string | null }) => createMessages.perform(callOf("/create_messages", input));
    expect(messages({ user_prompt: "Hello" })).toEqual({ messages: [{ role: "user", content: "Hello" }] });
    expect(messages({ system_instructions: null, user_prompt: "Hello" })).toEqual({ messages: [{ role: "user", content: "Hello" }] });
    expect(messages({ system_instructions: "Be brief.", user_prompt: "Hello" })).toEqual({
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hello" },
      ],
    });
  });

  it("reports which field is wrong", () => {
    const perform = (input: Parameters<typeof callOf>[1]) => () => createMessages.perform(callOf("/create_messages", input));
    expect(perform({})).toThrow(invalid("user_prompt is missing, expected a text"));
    expect(perform({ user_prompt: 3 })).toThrow(invalid("user_prompt is a number"));
    expect(perform("Hello")).toThrow(invalid("the input is a string, expected an object"));
  });
});

describe("sleep", () => {
  it("waits for its time without keeping its place, and passes something through", async () => {
    const clock = new TestClock();
    const call = callOf("/sleep", { duration_ms: 50, passthrough: { a: 1 } }, { startedAt: clock.now() });
    const slept = sleep(clock).perform(call);
    expect(call.lent).toBe(1);
    await clock.advance(50);
    expect(await slept).toEqual({ duration_ms: 50, passthrough: { a: 1 } });
  });

  it("counts what had passed before a restart", async () => {
    const clock = new TestClock();
    const startedAt = clock.now();
    await clock.advance(40);
    const slept = sleep(clock).perform(callOf("/sleep", { duration_ms: 50 }, { startedAt }));
    await clock.advance(10);
    expect(await slept).toEqual({ duration_ms: 50 });
  });

  it("wakes when it is cancelled", async () => {
    const stop = new AbortController();
    const slept = sleep(new TestClock()).perform(callOf("/sleep", { duration_ms: 1_000_000 }, { signal: stop.signal }));
    stop.abort();
    await slept;
  });

  it("refuses what is not a duration", async () => {
    const perform = async (input: Parameters<typeof callOf>[1]) => sleep(new TestClock()).perform(callOf("/sleep", input));
    for (const duration_ms of [-1, 1.5, "1", 1e12, [1]]) await expect(perform({ duration_ms })).rejects.toThrow(invalid("duration_ms"));
    await expect(perform({})).rejects.toThrow(invalid("duration_ms is missing"));
  });
});
