import { describe, expect, it } from "vitest";
import { deferred } from "../../test/support/until.ts";
import type { LongshoreError } from "../core/errors.ts";
import { TestClock } from "../testing/clock.ts";
import { Hold } from "./heartbeat.ts";
import type { Assignment, BeatAnswer, HoldTerms } from "./transport.ts";

function setup(beat: () => Promise<BeatAnswer>, terms: HoldTerms = { termMs: 30_000, everyMs: 10_000 }, random = () => 0.5) {
  const clock = new TestClock();
  const reasons: LongshoreError[] = [];
  const beats: number[] = [];
  const startMs = clock.now();
  const assignment = {
    beat: () => {
      beats.push(clock.now() - startMs);
      return beat();
    },
  } as unknown as Assignment;
  const stop = (reason: LongshoreError) => void reasons.push(reason);
  const over = () => new AbortController().signal;
  const hold = new Hold(assignment, terms, { clock, random, stop, failing: () => {}, working: () => {}, over });
  return { clock, reasons, beats, hold, startMs };
}

describe("a hold", () => {
  it("is renewed at its interval as long as it is kept", async () => {
    const s = setup(async () => ({ verdict: "ok" }));
    await s.clock.advance(60_000);
    expect(s.beats).toEqual([10_000, 20_000, 30_000, 40_000, 50_000, 60_000]);
    expect(s.hold.untilMs - s.startMs).toBe(90_000);
    s.hold.end();
    expect(s.clock.pending).toBe(0);
  });

  it("varies each pause by its jitter, longer and shorter", async () => {
    const drawn = [0, 0.5, 0.999];
    let at = 0;
    const random = () => drawn[at++ % drawn.length] as number;
    const s = setup(async () => ({ verdict: "ok" }), { termMs: 30_000, everyMs: 10_000, jitter: 0.2 }, random);
    await s.clock.advance(48_000);
    expect(s.beats).toEqual([8_000, 18_000, 29_996, 37_996, 47_996]);
  });

  it.each(["stale", "gone", "busy"] as const)("[G52] is lost in the same tick in which the answer %s is read", async (verdict) => {
    const answer = deferred<BeatAnswer>();
    const s = setup(() => answer.promise);
    await s.clock.advance(10_000);
    const order: string[] = [];
    setImmediate(() => order.push("next turn"));
    answer.resolve({ verdict });
    await answer.promise;
    await Promise.resolve();
    order.push(`${s.reasons[0]?.code}`);
    await new Promise((resolve) => setImmediate(resolve));
    expect(order).toEqual(["LONGSHORE_LEASE_LOST", "next turn"]);
    expect(s.clock.pending).toBe(0);
  });

  it("is lost when it has ended by this machine's clock, also while a heartbeat hangs", async () => {
    const s = setup(() => new Promise(() => {}));
    await s.clock.advance(29_999);
    expect(s.beats).toEqual([10_000]);
    expect(s.reasons).toEqual([]);
    await s.clock.advance(1);
    expect(s.reasons.map((reason) => reason.code)).toEqual(["LONGSHORE_LEASE_LOST"]);
  });

  it("is renewed soon after a heartbeat failed", async () => {
    let failures = 2;
    const s = setup(async () => {
      if (failures-- > 0) throw new Error("connection refused");
      return { verdict: "ok" };
    });
    await s.clock.advance(22_000);
    expect(s.beats).toEqual([10_000, 11_000, 12_000, 22_000]);
    expect(s.reasons).toEqual([]);
  });

  it("counts the renewed term from the time when the heartbeat was sent, and reads the term from the answer", async () => {
    const answer = deferred<BeatAnswer>();
    const s = setup(() => answer.promise);
    await s.clock.advance(15_000);
    answer.resolve({ verdict: "ok", termMs: 60_000 });
    await s.clock.advance(0);
    expect(s.hold.untilMs - s.startMs).toBe(70_000);
  });

  it("is still renewed after a cancel, until the report is settled", async () => {
    const s = setup(async () => ({ verdict: "cancel" }));
    await s.clock.advance(20_000);
    expect(s.reasons[0]?.code).toBe("LONGSHORE_CANCELLED");
    expect(s.beats).toEqual([10_000, 20_000]);
    expect(s.hold.ended).toBe(false);
  });

  it("joins an open heartbeat instead of sending a second one", async () => {
    const answer = deferred<BeatAnswer>();
    const s = setup(() => answer.promise);
    const both = Promise.all([s.hold.beat(), s.hold.beat()]);
    answer.resolve({ verdict: "ok" });
    await both;
    expect(s.beats).toEqual([0]);
  });
});
