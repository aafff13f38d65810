import type { Http2Session } from "node:http2";
import { describe, expect, it } from "vitest";
import { TestClock } from "../../testing/clock.ts";
import { KeepAlive } from "./keep-alive.ts";

/** A session whose peer answers pings when the test allows it. */
function setup(tick?: () => boolean) {
  const clock = new TestClock();
  const pings: ((error: Error | null) => void)[] = [];
  const session = {
    destroyed: false,
    sendsPings: true,
    ping(answered: (error: Error | null) => void) {
      if (this.sendsPings) pings.push(answered);
      return this.sendsPings;
    },
  };
  let lost = 0;
  const keepAlive = new KeepAlive(session as unknown as Http2Session, {
    clock,
    pingMs: 1_000,
    pingTimeoutMs: 500,
    tick,
    lost: () => lost++,
  });
  return { clock, pings, session, keepAlive, lost: () => lost };
}

describe("a connection that is kept alive", () => {
  it("is pinged again and again while it answers", async () => {
    const { clock, pings, lost } = setup();
    for (let round = 1; round <= 3; round++) {
      await clock.advance(1_000);
      expect(pings.length).toBe(round);
      await clock.advance(100);
      pings.at(-1)?.(null);
    }
    await clock.advance(999);
    expect([pings.length, lost()]).toEqual([3, 0]);
  });

  it("is reported as lost, once, when there is no answer", async () => {
    const { clock, pings, lost } = setup();
    await clock.advance(1_499);
    expect(lost()).toBe(0);
    await clock.advance(1);
    expect(lost()).toBe(1);
    await clock.advance(60_000);
    expect([pings.length, lost(), clock.pending]).toEqual([1, 1, 0]);
  });

  it("is kept while anything else arrives, because then it is only slow", async () => {
    const { clock, pings, keepAlive, lost } = setup();
    await clock.advance(1_200);
    keepAlive.heard();
    await clock.advance(300);
    expect(lost()).toBe(0);
    await clock.advance(1_500);
    expect([pings.length, lost()]).toEqual([2, 1]);
  });

  it("is not pinged while no call needs it", async () => {
    let needed = false;
    const { clock, pings } = setup(() => needed);
    await clock.advance(5_000);
    expect(pings.length).toBe(0);
    needed = true;
    await clock.advance(1_000);
    expect(pings.length).toBe(1);
  });

  it("gets no more pings when it is closing, stopped or closed", async () => {
    const closing = setup();
    closing.session.sendsPings = false;
    await closing.clock.advance(5_000);
    expect(closing.lost()).toBe(0);
    const failing = setup();
    await failing.clock.advance(1_000);
    failing.pings[0]?.(new Error("the session was destroyed"));
    failing.keepAlive.stop();
    await failing.clock.advance(5_000);
    expect([failing.lost(), failing.clock.pending]).toEqual([0, 0]);
    const gone = setup();
    gone.session.destroyed = true;
    await gone.clock.advance(5_000);
    expect([gone.pings.length, gone.clock.pending]).toEqual([0, 0]);
  });
});
