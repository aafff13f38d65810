// The recordings of the real server: one file for each chapter, which the protocol's own tests read.
import { fileURLToPath } from "node:url";
import { isObject, type Plain, type Recorded } from "../../src/differential/compare.ts";
import type { Played } from "../../src/differential/script.ts";
import { createRecorder } from "./mask.ts";

export const PEER = "conductor-server 3.32.3, SQLite";

export function fixtureFile(chapter: string): string {
  return fileURLToPath(new URL(`../../../longshore/test/fixtures/conductor/${chapter}.json`, import.meta.url));
}

export function recorded(played: readonly Played[]): Recorded[] {
  const note = createRecorder();
  return played.map(({ step, request, answer }) => note(step.name, request, answer));
}

/**
 * What the real server meant to say. It looks at a JOIN by itself, and a look that began before the run failed writes `IN_PROGRESS` over the
 * `CANCELED` that was noted meanwhile: a lost update of its own, seen now and then. Never applied to our answers.
 */
export function withoutLostUpdates(exchanges: readonly Recorded[]): Recorded[] {
  return exchanges.map((exchange) => {
    const run = exchange.answer.body;
    if (!isObject(run) || !ENDED_BADLY.has(run.status) || !Array.isArray(run.tasks)) return exchange;
    const tasks = run.tasks.map((task) =>
      isObject(task) && task.taskType === "JOIN" && task.status === "IN_PROGRESS"
        ? { ...task, status: "CANCELED", endTime: task.startTime ?? 0 }
        : task,
    );
    return { ...exchange, answer: { ...exchange.answer, body: { ...run, tasks } } };
  });
}

const ENDED_BADLY = new Set<Plain | undefined>(["FAILED", "TERMINATED", "TIMED_OUT"]);
