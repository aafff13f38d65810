// Followers are tested on a real store. So replayed chunks come from rows, and live chunks pass through commits.

import { describe, expect, it, onTestFinished, vi } from "vitest";
import { openParts, places } from "../../../test/support/parts.ts";
import { until } from "../../../test/support/until.ts";
import { LocalLogs } from "./local-logs.ts";
import { type FollowOptions, type LogEvent, Logs } from "./log.ts";
import type { LogSource } from "./store.ts";

const task: LogSource = { taskId: "R1.0" };

describe.each(places)("following logs in %s", (place) => {
  async function setup() {
    const parts = await openParts(place);
    const logs = new Logs(new LocalLogs(parts));
    let sequence = 0;
    const push = (count = 1, taskId = "R1.0") => {
      const chunks = Array.from({ length: count }, () => ({ stream: "stdout" as const, sequence, data: `${sequence++}\n`, at: 0 }));
      return logs.append({ taskId, runId: taskId.split(".")[0] ?? null, attempt: 0, grant: 1, chunks });
    };
    return { parts, logs, push };
  }

  /** Collects what a follower is given, in the background. */
  function collect(logs: Logs, source: LogSource, options: FollowOptions = {}) {
    const abort = new AbortController();
    const events: LogEvent[] = [];
    const done = (async () => {
      for await (const event of logs.follow(source, { signal: abort.signal, ...options })) events.push(event);
    })();
    const chunks = () => events.flatMap((event) => (event.kind === "chunk" ? [event.chunk] : []));
    const sequences = () => chunks().map((chunk) => chunk.sequence);
    return { abort, events, chunks, sequences, done };
  }

  const upTo = (count: number) => Array.from({ length: count }, (_, n) => n);

  it("[G50] replay passes into live without gap or repetition while lines pour in", async () => {
    const { logs, push } = await setup();
    await push(500);
    const follower = collect(logs, task);
    const pushes = [];
    for (let n = 0; n < 100; n++) {
      pushes.push(push(7));
      if (n % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all(pushes);
    await until(() => follower.chunks().length >= 1_200);
    follower.abort.abort();
    await follower.done;
    expect(follower.sequences()).toEqual(upTo(1_200));
  });

  it("[G50] a follower resumes after the last position it was given", async () => {
    const { logs, push } = await setup();
    await push(300);
    const first = collect(logs, task);
    await until(() => first.chunks().length >= 300);
    first.abort.abort();
    await first.done;
    await push(10);
    const second = collect(logs, task, { after: first.chunks()[249]!.position });
    await until(() => second.chunks().length >= 60);
    second.abort.abort();
    await second.done;
    expect(second.sequences()).toEqual(upTo(310).slice(250));
  });

  it("[G50] following ends when the source has ended and everything was sent", async () => {
    const { logs, push } = await setup();
    let ended = false;
    await push(3);
    const follower = collect(logs, task, { ended: () => ended });
    await until(() => follower.chunks().length === 3);
    await push(2);
    ended = true;
    logs.wake(task);
    await follower.done;
    expect(follower.sequences()).toEqual(upTo(5));
    expect(logs.following).toBe(0);
  });

  it("a source that had ended before gives all it has, over several pages", async () => {
    const { logs, push } = await setup();
    await push(1_000);
    const follower = collect(logs, task, { ended: () => true });
    await follower.done;
    expect(follower.sequences()).toEqual(upTo(1_000));
  });

  it("[G50] a slow reader is notified that it lags, and still gets every line", async () => {
    const { logs, push } = await setup();
    await push(1);
    const abort = new AbortController();
    const events: LogEvent[] = [];
    const follower = logs.follow(task, { signal: abort.signal });
    events.push((await follower.next()).value as LogEvent);
    // Nothing is read while five thousand lines arrive.
    for (let n = 0; n < 5; n++) await push(1_000);
    while (events.length < 5_002) events.push((await follower.next()).value as LogEvent);
    abort.abort();
    expect((await follower.next()).done).toBe(true);
    const marks = events.filter((event) => event.kind === "lagged");
    // At least so many: the line that was being given when they arrived is not counted twice.
    expect(marks).toEqual([{ kind: "lagged", behind: 4_999 }]);
    expect(events.indexOf(marks[0]!)).toBe(1);
    expect(events.flatMap((event) => (event.kind === "chunk" ? [event.chunk.sequence] : []))).toEqual(upTo(5_001));
  });

  it("while a reader is full nothing is held for it: what it has not taken is read again", async () => {
    const { logs, push } = await setup();
    await push(10);
    const read = vi.spyOn(LocalLogs.prototype, "since");
    onTestFinished(() => read.mockRestore());
    let resume = () => {};
    const reader = {
      full: false,
      drained: () =>
        new Promise<void>((resolve) => {
          resume = resolve;
        }),
    };
    const follower = collect(logs, task, { reader });
    const { events } = follower;
    const add = events.push.bind(events);
    events.push = (event) => {
      reader.full = events.length === 2;
      return add(event);
    };
    await until(() => follower.chunks().length === 3);
    await push(1);
    expect(read).toHaveBeenCalledTimes(1);
    reader.full = false;
    resume();
    await until(() => follower.chunks().length === 11);
    expect(read.mock.calls[1]).toEqual([task, follower.chunks()[2]?.position, expect.anything()]);
    expect(follower.sequences()).toEqual(upTo(11));
    follower.abort.abort();
    await follower.done;
  });

  it("the log of a run is followed over all its tasks, and of no other run", async () => {
    const { logs, push } = await setup();
    const follower = collect(logs, { runId: "R1" });
    await push(1, "R1.0");
    await push(1, "R2.0");
    await push(1, "R1.7");
    await until(() => follower.chunks().length === 2);
    follower.abort.abort();
    await follower.done;
    expect(follower.chunks().map((chunk) => chunk.taskId)).toEqual(["R1.0", "R1.7"]);
  });

  it("an abort ends a follower that waits, and nothing of it remains", async () => {
    const { logs } = await setup();
    const follower = collect(logs, task);
    await until(() => logs.following === 1);
    follower.abort.abort();
    await follower.done;
    expect(logs.following).toBe(0);
  });

  it("a repeated push is not delivered again", async () => {
    const { parts, logs } = await setup();
    const batch = {
      taskId: "R1.0",
      runId: "R1",
      attempt: 0,
      grant: 1,
      chunks: [{ stream: "stdout" as const, sequence: 0, data: "a\n", at: 0 }],
    };
    const follower = collect(logs, task);
    await logs.append(batch);
    await logs.append(batch);
    await parts.commit.run(() => {});
    await until(() => follower.chunks().length === 1);
    follower.abort.abort();
    await follower.done;
    expect(follower.sequences()).toEqual([0]);
  });
});
