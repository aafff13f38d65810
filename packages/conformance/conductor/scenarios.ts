// The work that each worker must do on each server: the same for our worker and for both SDKs.
import { expect } from "vitest";
import { openMarks } from "../src/marks.ts";
import type { Stage } from "../src/stage.ts";
import type { Operator, RunView } from "./operator.ts";
import type { StartWorker } from "./workers.ts";

/** Longer than the lease. The lease itself is long enough that a heartbeat may be late on a busy machine. */
const LEASE_SECONDS = 10;
const SLOW_SECONDS = 14;

export async function defineScenarios(operator: Operator): Promise<void> {
  await operator.defineAlone("greet");
  await operator.defineAlone("flaky", { retryCount: 5 });
  await operator.defineAlone("failing", { retryCount: 1 });
  await operator.defineAlone("hopeless", { retryCount: 5 });
  await operator.defineAlone("deferred");
  await operator.defineAlone("slow", { responseTimeoutSeconds: LEASE_SECONDS, retryCount: 3 });
  await operator.defineAlone("mark");
  await operator.defineAlone("endless");
}

/** All behaviours at the same time, as in a busy worker. */
export async function everyEnding(operator: Operator): Promise<void> {
  const names = ["greet", "flaky", "failing", "hopeless", "deferred", "slow"] as const;
  const inputs = { name: "Ann", seconds: SLOW_SECONDS };
  const ids = await Promise.all(names.map((name) => operator.start(name, inputs)));
  const runs = await Promise.all(ids.map((id) => operator.ended(id)));
  const [greet, flaky, failing, hopeless, deferred, slow] = runs as [RunView, RunView, RunView, RunView, RunView, RunView];

  expect(greet).toMatchObject({ status: "COMPLETED", output: { text: "Hello, Ann!" } });
  expect(await operator.logs(greet.tasks[0]?.taskId ?? "")).toContain("greeting Ann");
  expect(greet.tasks[0]).toMatchObject({ pollCount: 1, workerId: expect.stringMatching(/./) });

  expect(flaky).toMatchObject({ status: "COMPLETED", output: { attempt: 3 } });
  expect(statuses(flaky)).toEqual(["FAILED", "FAILED", "COMPLETED"]);
  expect(flaky.tasks[0]?.reasonForIncompletion).toContain("not yet, attempt 1");

  expect(failing.status).toBe("FAILED");
  expect(statuses(failing)).toEqual(["FAILED", "FAILED"]);
  expect(failing.reasonForIncompletion).toContain("it went wrong");

  expect(hopeless.status).toBe("FAILED");
  expect(statuses(hopeless)).toEqual(["FAILED_WITH_TERMINAL_ERROR"]);
  expect(hopeless.tasks[0]?.reasonForIncompletion).toContain("this can never work");

  expect(deferred).toMatchObject({ status: "COMPLETED", output: { calls: 2 } });
  expect(deferred.tasks).toHaveLength(1);
  expect(deferred.tasks[0]?.pollCount).toBe(2);

  expect(slow).toMatchObject({ status: "COMPLETED", output: { slept: SLOW_SECONDS } });
  expect(statuses(slow)).toEqual(["COMPLETED"]);
}

/** Starts this many runs, a few at a time so that no server is overloaded. Returns their ids. */
export async function startMany(operator: Operator, total: number, input: Record<string, unknown> = {}): Promise<string[]> {
  const ids: string[] = new Array(total);
  let next = 0;
  const starter = async (): Promise<void> => {
    for (let n = next++; n < total; n = next++) ids[n] = await operator.start("mark", { ...input, n });
  };
  await Promise.all([starter(), starter(), starter(), starter()]);
  return ids;
}

/** Checks one run after the other: each has completed with its own number. */
export async function allCompleted(operator: Operator, ids: readonly string[]): Promise<void> {
  for (const [n, id] of ids.entries()) {
    const { status, output } = await operator.ended(id);
    expect({ n, status, output }).toEqual({ n, status: "COMPLETED", output: { n } });
  }
}

/** A thousand tasks at a time: each is executed once and ends with its own result. */
export async function everyTaskOnce(stage: Stage, operator: Operator, start: StartWorker, total: number): Promise<void> {
  const marks = openMarks(stage);
  await start(stage, operator.url, { marks: marks.file });
  const ids = await startMany(operator, total);
  await allCompleted(operator, ids);
  const counts = marks.counts();
  expect(counts.size).toBe(total);
  expect([...counts].filter(([, times]) => times !== 1)).toEqual([]);
}

function statuses(run: RunView): string[] {
  return run.tasks.map(({ status }) => status);
}
