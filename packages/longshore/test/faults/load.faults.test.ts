// Load without faults, counted exactly: every job is handed out once, completed once and recorded.
import { expect, it } from "vitest";
import { type Arena, inArena, type Verdict } from "./arena.ts";
import { fanOut, independent } from "./shapes.ts";

const CONNECTIONS = 16;
/** It takes minutes on a slow disk: the test shows that everything ends, not how fast. */
const END_MS_MAX = 240_000;

async function finishAll(arena: Arena, runIds: string[]): Promise<Verdict> {
  const habits = { slots: CONNECTIONS, ttlSecs: 60, waitSecs: 1, workMs: [0, 0] as [number, number], failRate: 0, dozeRate: 0 };
  await arena.addWorker({ ...habits, seed: 1 }).start();
  await arena.client.untilEnded(runIds, END_MS_MAX);
  return arena.judge(runIds);
}

function expectExactly({ final, history }: Verdict, jobs: number): void {
  expect(final.runs.filter((run) => run.state !== "succeeded")).toEqual([]);
  expect(final.tasks.filter((task) => task.completed)).toHaveLength(jobs);
  expect(history.filter((entry) => entry.kind === "claim-got")).toHaveLength(jobs);
  expect(history.filter((entry) => entry.kind === "report-got" && entry.status === 200)).toHaveLength(jobs);
}

it("6,000 independent jobs over 16 connections all finish, each handed out and completed exactly once", async () => {
  await inArena(async (arena) => {
    const workflow = await arena.client.create("independent", independent(6000));
    const runId = await arena.client.start(workflow);
    expectExactly(await finishAll(arena, [runId]), 6000);
  });
});

it("[G38] 20 fan-outs of 300 all finish when their roots complete together", async () => {
  await inArena(async (arena) => {
    const workflow = await arena.client.create("fan-out", fanOut(300));
    const runIds: string[] = [];
    for (let index = 0; index < 20; index++) runIds.push(await arena.client.start(workflow));
    expectExactly(await finishAll(arena, runIds), 20 * 301);
  });
});
