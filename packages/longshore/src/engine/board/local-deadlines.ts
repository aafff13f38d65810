// Deadlines that are only rows, so that a run that sleeps for a month needs no memory. The deadline of a wait or of a run enters the heap
// only when it is due soon. All others share one entry in the heap, at the time of the first of them. When it fires, the next rows are read
// by an index.

import type { Clock } from "../../core/clock.ts";
import type { GroupCommit } from "../commit.ts";
import type { RowStore, Scan, TableRows, TableSpec } from "../rows.ts";
import { numberOf } from "../tables/number-of.ts";

/** The prefix of the deadlines at which the next rows are read. */
export const farDeadlinePrefix = "far:";
/** How far each read looks ahead. */
const aheadMs = 600_000;
/** Rows that are read at once: some milliseconds. When more are due, the next ones are read at the time of the last one. */
const pageRows = 1_000;

/** One kind of deadline. `column` has the time, and is the first column of an index. The other fields select the rows. */
export interface FarSource extends Pick<Scan, "without" | "having" | "greater"> {
  readonly table: string;
  readonly column: string;
  /** The id of the deadline for the id of its row. */
  readonly idOf?: (id: string) => string;
}

interface Due {
  readonly id: string;
  readonly at: number;
}

export interface FarDeadlinesDeps {
  readonly name: string;
  readonly store: RowStore;
  readonly commit: GroupCommit;
  readonly clock: Clock;
  readonly sources: readonly FarSource[];
  /** The time of the next deadline of `id`; null when it has none. */
  deadline(id: string, at: number | null): void;
}

interface Reading {
  readonly source: FarSource;
  readonly rows: TableRows<Due>;
  /** All deadlines up to this place are in the heap. */
  place: readonly [at: number, id: string];
}

export class FarDeadlines {
  readonly #deps: FarDeadlinesDeps;
  readonly #readings: readonly Reading[];
  /** In the heap: at this deadline, or before it, the next rows are read. */
  readonly #next: string;

  constructor(deps: FarDeadlinesDeps) {
    this.#deps = deps;
    this.#readings = deps.sources.map((source) => ({ source, rows: deps.store.table(dueTable(source)), place: [-1, ""] }));
    this.#next = farDeadlinePrefix + deps.name;
  }

  /** Must be called for each row that a commit changed, with its next deadline. One that is far away needs no entry in the heap. */
  changed(id: string, at: number | null): void {
    const { deadline } = this.#deps;
    const isFar = at !== null && this.#readings.every(({ place }) => at > place[0]);
    deadline(id, isFar ? null : at);
    if (isFar) deadline(this.#next, at);
  }

  /** Reads the deadlines that are due soon; must be called once, when everything else has recovered. */
  async recover(): Promise<void> {
    for (const reading of this.#readings) await this.#read(reading);
  }

  /** Called when a deadline that was far away is due. */
  async fire(name: string): Promise<void> {
    if (name === this.#deps.name) await this.recover();
  }

  async #read(reading: Reading): Promise<void> {
    const { commit, clock, deadline } = this.#deps;
    const { source, rows } = reading;
    const { column, without, having, greater, idOf = (id: string) => id } = source;
    const until = clock.now() + aheadMs;
    const scan: Scan = { by: [column, "id"], without, having, greater };
    await commit.read((tx) => {
      // The deadlines and the new place come from one read, because later commits are compared with this place.
      const place = until > reading.place[0] ? reading.place : null;
      const found = place === null ? [] : [...rows.scan(tx, { ...scan, above: [...place], below: [until + 1], limit: pageRows })];
      const last = found.length < pageRows ? undefined : found.at(-1);
      const reached: Reading["place"] = place === null ? reading.place : last === undefined ? [until, ""] : [last.at, last.id];
      const [next] = rows.scan(tx, { ...scan, above: [...reached], limit: 1 });
      for (const { id, at } of found) deadline(idOf(id), at);
      reading.place = reached;
      if (next !== undefined) deadline(this.#next, next.at);
    });
  }
}

function dueTable({ table, column }: FarSource): TableSpec<Due> {
  const columns = ["id", column].map((name) => [name, () => null] as const);
  return { name: table, key: ["id"], columns, of: (row) => ({ id: row.id as string, at: numberOf(row, column) }) };
}

/** Waits of runs: they have no lane. A wait for a time is due later than it was queued; a wait for a signal alone has both times equal. */
const wait = { table: "task" } as const;
export const waitDeadlines: readonly FarSource[] = [
  { ...wait, column: "due_at", without: ["ended_at", "lane"], greater: ["due_at", "queued_at"] },
  { ...wait, column: "claim_by", without: ["ended_at", "lane"], having: "claim_by" },
  { ...wait, column: "total_by", without: ["ended_at", "lane"], having: "total_by" },
];
