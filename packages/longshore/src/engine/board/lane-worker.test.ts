// What any lane has in common; protocols/stepflow/server/lane.test.ts holds the rest of its behaviour against Stepflow's components.

import { describe, expect, it, onTestFinished } from "vitest";
import { LongshoreError } from "../../core/errors.ts";
import type { Json } from "../../core/json/json.ts";
import { openEngine } from "../../server/engine.ts";
import { TestClock } from "../../testing/clock.ts";
import { LaneFailure, type LaneOptions, LaneWorker, NoRoomToWait } from "./lane-worker.ts";
import type { TaskRow } from "./task.ts";

async function setup(perform: LaneOptions["perform"], options: Partial<LaneOptions> = {}) {
  const clock = new TestClock();
  const engine = await openEngine({ directory: null, clock });
  const { board, workers } = engine;
  const lane = new LaneWorker({
    ...{ board, workers, clock, lane: "here", holder: "me", protocol: "test", slots: 2 },
    ...{ perform, failed: () => {}, own: true },
    ...options,
  });
  engine.listen({ task: (task) => lane.changed(task) });
  onTestFinished(async () => {
    await lane.close(0);
    await engine.close();
  });
  lane.resume();
  const ended = async (id: string, input: Json = null): Promise<TaskRow> => {
    const policy = JSON.stringify({ failures: 1, lost: 1, backoff: { kind: "fixed", delayMs: 0 } });
    await board.post([{ id, step: id, lanes: [{ name: "here", labels: [] }], input: JSON.stringify(input), policy }]);
    return (await board.result(id)) as TaskRow;
  };
  return { board, lane, ended };
}

describe("a worker of a lane", () => {
  it("gives the task to the function, and its result to the board", async () => {
    const { ended } = await setup(async ({ task }) => ({ got: JSON.parse(task.input) as Json }));
    expect(await ended("t", 7)).toMatchObject({ state: "done", output: '{"got":7}', holder: "me" });
  });

  it("reports a failure as the LaneFailure describes it", async () => {
    let tries = 0;
    const { ended } = await setup(() => {
      tries++;
      throw new LaneFailure({ error: "not now", retryable: true, output: '{"code":1}' });
    });
    expect(await ended("t")).toMatchObject({ state: "failed", error: "not now", output: '{"code":1}', failures: 2 });
    expect(tries).toBe(2);
  });

  it("takes what else is thrown for a mistake that another try would repeat, unless the store was out of reach", async () => {
    const { ended } = await setup(({ task }) => {
      if (task.id === "store") throw new LongshoreError("LONGSHORE_STORE_UNAVAILABLE", "disk full");
      throw new TypeError("oops");
    });
    expect(await ended("mistake")).toMatchObject({ error: "oops", fault: "final", failures: 1 });
    expect(await ended("store")).toMatchObject({ error: "disk full", fault: "lost", lost: 2, failures: 0 });
  });

  it("ends what is cancelled, with what is to be reported of it", async () => {
    const { board, ended } = await setup(
      ({ task, signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(new Error("stopped")));
          void board.cancel(task.id);
        }),
    );
    expect(await ended("t")).toMatchObject({ state: "cancelled", error: "the step was cancelled" });
  });

  it("lends a slot to no more than so many", async () => {
    const { ended } = await setup(({ lend }) => lend(async () => await lend(async () => 1)), { lentMax: 1 });
    expect((await ended("t")).error).toBe(new NoRoomToWait(1).message);
  });
});
