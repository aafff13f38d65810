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
 * Corrects a lost update of the real server, which is seen now and then. The server checks a JOIN in the background. A check that began
 * before the run failed overwrites `CANCELED` with `IN_PROGRESS`. Never applied to our responses.
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
