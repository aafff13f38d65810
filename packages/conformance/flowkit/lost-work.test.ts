// No work may be lost with Python workers that write as the reference does. MongoDB refuses their partial artifacts, so our coordinator
// writes these a moment later. But the worker reports its node as complete at once.
import { setTimeout as pause } from "node:timers/promises";
import { beforeAll, describe, expect, it } from "vitest";
import { openFileStage, openStage, type Stage } from "../src/stage.ts";
import { items, makes, PULL, skusOf, streams } from "./graphs.ts";
import { type Operator, startCoordinator } from "./operator.ts";
import { openPlaces, type Place } from "./place.ts";
import { type Habit, type PythonWorker, startPythonWorker, workedOn } from "./python.ts";
import { startOurWorker } from "./workers.ts";

const stage = openFileStage();
let place: () => Place;
beforeAll(async () => {
  place = await openPlaces(stage);
});

/** Enough graphs to show a loss of one item in ten, which an earlier version had. */
const GRAPHS = 20;
const BATCHES = 20;
const SIZE = 2;

type Start = (stage: Stage, at: Place, role: string, habit: Habit) => Promise<unknown>;
const asReference = (stage: Stage, at: Place, role: string, habit: Habit): Promise<PythonWorker> =>
  startPythonWorker(stage, at, { roles: { [role]: habit }, overlapping_upsert: true });
const ours: Start = (stage, at, role, habit) => startOurWorker(stage, at, { workerId: `w-${role}`, roles: { [role]: habit } });

/** How many graphs have finished, and how many different items they produced. */
async function counted(operator: Operator, ids: readonly string[]): Promise<{ finished: number; items: number }> {
  const sum = { finished: 0, items: 0 };
  for (const id of ids) {
    if ((await operator.ended(id)).status === "finished") sum.finished++;
    sum.items += new Set(await skusOf(operator, id, "d")).size;
  }
  return sum;
}

describe.concurrent("work for Python workers", () => {
  it.for([
    ["a worker in Python, fast source", asReference, 5],
    ["a worker in Python, slow source", asReference, 30],
    ["ours", ours, 5],
  ] as const)("whose partial artifacts come late is read to its last item by %s", async ([, reader, ms], context) => {
    const stage = openStage(context);
    const at = place();
    const [src, sink] = [at.role("src"), at.role("sink")];
    const operator = await startCoordinator(stage, at, [src, sink]);
    await Promise.all([asReference(stage, at, src, "produce"), reader(stage, at, sink, "consume")]);
    const graph = [makes("u", src, { batches: BATCHES, size: SIZE, ms }), streams("d", sink, "u", PULL)];
    const ids = await Promise.all(Array.from({ length: GRAPHS }, () => operator.submit(graph)));
    expect(await counted(operator, ids)).toEqual({ finished: GRAPHS, items: GRAPHS * BATCHES * SIZE });
  });

  it.for([[5], [15]] as const)(
    "that is ready before any worker runs is done once, by the worker that starts %i s later",
    async ([s], context) => {
      const stage = openStage(context);
      const at = place();
      const [src, sink] = [at.role("src"), at.role("sink")];
      const operator = await startCoordinator(stage, at, [src, sink]);
      const graph = (batches: number) => [makes("u", src, { batches, size: 1 }), streams("d", sink, "u", PULL)];
      const [idle] = await Promise.all([asReference(stage, at, sink, "consume"), asReference(stage, at, src, "produce")]);
      // The worker has worked before, so its group already has an offset in the topic.
      await operator.ended(await operator.submit(graph(2)));
      idle.child.signal("SIGKILL");
      await idle.child.ended;
      const id = await operator.submit(graph(30));
      // All are longer than an offer. Some are shorter and some longer than the time after which the broker notices that the first worker is
      // gone.
      await pause(s * 1_000);
      const next = await asReference(stage, at, sink, "consume");
      expect((await operator.ended(id)).status).toBe("finished");
      expect((await skusOf(operator, id, "d")).sort()).toEqual(items(30).sort());
      expect(workedOn(next)).toBe(30);
    },
  );
});
