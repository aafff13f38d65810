import { expect, it } from "vitest";
import { TestClock } from "../testing/clock.ts";
import { deliver } from "./report.ts";
import type { Assignment, Outcome } from "./transport.ts";

const done: Outcome = { kind: "done", output: 1 };

it("a report is repeated with growing pauses as long as the transport's schedule allows, for any hold", async () => {
  const clock = new TestClock();
  const startMs = clock.now();
  const triedMs: number[] = [];
  const report = async () => {
    triedMs.push(clock.now() - startMs);
    throw new Error("away");
  };
  const hold = { untilMs: Number.POSITIVE_INFINITY, ended: false };
  const delivering = deliver({ report } as unknown as Assignment, done, {
    clock,
    startedMs: clock.now(),
    random: () => 0.5,
    hold: hold as never,
    tries: { patienceMs: 10_000 },
    wantNext: () => false,
    giveUp: new AbortController().signal,
    failing: () => {},
    working: () => {},
    tryFailed: () => {},
  });
  await clock.advance(60_000);
  expect(await delivering).toMatchObject({ kind: "undelivered", outcome: done, error: { message: "away" } });
  expect(triedMs).toEqual([0, 200, 600, 1_400, 3_000, 6_200, 10_000]);
});

it("a report without a reply is sent once more when the peer reports that the lease has ended", async () => {
  const clock = new TestClock();
  const hold = { untilMs: clock.now() + 30_000, ended: false, isRefused: false };
  const replies = ["lost", "again"];
  const report = async () => {
    const verdict = replies.shift();
    if (verdict !== "lost") return { verdict };
    // The peer has accepted the result and its reply is lost. Its answer to a heartbeat arrives first.
    Object.assign(hold, { ended: true, isRefused: true });
    throw new Error("the connection broke");
  };
  const delivering = deliver({ report } as unknown as Assignment, done, {
    clock,
    startedMs: clock.now(),
    random: () => 0.5,
    hold: hold as never,
    tries: undefined,
    wantNext: () => false,
    giveUp: new AbortController().signal,
    failing: () => {},
    working: () => {},
    tryFailed: () => {},
  });
  expect(await delivering).toEqual({ kind: "answered", answer: { verdict: "again" } });
});
