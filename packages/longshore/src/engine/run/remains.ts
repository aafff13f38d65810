// Rows that belong to removed runs and tasks. They are removed in slices, so that a run of ten thousand steps delays nothing. A slice is
// limited in rows and in bytes: a store visits all pages that it frees, and a single row may have thousands.

import { Additions } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import { Postponed } from "../commit-errors.ts";
import type { Owners, RowStore, TableRows, Value } from "../rows.ts";
import { type Room, rowBytes, type StoredBytes } from "../stored-bytes.ts";
import { prunedTable } from "../tables/endings.ts";
import type { Tx } from "../tx.ts";

/** Rows that one transaction removes: about 2 ms. */
const rowsMax = 200;
/** Maximum bytes of their texts together; a larger row is removed alone. */
const bytesMax = 4 * 1_048_576;

/** Recorded ids that one transaction removes in addition. */
const notesMax = 100;

/** What is left of the budget of a slice. */
interface Budget {
  rows: number;
  bytes: number;
}

interface Remnant {
  readonly key: readonly Value[];
  /** Bytes of the texts. */
  readonly bytes: number;
}

interface RemnantTable {
  readonly name: string;
  readonly key: readonly string[];
  readonly column: string;
  /** Whether its rows belong to the removed run or task itself, to the tasks of a removed run, or to both. */
  readonly of: "itself" | "tasks" | "both";
  /** Columns with texts; or, in `counted`, a column with their bytes. */
  readonly texts?: readonly string[];
  readonly counted?: string;
  /** The quota that counts its rows. */
  readonly room?: Room;
}

export class Remains {
  readonly #commit: GroupCommit;
  readonly #ids: TableRows<{ readonly id: string }>;
  readonly #noted: Additions<string>;
  readonly #crossedOff: Additions<string>;
  readonly #steps: ((tx: Tx, budget: Budget) => boolean)[];
  /** Called with removed ids when no row of them is left. */
  readonly onRemoved = new Set<(ids: readonly string[]) => void>();
  /** One slice at a time: two in one transaction would count the same rows twice. */
  #removing: Promise<unknown> = Promise.resolve();
  /** False when no id is recorded. */
  #anyRecorded = true;
  /** The number of ids recorded since the start of the server. */
  #recorded = 0;

  constructor({ store, commit, stored }: { store: RowStore; commit: GroupCommit; stored: StoredBytes }) {
    this.#commit = commit;
    this.#ids = store.table(prunedTable);
    this.#noted = new Additions(commit, (id) => this.#ids.write({ id }));
    this.#crossedOff = new Additions(commit, (id) => this.#ids.remove([id]));
    this.#steps = tablesOf(stored).flatMap((table) => stepsOf(store, commit, table));
  }

  /** Must be called at start: ids may be left from before. When none are, the beginning of a run or task reads no row for them. */
  async recover(): Promise<void> {
    this.#anyRecorded = (await this.#first()).length > 0;
  }

  /** Records that the run or task is removed in this operation: later operations remove its other rows, also after a restart. */
  note(tx: Tx, id: string): void {
    this.#noted.add(tx, id);
    tx.after(() => {
      this.#recorded++;
      this.#anyRecorded = true;
    });
  }

  /** Must be called before a run or task with this id begins. Postpones the operation until no row of an earlier one with the same id is left. */
  refuse(tx: Tx, id: string): void {
    const isLeft = this.#noted.pending(tx).includes(id) || (this.#anyRecorded && this.#ids.get(tx, id) !== null);
    if (isLeft) throw new Postponed(this.remove(undefined));
  }

  /** Removes the other rows of all recorded ids, until `signal` aborts. */
  async remove(signal: AbortSignal | undefined): Promise<void> {
    while (signal?.aborted !== true) {
      const removing = this.#removing.then(() => this.#removeSome());
      this.#removing = removing.catch(() => {});
      if (!(await removing)) return;
    }
  }

  /** Returns false when no id is recorded. */
  async #removeSome(): Promise<boolean> {
    const recorded = this.#recorded;
    const noted = await this.#first();
    if (noted.length > 0) await this.#commit.run((tx) => this.#removeSlice(tx));
    else if (recorded === this.#recorded) this.#anyRecorded = false;
    return noted.length > 0;
  }

