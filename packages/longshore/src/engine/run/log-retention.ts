// Pruning of logs alone: those of runs and tasks that have ended are removed before their owners when the policy requires it. Endings are
// walked once, oldest first; what has been passed is not looked at again until the next start.

import type { TaskRow } from "../board/task.ts";
import { Additions, type Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import { type RowStore, readAll, type TableRows } from "../rows.ts";
import type { Room, StoredBytes } from "../stored-bytes.ts";
import { type Ended, type EndedKind, endedRuns, endedTasks } from "../tables/endings.ts";
import { type LogHead, logHeadTable } from "../tables/log.ts";
import type { ReadTx, Tx } from "../tx.ts";
import type { Counts } from "./counts.ts";
import { type Keep, lingerMs } from "./retention.ts";
import type { Run } from "./run.ts";

export interface LogRetentionDeps {
  store: RowStore;
  commit: GroupCommit;
  runs: Rows<Run>;
  tasks: Rows<TaskRow>;
  counts: Counts;
  stored: StoredBytes;
}

/** Endings looked at without a pause. */
const sliceEndings = 100;
/** Rows that one transaction removes: each is a batch of up to many pages; and their bytes, besides those of the first. */
const rowsMax = 20;
const bytesMax = 4 * 1_048_576;

/** Runs or tasks, whose logs are looked at. */
interface Owners {
  readonly kind: EndedKind;
  readonly rows: TableRows<Ended>;
  /** The column of logs that has their id. */
  readonly key: "run_id" | "task_id";
  isEnded(tx: ReadTx, id: string): boolean;
  count(): number;
  /** Up to which end they have been looked at. */
  passed: readonly [endedAt: number, id: string];
}

export class LogRetention {
  readonly #commit: GroupCommit;
  readonly #room: Room;
  readonly #logs: TableRows<LogHead>;
  readonly #removals: Additions<number>;
  readonly #owners: readonly Owners[];

  constructor({ store, commit, runs, tasks, counts, stored }: LogRetentionDeps) {
    this.#commit = commit;
    this.#room = stored.of("logs");
    this.#logs = store.table(logHeadTable);
    this.#removals = new Additions(commit, (id) => this.#logs.remove([id]));
    const start = [-1, ""] as const;
    this.#owners = [
      {
        ...{ kind: endedRuns, rows: store.table(endedRuns.table), key: "run_id", passed: start },
        isEnded: (tx, id) => runs.get(tx, id)?.endedAt != null,
        count: () => counts.endedRuns,
      },
      {
        ...{ kind: endedTasks, rows: store.table(endedTasks.table), key: "task_id", passed: start },
        isEnded: (tx, id) => tasks.get(tx, id)?.endedAt != null,
        count: () => counts.endedTasks,
      },
    ];
  }

  /** Returns of how many runs and tasks the logs were removed. `keep.count` is how many of each keep theirs. */
  async prune(keep: Keep, now: number, signal?: AbortSignal): Promise<number> {
    let pruned = 0;
    for (const owners of this.#owners) {
      // As with runs, what has just ended is not pruned by count.
      const endedBy = Math.max(now - keep.ageMs, Math.min(await this.#endedAtRank(owners, keep.count), now - lingerMs));
      for (let ended = await this.#next(owners, endedBy); ended.length > 0; ended = await this.#next(owners, endedBy)) {
        if (signal?.aborted) return pruned;
        pruned += await this.#remove(owners, ended, signal);
        if (signal?.aborted) return pruned;
        const last = ended.at(-1) as Ended;
        owners.passed = [last.endedAt, last.id];
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    return pruned;
  }

  /** The next ended ones behind what has been passed, that ended at `endedBy` or before. */
  #next({ kind, rows, passed }: Owners, endedBy: number): Promise<Ended[]> {
    const behind = { above: passed, below: [Math.max(0, endedBy + 1)], limit: sliceEndings };
    return this.#commit.read((tx) => [...rows.scan(tx, { ...kind.scan, ...behind })]);
  }

  /** When the newest ended that is not among the `count` newest; before all time when there are no more than those. */
  async #endedAtRank({ kind, rows, count: countOf }: Owners, count: number): Promise<number> {
    // The index is read only when there are more: it would be walked as a whole to find out.
    if (countOf() <= count) return Number.NEGATIVE_INFINITY;
    const [ranked] = await this.#commit.read((tx) => [...rows.scan(tx, { ...kind.scan, backwards: true, offset: count, limit: 1 })]);
    return ranked?.endedAt ?? Number.NEGATIVE_INFINITY;
  }

  async #remove(owners: Owners, ended: readonly Ended[], signal: AbortSignal | undefined): Promise<number> {
    const ids = ended.map(({ id }) => id);
    const withLogs = (some: readonly string[]) => this.#commit.read((tx) => this.#withLogs(tx, owners, some));
    const found = await withLogs(ids);
    for (let left = found; left.length > 0 && !signal?.aborted; left = await withLogs(left))
      await this.#commit.run((tx) => this.#removeSlice(tx, owners, left));
    return found.length - (await this.#commit.read((tx) => this.#havingLogs(tx, owners, found))).length;
  }

  #withLogs(tx: ReadTx, owners: Owners, ids: readonly string[]): string[] {
    const having = this.#havingLogs(tx, owners, ids);
    const isEnded = readAll(having, (id) => owners.isEnded(tx, id));
    return having.filter((_id, at) => isEnded[at]);
  }

  #havingLogs(tx: ReadTx, { key }: Owners, ids: readonly string[]): string[] {
    const found = readAll(ids, (id) => [...this.#logs.scan(tx, { by: [key], equal: [id], limit: 1 })].length > 0);
    return ids.filter((_id, at) => found[at]);
  }

  #removeSlice(tx: Tx, owners: Owners, ids: readonly string[]): void {
    let rows = 0;
    let bytes = 0;
    for (const id of ids) {
      // A retry in the same batch may have opened it again.
      if (rows >= rowsMax || !owners.isEnded(tx, id)) continue;
      for (const log of this.#logs.scan(tx, { by: [owners.key], equal: [id], limit: rowsMax - rows })) {
        if (rows > 0 && bytes + log.bytes > bytesMax) return this.#room.add(tx, -bytes);
        this.#removals.add(tx, log.id);
        rows++;
        bytes += log.bytes;
      }
    }
    this.#room.add(tx, -bytes);
  }
}
