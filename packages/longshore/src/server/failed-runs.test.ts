import { expect, it, onTestFinished } from "vitest";
import { holdOf, turns } from "../../test/contract/world.ts";
import { functionLane, type TurnReport } from "../core/turn.ts";
import { TestClock } from "../testing/clock.ts";
import { openEngine } from "./engine.ts";
import { type FailureNews, watchFailures } from "./failed-runs.ts";

async function setup() {
  const clock = new TestClock();
  const engine = await openEngine({ directory: null, clock });
  onTestFinished(() => engine.close());
  await engine.runs.define({ name: "f", dialect: "function", source: JSON.stringify({ name: "f", function: true }) });
  const news: FailureNews[] = [];
  const stop = watchFailures(engine, (item) => news.push(item));
  onTestFinished(stop);
  let number = 0;
  return {
    clock,
    engine,
    stop,
    news,
    start: async () => (await engine.runs.start({ workflow: "f", input: "null" })).run.id,
    /** A worker claims the next turn and reports it. */
    async turn(parts: Partial<TurnReport>) {
      await turns();
      const reach = { names: [functionLane("f")], labels: [] };
      const [task] = await engine.board.claim({ reach, holder: "w", termMs: 60_000 });
      const report = { by: `w-${++number}`, commands: [], ...parts };
      expect(await engine.board.complete(holdOf(task), JSON.stringify(report))).toBe("ok");
    },
  };
}

const fails = { end: { kind: "failed", error: "no ink" } } as const;
const blocks = { end: { kind: "blocked", error: "the code does not match" } } as const;

it("reports a run that fails and a run that is blocked, and no other run", async () => {
  const { news, start, turn, engine } = await setup();
  const failed = await start();
  await turn(fails);
  const stuck = await start();
  await turn(blocks);
  await start();
  await turn({ end: { kind: "done", output: null } });
  await engine.runs.cancel(await start());
  expect(news).toEqual([
    { runId: failed, workflow: "f", state: "failed", error: "no ink", more: 0 },
    { runId: stuck, workflow: "f", state: "blocked", error: "the code does not match", more: 0 },
  ]);
});

it("reports a blocked run again when it is blocked again after a retry, and not when one of its steps ends", async () => {
  const { news, start, turn, engine } = await setup();
  const id = await start();
  await turn({ commands: [{ node: 1, kind: "step", name: "s", after: 0 }], ...blocks });
  const [step] = await engine.board.claim({ reach: { names: ["s"], labels: [] }, holder: "w", termMs: 60_000 });
  await engine.board.complete(holdOf(step), "1");
  expect(news).toHaveLength(1);
  await engine.runs.retry(id);
  await turn(blocks);
  expect(news.map(({ runId }) => runId)).toEqual([id, id]);
});

it("counts runs beyond the first five of a second, and stops with its timer", async () => {
  const { clock, news, start, turn, stop } = await setup();
  for (let n = 0; n < 8; n++) {
    await start();
    await turn(fails);
  }
  expect(news.map(({ more }) => more)).toEqual([0, 0, 0, 0, 0]);
  await clock.advance(1_000);
  expect(news.map(({ more }) => more)).toEqual([0, 0, 0, 0, 0, 2]);
  const timers = clock.pending;
  stop();
  expect(clock.pending).toBe(timers - 1);
  await start();
  await turn(fails);
  expect(news).toHaveLength(6);
});
