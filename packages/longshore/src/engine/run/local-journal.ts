// The journal of a durable function, as a worker reads it to replay the function: its commands in their order, each with its result.

import type { TaskRow } from "../board/task.ts";
import { readAll } from "../rows.ts";
import { taskChars } from "../tables/task.ts";
import type { ReadRows, ReadTx } from "../tx.ts";
import { beginningText, commandOf, resultText } from "./driven-state.ts";
import type { JournalReader } from "./journal.ts";
import { type Run, taskIdOf } from "./run.ts";

/** Commands per page: reading them takes a few milliseconds. */
const pageCommands = 200;
/** Characters of results on one page; the page ends behind the first result that exceeds them. */
const pageCharsMax = 2_000_000;

export interface LocalJournalDeps {
  readonly read: ReadRows;
  readonly runs: { get(tx: ReadTx, id: string): Run | null };
  readonly tasks: { get(tx: ReadTx, id: string): TaskRow | null };
}

export class LocalJournal implements JournalReader {
  readonly #deps: LocalJournalDeps;

  constructor(deps: LocalJournalDeps) {
    this.#deps = deps;
  }

  page(runId: string, after: number): Promise<string | undefined> {
    return this.#deps.read((tx) => {
      const run = this.#deps.runs.get(tx, runId);
      return run === null ? undefined : this.#page(tx, run, after);
    });
  }

  #page(tx: ReadTx, run: Run, after: number): string {
    const last = Math.min(run.recorded, after + pageCommands);
    const nodes = Array.from({ length: Math.max(0, last - after) }, (_, at) => after + 1 + at);
    const tasks = readAll(nodes, (node) => this.#deps.tasks.get(tx, taskIdOf(run.id, node)));
    const entries: string[] = [];
    let chars = 0;
    let next = last;
    for (const [at, task] of tasks.entries()) {
      if (task === null || task.state === "forgotten") continue;
      entries.push(entryText(task));
      chars += taskChars(task);
      if (chars <= pageCharsMax) continue;
      next = nodes[at] as number;
      break;
    }
    const head = after === 0 ? `"runId":${JSON.stringify(run.id)},${beginningText(run)},` : "";
    return `{${head}"entries":[${entries.join(",")}]${next < run.recorded ? `,"next":${next}` : ""}}`;
  }
}

/** JSON text of a `JournalEntry`. */
function entryText(task: TaskRow): string {
  const head = `{"node":${task.node},"command":${JSON.stringify(commandOf(task) ?? "")}`;
  return task.ordinal === 0 ? `${head}}` : `${head},"result":${resultText(task, task.ordinal, task.endedAt ?? 0)}}`;
}
