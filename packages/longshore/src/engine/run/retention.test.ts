import { describe, expect, it } from "vitest";
import { deferred } from "../../../test/support/until.ts";
import { TestClock } from "../../testing/clock.ts";
import type { AgeMark } from "./age.ts";
import { type Pruned, Retention, type RetentionStore, retentionDefault, retentionPolicy } from "./retention.ts";

const nothing: Pruned = { runs: 0, tasks: 0, logs: 0, blobs: 0 };
const minuteMs = 60_000;

describe("the retention loop", () => {
  function setup(prune: RetentionStore["prune"]) {
    const clock = new TestClock();
    const calls: number[] = [];
    const pruned: Pruned[] = [];
    const failures: unknown[] = [];
    const marks: AgeMark[] = [];
    const retention = new Retention({
      clock,
      age: null,
      store: {
        notePolicy: () => Promise.resolve(),
        foresee: () => Promise.resolve({ runs: 0, of: 0 }),
        removeRun: () => Promise.resolve(false),
        age: () => Promise.resolve(null),
        keepAge(mark) {
          marks.push(mark);
          return Promise.resolve();
        },
        prune(policy, now, signal) {
          calls.push(now);
          return prune(policy, now, signal);
        },
      },
      pruned: (what) => pruned.push(what),
      failed: (error) => failures.push(error),
    });
    return { clock, calls, pruned, failures, marks, retention };
  }

  it("prunes each minute by the policy, and reports only when something was removed", async () => {
    const answers = [nothing, { ...nothing, runs: 2, blobs: 1 }, nothing, { ...nothing, logs: 1 }];
    const { clock, calls, pruned, retention } = setup((policy) => {
      expect(policy).toBe(retentionDefault);
      return Promise.resolve(answers.shift() ?? nothing);
    });
    const start = clock.now();
    await clock.advance(4 * minuteMs);
    expect(calls).toEqual([1, 2, 3, 4].map((minutes) => start + minutes * minuteMs));
    expect(pruned).toEqual([
      { runs: 2, tasks: 0, logs: 0, blobs: 1 },
      { runs: 0, tasks: 0, logs: 1, blobs: 0 },
    ]);
    await retention.stop();
  });

  it("stores the age mark with the first pruning and each hour after it", async () => {
    const { clock, marks, retention } = setup(() => Promise.resolve(nothing));
    const start = clock.now();
    await clock.advance(130 * minuteMs);
    expect(marks).toEqual([1, 61, 121].map((minutes) => ({ seenAt: start + minutes * minuteMs, lagMs: 0 })));
    await retention.stop();
  });

  it("a failure is reported and tried again a minute later", async () => {
    const { clock, calls, failures, retention } = setup(() => Promise.reject(new Error("disk full")));
    await clock.advance(2 * minuteMs);
    expect(calls).toHaveLength(2);
    expect(failures.map(String)).toEqual(["Error: disk full", "Error: disk full"]);
    await retention.stop();
  });

  it("never prunes twice at once: the next minute counts from the end of the last", async () => {
    const first = deferred<Pruned>();
    const { clock, calls, retention } = setup(() => first.promise);
    await clock.advance(5 * minuteMs);
    expect(calls).toHaveLength(1);
    first.resolve(nothing);
    await clock.advance(minuteMs);
    expect(calls).toHaveLength(2);
    await retention.stop();
  });

  it("stop aborts the current pruning, waits for it, and leaves no timer", async () => {
    const ended = deferred<Pruned>();
    let aborted = false;
    const { clock, retention } = setup((_policy, _now, signal) => {
      signal?.addEventListener("abort", () => {
        aborted = true;
      });
      return ended.promise;
    });
    await clock.advance(minuteMs);
    let stopped = false;
    const stopping = retention.stop().then(() => {
      stopped = true;
    });
    await clock.advance(0);
    expect([aborted, stopped]).toEqual([true, false]);
    ended.resolve(nothing);
    await stopping;
    await retention.stop();
    expect(clock.pending).toBe(0);
  });
});

it("a setting that is absent has its default", () => {
  expect(retentionPolicy()).toEqual(retentionDefault);
  expect(retentionPolicy({ runs: { count: 5 }, blobs: { ageMs: undefined } })).toEqual({
    ...retentionDefault,
    runs: { ageMs: retentionDefault.runs.ageMs, count: 5 },
  });
});
