// What all lanes have in common; protocols/stepflow/server/lane.test.ts tests the rest with Stepflow's components.

import { describe, expect, it, onTestFinished } from "vitest";
import { deferred, until } from "../../../test/support/until.ts";
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
  return { clock, engine, board, lane, ended };
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

  it("treats any other error as permanent, except when the store was unreachable", async () => {
    const { ended } = await setup(({ task }) => {
      if (task.id === "store") throw new LongshoreError("LONGSHORE_STORE_UNAVAILABLE", "disk full");
      throw new TypeError("oops");
    });
    expect(await ended("mistake")).toMatchObject({ error: "oops", fault: "final", failures: 1 });
    expect(await ended("store")).toMatchObject({ error: "disk full", fault: "lost", lost: 2, failures: 0 });
  });

  it("ends a cancelled task with the report that its options give", async () => {
    const { board, ended } = await setup(
      ({ task, signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(new Error("stopped")));
          void board.cancel(task.id);
        }),
    );
    expect(await ended("t")).toMatchObject({ state: "cancelled", error: "the step was cancelled" });
  });

  it("begins a task that is handed out again when its last use is over, and ends it when it is cancelled", async () => {
    const happened: string[] = [];
    const stopped = deferred<void>();
    const begun = [deferred<void>(), deferred<void>()];
    const { board, engine, ended } = await setup(
      ({ task, signal }) =>
        new Promise((_, reject) => {
          happened.push(`begun ${task.grant}`);
          begun.shift()?.resolve();
          signal.addEventListener("abort", () => reject(new Error("stopped")));
        }),
      {
        async abandon({ grant }) {
          happened.push(`stops ${grant}`);
          await stopped.promise;
          happened.push(`stopped ${grant}`);
        },
      },
    );
    const [first, second] = [begun[0]?.promise, begun[1]?.promise];
    const held = new Set<number>();
    engine.listen({ task: ({ state, grant }) => state === "held" && held.add(grant) });
    const end = ended("t");
    await first;
    const { grant } = (await board.task("t")) as TaskRow;
    await board.giveBack({ taskId: "t", grant });
    await until(() => held.has(grant + 2));
    stopped.resolve();
    await second;
    await board.cancel("t");
    expect(await end).toMatchObject({ state: "cancelled" });
    const again = grant + 2;
    expect(happened).toEqual([
      `begun ${grant}`,
      `stops ${grant}`,
      `stopped ${grant}`,
      `begun ${again}`,
      `stops ${again}`,
      `stopped ${again}`,
    ]);
  });

  it("stops what a task has started when the task is cancelled before it is taken again", async () => {
    const begun = deferred<void>();
    const { board, lane, engine, clock, ended } = await setup(({ signal }) => {
      begun.resolve();
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("stopped"))));
    });
    const end = ended("t");
    await begun.promise;
    await lane.close(0);
    expect((await board.task("t"))?.state).toBe("queued");
    const abandoned = deferred<string>();
    const next = new LaneWorker({
      ...{ board, workers: engine.workers, clock, lane: "here", holder: "me", protocol: "test", slots: 2, own: true },
      ...{ perform: async () => null, failed: () => {}, abandon: async ({ id }: TaskRow) => abandoned.resolve(id) },
    });
    engine.listen({ task: (task) => next.changed(task) });
    await board.cancel("t");
    expect(await abandoned.promise).toBe("t");
    expect(await end).toMatchObject({ state: "cancelled" });
  });

  it("lends slots for at most the given number of tasks", async () => {
    const { ended } = await setup(({ lend }) => lend(async () => await lend(async () => 1)), { lentMax: 1 });
    expect((await ended("t")).error).toBe(new NoRoomToWait(1).message);
  });
});
