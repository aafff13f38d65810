import { describe, expect, it } from "vitest";
import { TestClock } from "../testing/clock.ts";
import { LongshoreError } from "./errors.ts";
import { type RetryOptions, retry } from "./retry.ts";

const away = new LongshoreError("LONGSHORE_UNREACHABLE", "no server");
const backoff = { kind: "exponential", delayMs: 100, maxMs: 1_000 } as const;

function failingTimes(times: number, error: Error = away): { call: () => Promise<string>; calls: () => number } {
  let calls = 0;
  return {
    call: () => (calls++ < times ? Promise.reject(error) : Promise.resolve("done")),
    calls: () => calls,
  };
}

async function play<Value>(call: () => Promise<Value>, options: Partial<RetryOptions> = {}) {
  const clock = new TestClock();
  const pauses: number[] = [];
  const { signal = new AbortController().signal } = options;
  const result = retry(call, { clock, backoff, random: () => 0, ...options, signal });
  const settled = result.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  await clock.advance(0);
  for (let turns = 0; turns < 50 && clock.nextAtMs !== undefined; turns++) {
    const pauseMs = clock.nextAtMs - clock.now();
    pauses.push(pauseMs);
    await clock.advance(pauseMs);
  }
  return { ...(await settled), pauses };
}

describe("a call with retries", () => {
  it("is repeated after growing pauses until it works", async () => {
    const { call, calls } = failingTimes(3);
    expect(await play(call)).toEqual({ value: "done", pauses: [100, 200, 400] });
    expect(calls()).toBe(4);
  });

  it("is not repeated after a permanent failure", async () => {
    const wrong = new LongshoreError("LONGSHORE_BAD_INPUT", "wrong");
    const { call, calls } = failingTimes(1, wrong);
    expect(await play(call)).toEqual({ error: wrong, pauses: [] });
    expect(calls()).toBe(1);
  });

  it("ends with the last failure when no attempts or no time are left", async () => {
    expect(await play(failingTimes(9).call, { triesMax: 2 })).toEqual({ error: away, pauses: [100] });
    expect(await play(failingTimes(9).call, { patienceMs: 300 })).toEqual({ error: away, pauses: [100, 200] });
  });

  it("ends with its signal's abort reason", async () => {
    const stop = new AbortController();
    const reason = new Error("stopped");
    const call = () => {
      stop.abort(reason);
      return Promise.reject(away);
    };
    expect(await play(call, { signal: stop.signal })).toEqual({ error: reason, pauses: [] });
  });
});
