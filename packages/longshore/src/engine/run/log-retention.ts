// Pruning of logs alone: logs of ended runs and tasks are removed before their owners when the policy requires it. Ended runs and tasks are
// visited once, oldest first; visited ones are not visited again until the next start.

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

/** Ended runs or tasks that are visited without a pause. */
const sliceEndings = 100;
/** Maximum number of rows that one transaction removes, and of their bytes; a larger row is removed alone. Each row may have many pages. */
const rowsMax = 20;
const bytesMax = 4 * 1_048_576;

/** The runs, or the tasks, whose logs are pruned. */
interface Owners {
  readonly kind: EndedKind;
  readonly rows: TableRows<Ended>;
  /** The column of the log table with their id. */
  readonly key: "run_id" | "task_id";
  isEnded(tx: ReadTx, id: string): boolean;
  count(): number;
  /** The end time and id up to which they have been visited. */
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

  /** Returns the number of runs and tasks whose logs were removed. `keep.count` is how many of each keep their logs. */
  async prune(keep: Keep, now: number, signal?: AbortSignal): Promise<number> {
    let pruned = 0;
    for (const owners of this.#owners) {
      // As with runs, recently ended ones are not pruned by count.
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

  /** The next ones that ended at `endedBy` or before and have not been visited. */
  #next({ kind, rows, passed }: Owners, endedBy: number): Promise<Ended[]> {
    const behind = { above: passed, below: [Math.max(0, endedBy + 1)], limit: sliceEndings };
    return this.#commit.read((tx) => [...rows.scan(tx, { ...kind.scan, ...behind })]);
  }

  /** The newest end time outside the `count` newest; -Infinity when there are at most `count`. */
  async #endedAtRank({ kind, rows, count: countOf }: Owners, count: number): Promise<number> {
    // The index is read only when there are more than `count`: otherwise all of it would be scanned.
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
      // A retry in the same batch may have reopened it.
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
