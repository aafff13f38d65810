// A durable function of the sweep, and its worker: it replays the journal after a crash, as any other worker does.

import { writeExact } from "../../src/core/json/json-exact.ts";
import { type JournalPage, journalQuestion, type Turn, type TurnNews } from "../../src/core/turn.ts";
import type { TaskRow } from "../../src/engine/board/task.ts";
import { driverTasks } from "../../src/runner/function/driver.ts";
import { workflow } from "../../src/workflow.ts";
import type { OpenEngine } from "../support/engine.ts";

export const PASSES = [0, 1] as const;
export const NAP_MS = 1_000;

/** Everything that a function can wait for, twice. Then it continues as another. */
export const travel = workflow("travel", async (w, pass: number) => {
  const noted = await w.local("noted", () => `noted ${pass}`);
  await w.call("worked", noted);
  await w.signal(`go-${pass}`);
  await w.sleep(NAP_MS);
  await w.run("inner", null);
  if (pass === 0) w.continueAs(1);
  return noted;
});

export interface FunctionWorker {
  readonly lanes: readonly string[];
  /** Performs a turn, and reports it. */
  perform(task: TaskRow): Promise<void>;
}

export function functionWorker({ board, journal, clock }: OpenEngine): FunctionWorker {
  const tasks = new Map(driverTasks([travel.code], { steady: () => clock.now() }).map((each) => [each.name, each]));
  return {
    lanes: [...tasks.keys()],
    async perform(task) {
      const hold = { taskId: task.id, grant: task.grant };
      const ask = async (question: string, value: unknown) => {
        if (question === journalQuestion) return JSON.parse((await journal.page(task.runId ?? "", Number(value))) ?? "null") as JournalPage;
        const { verdict, news } = await board.command(hold, JSON.stringify(value));
        return news === null ? verdict : (JSON.parse(news) as TurnNews);
      };
      const context = { ids: { runId: task.runId ?? "" }, signal: new AbortController().signal, log: () => {}, ask };
      const handle = tasks.get(task.lane?.name ?? "")?.handle;
      if (handle === undefined) throw new Error(`The worker got ${task.lane?.name}, for which it had not asked.`);
      const report = await handle(JSON.parse(task.input) as Turn as never, context as never);
      await board.complete(hold, writeExact(report as never));
    },
  };
}