  #first(): Promise<readonly unknown[]> {
    return this.#commit.read((tx) => [...this.#ids.scan(tx, { by: ["id"], limit: 1 })]);
  }

  #removeSlice(tx: Tx): void {
    const budget: Budget = { rows: rowsMax, bytes: bytesMax };
    for (const removed of this.#steps) if (!removed(tx, budget)) return;
    // No table has any more rows of these ids.
    const ids = [...this.#ids.scan(tx, { by: ["id"], limit: notesMax })].map(({ id }) => id);
    for (const id of ids) this.#crossedOff.add(tx, id);
    tx.after(() => {
      for (const listener of this.onRemoved) listener(ids);
    });
  }
}

function tablesOf(stored: StoredBytes): RemnantTable[] {
  return [
    { name: "log", key: ["id"], column: "task_id", of: "itself", counted: "bytes", room: stored.of("logs") },
    { name: "log", key: ["id"], column: "run_id", of: "itself", counted: "bytes", room: stored.of("logs") },
    {
      ...{ name: "part", key: ["task_id", "life", "sequence"], column: "task_id", of: "both" },
      ...{ texts: ["uid", "value"], room: stored.of("parts") },
    },
    { name: "part_uid", key: ["task_id", "life", "first"], column: "task_id", of: "both" },
    { name: "part_read", key: ["reader", "reader_life", "source", "source_life", "first"], column: "reader", of: "both" },
    { name: "node_join", key: ["run_id", "node"], column: "run_id", of: "itself" },
    { name: "signal", key: ["run_id", "number"], column: "run_id", of: "itself", texts: ["value"] },
    {
      ...{ name: "attempt", key: ["task_id", "grant_count", "attempt"], column: "task_id", of: "both" },
      ...{ texts: ["input", "output", "error"], room: stored.of("attempts") },
    },
    { name: "task", key: ["id"], column: "id", of: "tasks", texts: ["input", "output"] },
    // Definitions that have grown in the run: their ids begin with the id of the run, as those of tasks do (grown-ids.ts).
    { name: "definition", key: ["id"], column: "id", of: "tasks", texts: ["source"] },
  ];
}

/** Each function removes rows of one table, and returns false when the budget is used up before all rows are removed. */
function stepsOf(store: RowStore, commit: GroupCommit, table: RemnantTable): ((tx: Tx, budget: Budget) => boolean)[] {
  const { name, key, column, texts, counted, room } = table;
  const bytes = counted === undefined ? rowBytes : 0;
  const rows = store.table<Remnant>({
    ...{ name, key },
    columns: [...key, ...(counted === undefined ? [] : [counted])].map((each) => [each, () => null] as const),
    sizes: texts === undefined ? [] : [["texts", texts]],
    of: (row) => ({ key: key.map((each) => row[each] as Value), bytes: bytes + Number(row[counted ?? "texts"] ?? 0) }),
  });
  const removals = new Additions<Remnant>(commit, (remnant) => rows.remove(remnant.key));
  const step = (ownedBy: Owners) => (tx: Tx, budget: Budget) => {
    // At least one row, so that even a row above the budget is removed. One by one, so that the bytes can end the slice.
    const limit = Math.max(1, budget.rows);
    let found = 0;
    let removed = 0;
    let freed = 0;
    for (const remnant of rows.scan(tx, { by: [column], ownedBy, limit })) {
      found++;
      if ((budget.rows < rowsMax || removed > 0) && freed + remnant.bytes > budget.bytes) break;
      removals.add(tx, remnant);
      removed++;
      freed += remnant.bytes;
    }
    budget.rows -= removed;
    budget.bytes -= freed;
    room?.add(tx, -freed);
    return removed === found && removed < limit;
  };
  const removed = { table: prunedTable.name };
  return [...(table.of === "tasks" ? [] : [step(removed)]), ...(table.of === "itself" ? [] : [step({ ...removed, within: true })])];
}
