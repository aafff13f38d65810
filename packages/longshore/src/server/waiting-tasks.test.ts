import { expect, it, onTestFinished } from "vitest";
import { TestClock } from "../testing/clock.ts";
import { openEngine } from "./engine.ts";
import { type WaitingNews, watchWaiting } from "./waiting-tasks.ts";

const builder = { names: ["build"], labels: ["gpu"] };

async function setup() {
  const clock = new TestClock();
  const engine = await openEngine({ directory: null, clock });
  onTestFinished(() => engine.close());
  const timersBefore = clock.pending;
  const news: WaitingNews[] = [];
  const stop = watchWaiting(engine, (item) => news.push(item));
  onTestFinished(stop);
  return {
    clock,
    engine,
    stop,
    timersBefore,
    post: (id: string, labels: string[] = [], delayMs = 0) =>
      engine.board.post([{ id, step: id, lanes: [{ name: "build", labels }], input: "null", policy: null, delayMs }]),
    /** A worker claims a task and holds it. */
    async claim(holder: string) {
      engine.workers.seen(holder, { reach: builder });
      return (await engine.board.claim({ reach: builder, holder, termMs: 60_000 }))[0];
    },
    told: () => news.map(({ kind, reason, step, tasks }) => `${kind} ${reason} ${step} ${tasks}`),
    news,
  };
}

it("reports at once that no worker can take a task, once for each cause, and also reports the end", async () => {
  const { clock, post, told, claim, news } = await setup();
  await post("a", ["gpu"]);
  await post("b", ["gpu"]);
  await post("c");
  await clock.advance(300);
  expect(told()).toEqual(["waiting no-worker a 2", "waiting no-worker c 1"]);
  expect(news[0]).toMatchObject({ text: "no worker is connected", lane: "build", labels: ["gpu"], runId: null });
  await clock.advance(20_000);
  expect(told()).toHaveLength(2);
  for (const _ of [1, 2, 3]) await claim("w");
  await clock.advance(300);
  expect(told().slice(2).sort()).toEqual(["over no-worker a 2", "over no-worker c 1"]);
});

it("does not report the end of the wait when the task was cancelled", async () => {
  const { clock, engine, post, told } = await setup();
  await post("a", ["gpu"]);
  await clock.advance(300);
  await engine.board.cancel("a");
  await clock.advance(300);
  expect(told()).toEqual(["waiting no-worker a 1", "ended no-worker a 1"]);
});

it("reports busy workers and delays only when they last", async () => {
  const { clock, post, told, claim } = await setup();
  await post("first");
  await claim("w");
  await post("second");
  await post("later", [], 60_000);
  await clock.advance(2_000);
  expect(told()).toEqual([]);
  await clock.advance(5_000);
  expect(told().sort()).toEqual(["waiting busy second 1", "waiting not-due later 1"]);
});

it("reports a cause that returns as a new one", async () => {
  const { clock, post, told, claim } = await setup();
  await post("a", ["gpu"]);
  await clock.advance(300);
  await claim("w");
  await clock.advance(300);
  // The worker stays silent: its hold ends, and there is no other worker.
  await clock.advance(120_000);
  expect(told()).toEqual(["waiting no-worker a 1", "over no-worker a 1", "waiting no-worker a 1"]);
});

it("does no work on an idle server, and ends on request", async () => {
  const { clock, post, told, stop, timersBefore } = await setup();
  await clock.advance(1_000);
  expect(clock.pending).toBe(timersBefore);
  stop();
  stop();
  await post("a");
  await clock.advance(10_000);
  expect(told()).toEqual([]);
});
