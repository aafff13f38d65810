import { describe, expect, it } from "vitest";
import { TestClock } from "../testing/clock.ts";
import { keepReceiving, type Receiving } from "./receive.ts";
import type { TransportHost } from "./transport.ts";

const backoff = { kind: "exponential", delayMs: 100, maxMs: 1_000 } as const;

function setup() {
  const clock = new TestClock();
  const drain = new AbortController();
  const reports: string[] = [];
  const host = {
    clock,
    draining: drain.signal,
    failing: (what: string, error: unknown) => reports.push(`${what} fails: ${(error as Error).message}`),
    working: (what: string) => reports.push(`${what} works`),
  } as unknown as TransportHost;
  return {
    clock,
    drain,
    reports,
    keep: (options: Omit<Receiving, "what" | "backoff">) => keepReceiving(host, { what: "pull", backoff, ...options }),
  };
}

describe("a receive loop", () => {
  it("opens again after growing pauses, which are short again after a success", async () => {
    const { clock, drain, reports, keep } = setup();
    const opens = ["fails", "fails", "works", "fails"];
    const atMs: number[] = [];
    const startedMs = clock.now();
    const kept = keep({
      receive: async (opened) => {
        atMs.push(clock.now() - startedMs);
        if (opens[atMs.length - 1] === "works") return opened();
        if (opens.length === atMs.length) drain.abort();
        throw new Error(`no ${atMs.length}`);
      },
    });
    for (const ms of [0, 100, 200, 100]) await clock.advance(ms);
    await kept;
    expect(atMs).toEqual([0, 100, 300, 400]);
    expect(reports).toEqual(["pull fails: no 1", "pull fails: no 2", "pull works"]);
  });

  it("ends its pause when the worker drains", async () => {
    const { clock, drain, keep } = setup();
    const kept = keep({ receive: () => Promise.reject(new Error("away")) });
    await clock.advance(0);
    drain.abort();
    await kept;
    expect(clock.nextAtMs).toBeUndefined();
  });

  it("ends without a pause when it is over", async () => {
    const { reports, keep } = setup();
    let over = false;
    await keep({
      over: () => over,
      receive: () => {
        over = true;
        return Promise.reject(new Error("closed"));
      },
    });
    expect(reports).toEqual(["pull fails: closed"]);
  });
});
