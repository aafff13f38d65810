// The journal of a durable function, as a worker reads it to replay the function: its commands in their order, each with its result.

import type { Slices } from "../../core/slices/slices.ts";
import type { TaskRow } from "../board/task.ts";
import { type RowStore, readAll, type TableRows } from "../rows.ts";
import { taskChars, taskSizeTable } from "../tables/task.ts";
import type { ReadRows, ReadTx } from "../tx.ts";
import { beginningText, commandOf, resultText } from "./driven-state.ts";
import type { JournalReader } from "./journal.ts";
import { type Run, taskIdOf } from "./run.ts";
import { type Sized, type SizedSlice, slicesOf } from "./sized-slices.ts";

/** Commands per page: reading them takes a few milliseconds. */
const pageCommands = 200;
/** Characters of inputs and results on one page; the page ends after the first command that exceeds them. */
const pageCharsMax = 2_000_000;
/** Bytes of inputs and results that are read at once; a larger row is read alone. */
const bytesAtOnce = 262_144;
/** Commands whose sizes are read at once. */
const sizesAtOnce = 4;

export interface LocalJournalDeps {
  readonly store: RowStore;
  readonly read: ReadRows;
  readonly runs: { get(tx: ReadTx, id: string): Run | null };
  readonly tasks: { get(tx: ReadTx, id: string): TaskRow | null };
  readonly slices: Slices;
}

export class LocalJournal implements JournalReader {
  readonly #deps: LocalJournalDeps;
  readonly #sizes: TableRows<Sized>;

  constructor(deps: LocalJournalDeps) {
    this.#deps = deps;
    this.#sizes = deps.store.table(taskSizeTable);
  }

  /**
   * The pages that a worker reads during its turn fit together. The journal grows meanwhile, but only by the worker's own reports and by
   * results for later turns.
   */
  async page(runId: string, after: number): Promise<string | undefined> {
    const { read, runs, tasks, slices } = this.#deps;
    const run = await read((tx) => runs.get(tx, runId));
    if (run === null) return undefined;
    const entries: string[] = [];
    let chars = 0;
    const last = Math.min(run.recorded, after + pageCommands);
    for await (const { ids, cost } of this.#slicesOf(run, after + 1, last)) {
      await slices.turn(cost);
      const some = await read((tx) => readAll(ids, (id) => tasks.get(tx, id)));
      for (const task of some) {
        if (task === null || task.state === "forgotten") continue;
        entries.push(entryText(task));
        chars += taskChars(task);
        if (chars > pageCharsMax) return pageText(run, after, entries, task.node);
      }
    }
    return pageText(run, after, entries, last);
  }

  /**
   * Reads few sizes at a time. With some drivers, reading the length of a text takes as long as reading the text, and a page of large
   * results has few rows.
   */
  async *#slicesOf(run: Run, first: number, last: number): AsyncGenerator<SizedSlice, void, void> {
    const { read, slices } = this.#deps;
    for (let from = first; from <= last; from += sizesAtOnce) {
      const count = Math.min(sizesAtOnce, last - from + 1);
      const ids = Array.from({ length: count }, (_, at) => taskIdOf(run.id, from + at));
      await slices.turn(ids.length);
      const found = await read((tx) => readAll(ids, (id) => this.#sizes.get(tx, id)));
      const sizes = found.filter((row) => row !== null);
      yield* slicesOf(sizes, { rowsMax: sizesAtOnce, bytesMax: bytesAtOnce });
    }
  }
}

/** JSON text of a `JournalPage`. */
function pageText(run: Run, after: number, entries: readonly string[], next: number): string {
  const head = after === 0 ? `"runId":${JSON.stringify(run.id)},${beginningText(run)},` : "";
  return `{${head}"entries":[${entries.join(",")}]${next < run.recorded ? `,"next":${next}` : ""}}`;
}

/** JSON text of a `JournalEntry`. */
function entryText(task: TaskRow): string {
  const head = `{"node":${task.node},"command":${JSON.stringify(commandOf(task) ?? "")}`;
  return task.ordinal === 0 ? `${head}}` : `${head},"result":${resultText(task, task.ordinal, task.endedAt ?? 0)}}`;
}
