// Reads records and attempts of a run for its graph and its timeline, in slices.

import { sortInSlices } from "../../core/slices/sort-slices.ts";
import type { TaskRow } from "../board/task.ts";
import { readAll, type TableRows } from "../rows.ts";
import { allRows, type ReadDeps } from "../sliced-reads.ts";
import { attemptOrder } from "../tables/attempt.ts";
import { attemptTimesTable, recordTimesTable } from "../tables/record-times.ts";
import type { ReadTx } from "../tx.ts";
import type { LocalReaderDeps } from "./local-reader.ts";
import type { AttemptTimes, RecordReader, RecordTimes, TimedRecord } from "./record-times.ts";
import { taskIdOf } from "./run.ts";

/** How many rows are read without a pause: about 2 ms. */
const rowsAtOnce = 250;
/** The weight of such a row in a turn of the event loop: it has a third of the columns of a whole row. */
const rowWeight = 2;

export interface LocalRecordTimesDeps extends ReadDeps {
  readonly tasks: Pick<LocalReaderDeps["tasks"], "newest">;
}

export class LocalRecordTimes implements RecordReader {
  readonly #deps: LocalRecordTimesDeps;
  readonly #records: TableRows<RecordTimes>;
  readonly #attempts: TableRows<AttemptTimes>;

  constructor(deps: LocalRecordTimesDeps) {
    this.#deps = deps;
    this.#records = deps.store.table(recordTimesTable);
    this.#attempts = deps.store.table(attemptTimesTable);
  }

  async records(runId: string): Promise<RecordTimes[]> {
    const all: RecordTimes[] = [];
    for (let behind = `${runId}.`; ; ) {
      const page = await this.#page(runId, behind, rowsAtOnce);
      all.push(...page);
      if (page.length < rowsAtOnce) return sortInSlices(all, (a, b) => a.node - b.node, this.#deps.slices);
      behind = (page.at(-1) as RecordTimes).id;
    }
  }

  async timed(
    runId: string,
    { after, limit }: { readonly after?: number; readonly limit: number },
  ): Promise<{ items: TimedRecord[]; next: number | null }> {
    const items: TimedRecord[] = [];
    let count = 0;
    for (let behind = after === undefined ? `${runId}.` : taskIdOf(runId, after); ; ) {
      const wanted = Math.min(rowsAtOnce, limit - count);
      const page = await this.#page(runId, behind, wanted);
      for (const record of page) {
        const earlier = mayHaveEarlier(record) ? await this.#earlier(record) : [];
        items.push({ record, earlier });
        count += 1 + earlier.length;
        if (count >= limit) return { items, next: record.node };
      }
      if (page.length < wanted) return { items, next: null };
      behind = (page.at(-1) as RecordTimes).id;
    }
  }

  async #page(runId: string, behind: string, limit: number): Promise<RecordTimes[]> {
    const { slices, read } = this.#deps;
    await slices.turn(limit * rowWeight);
    const scan = { by: ["id"], above: [behind], below: [`${runId}/`], limit };
    return read((tx) => readAll([...this.#records.scan(tx, scan)], (record) => this.#newest(tx, record)));
  }

  /** A hold, or the end of the record with its run, may be in memory only. Whatever is in memory has all fields that are read here. */
  #newest(tx: ReadTx, stored: RecordTimes): RecordTimes {
    return this.#deps.tasks.newest(tx, stored.id, stored as TaskRow) ?? stored;
  }

  async #earlier({ id }: RecordTimes): Promise<AttemptTimes[]> {
    const { slices } = this.#deps;
    const found: AttemptTimes[] = [];
    for (let above: readonly [number, number] | undefined; ; ) {
      await slices.turn(rowWeight);
      const scan = { by: attemptOrder, equal: [id], limit: rowsAtOnce, ...(above === undefined ? {} : { above }) };
      const page = await allRows(this.#deps, this.#attempts, scan);
      found.push(...page);
      if (page.length < rowsAtOnce) return found;
      await slices.turn(page.length * rowWeight);
      const { grant, attempt } = page.at(-1) as AttemptTimes;
      above = [grant, attempt];
    }
  }
}

function mayHaveEarlier({ attempt, deferrals, state }: RecordTimes): boolean {
  return attempt > 0 || deferrals > 0 || state === "forgotten";
}
