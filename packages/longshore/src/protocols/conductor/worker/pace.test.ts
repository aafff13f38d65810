// How many requests the worker makes for its work, and that it never waits for a timer while there is work. Time does not move in these
// tests. bench/README.md has the speed on real servers.

import { describe, expect, it } from "vitest";
import { anyPoll, anyUpdate, type ConductorStub, pollOf } from "../../../../test/support/conductor-stub.ts";
import { setup } from "../../../../test/support/conductor-worker.ts";
import { until } from "../../../../test/support/until.ts";
import { task } from "../../../core/task.ts";

const many = 500;

const filled = (stub: ConductorStub) => {
  for (let n = 0; n < many; n++) stub.enqueue("greet");
};

describe("a worker with a full queue", () => {
  it("[C-ARCH-05, C-ARCH-06] by v1 makes no pause between polls, and at most one poll and one update for a task", async () => {
    await using s = await setup({ tasks: [task("greet", () => null)], wire: { concurrency: 10, updateV2: false }, before: filled });
    const startedMs = s.clock.now();
    await until(() => s.stub.results.length === many);
    expect(s.clock.now()).toBe(startedMs);
    expect(s.stub.seen(anyUpdate)).toHaveLength(many);
    // One more poll may find the empty queue while the last result is sent.
    expect(s.stub.seen(anyPoll).length).toBeLessThanOrEqual(many + 1);
  });

  it("[C-ARCH-06] by v2 needs one request for a task: each update brings the next", async () => {
    await using s = await setup({ tasks: [task("greet", () => null)], wire: { concurrency: 10 }, before: filled });
    await until(() => s.stub.results.length === many);
    expect(s.stub.seen(anyUpdate)).toHaveLength(many);
    // The first poll fills ten slots. Each of these may poll once more when its chain of updates has ended.
    expect(s.stub.seen(anyPoll).length).toBeLessThanOrEqual(1 + 10);
  });
});

describe("an idle worker", () => {
  it("[C-ARCH-05] has a poll open before the task is queued, so the task waits for no timer of the worker", async () => {
    const startedAtMs: number[] = [];
    await using s = await setup({
      tasks: [task("greet", () => void startedAtMs.push(s.clock.now())), task("other", () => null)],
      wire: { pollTimeout: undefined as never },
      stub: { longPolls: true },
    });
    await until(() => s.stub.heldPolls === 2);
    const nowMs = s.clock.now();
    const polls = s.stub.seen(pollOf("greet")).length;
    s.stub.enqueue("greet");
    await until(() => startedAtMs.length === 1);
    expect(startedAtMs).toEqual([nowMs]);
    expect(polls).toBe(1);
  });
});
