// Pruning of logs alone: those of runs and tasks that have ended are removed before their owners when the policy requires it. Endings are
// walked once, oldest first; what has been passed is not looked at again until the next start.

import type { Task } from "../board/task.ts";
import { Additions, type Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import { type Keep, lingerMs } from "./retention.ts";
import type { Run } from "./run.ts";
import type { Room, StoredBytes } from "../stored-bytes.ts";
import { committed, type ReadTx, type Tx } from "../tx.ts";
import type { Counts } from "./counts.ts";
import type { Database } from "../../store/sqlite/driver.ts";

export interface LogRetentionDeps {
  db: Database;
  commit: GroupCommit;
  runs: Rows<Run>;
  tasks: Rows<Task>;
  counts: Counts;
  stored: StoredBytes;
}

/** Endings looked at without a pause. */
const sliceEndings = 100;
/** Rows that one transaction removes: each is a batch of up to many pages; and their bytes, besides those of the first. */
const rowsMax = 20;
const bytesMax = 4 * 1_048_576;

export class LogRetention {
  readonly #commit: GroupCommit;
  readonly #room: Room;
  /** Deletions that an operation has decided on; they are carried out inside its transaction. */
  readonly #deletions: Additions<(tx: Tx) => void>;
  readonly #owners: Owners[];

  constructor({ db, commit, runs, tasks, counts, stored }: LogRetentionDeps) {
    this.#commit = commit;
    this.#room = stored.of("logs");
    this.#deletions = new Additions(commit, (remove, tx) => remove(tx));
    this.#owners = [
      ownersOf(db, {
        table: "run",
        key: "run_id",
        where: "",
        isEnded: (tx, id) => runs.get(tx, id)?.endedAt != null,
        count: () => counts.endedRuns,
      }),
      ownersOf(db, {
        table: "task",
        key: "task_id",
        where: " AND run_id IS NULL",
        isEnded: (tx, id) => tasks.get(tx, id)?.endedAt != null,
        count: () => counts.endedTasks,
      }),
    ];
  }

  /** Returns how many runs and tasks lost their logs. `keep.count` is how many of each keep theirs. */
  async prune(keep: Keep, now: number, signal?: AbortSignal): Promise<number> {
    let pruned = 0;
    for (const owners of this.#owners) {
      // As with runs, what has just ended is not pruned by count.
      const endedBy = Math.max(now - keep.ageMs, Math.min(owners.endedAtRank(keep.count), now - lingerMs));
      for (let ids = owners.next(endedBy); ids !== null && !signal?.aborted; ids = owners.next(endedBy)) {
        pruned += await this.#remove(owners, ids, signal);
        if (signal?.aborted) return pruned;
        owners.pass();
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    return pruned;
  }

  async #remove(owners: Owners, ids: readonly string[], signal: AbortSignal | undefined): Promise<number> {
    const withLogs = () => ids.filter((id) => owners.hasLogs(id) && owners.isEnded(committed, id));
    const found = withLogs();
    for (let left = found; left.length > 0 && !signal?.aborted; left = withLogs()) {
      await this.#commit.run((tx) => {
        // A retry in the same batch may have opened it again.
        const ended = left.filter((id) => owners.isEnded(tx, id));
        this.#deletions.add(tx, (now) => this.#removeSlice(now, owners, ended));
      });
    }
    return found.filter((id) => !owners.hasLogs(id)).length;
  }

  /** Inside the transaction. */
  #removeSlice(tx: Tx, owners: Owners, ids: readonly string[]): void {
    let rows = 0;
    let bytes = 0;
    for (const id of ids) {
      for (const row of owners.logs(id, rowsMax - rows)) {
        if (rows > 0 && bytes + row.bytes > bytesMax) return this.#room.addNow(tx, -bytes);
        owners.remove(row.id);
        rows++;
        bytes += row.bytes;
      }
      if (rows >= rowsMax) break;
    }
    this.#room.addNow(tx, -bytes);
  }
}

interface Owners {
  /** The next ended ones behind what has been passed, that ended at `endedBy` or before; null when there are none. */
  next(endedBy: number): string[] | null;
  /** What `next` has answered last is done with. */
  pass(): void;
  /** When the newest ended that is not among the `count` newest; before all time when there are no more than those. */
  endedAtRank(count: number): number;
  hasLogs(id: string): boolean;
  isEnded(tx: ReadTx, id: string): boolean;
  /** Some of its log, as rows. */
  logs(id: string, limit: number): { id: number; bytes: number }[];
  remove(row: number): void;
}

interface About {
  table: "run" | "task";
  key: "run_id" | "task_id";
  where: string;
  isEnded: (tx: ReadTx, id: string) => boolean;
  count: () => number;
}

function ownersOf(db: Database, { table, key, where, isEnded, count: countOf }: About): Owners {
  const ended = `FROM ${table} WHERE ended_at IS NOT NULL${where}`;
  const next = db.prepare(
    `SELECT ended_at, id ${ended} AND (ended_at, id) > (?, ?) AND ended_at <= ? ORDER BY ended_at, id LIMIT ${sliceEndings}`,
  );
  const rank = db.prepare(`SELECT ended_at ${ended} ORDER BY ended_at DESC, id DESC LIMIT 1 OFFSET ?`);
  const hasLogs = db.prepare(`SELECT 1 AS found FROM log WHERE ${key} = ? LIMIT 1`);
  const logs = db.prepare(`SELECT id, bytes FROM log WHERE ${key} = ? LIMIT ?`);
  const remove = db.prepare("DELETE FROM log WHERE id = ?");
  let passed: [number, string] = [-1, ""];
  let last = passed;
  return {
    next(endedBy) {
      const rows = next.all(...passed, endedBy);
      const newest = rows.at(-1);
      if (newest === undefined) return null;
      last = [newest.ended_at as number, newest.id as string];
      return rows.map((row) => row.id as string);
    },
    pass() {
      passed = last;
    },
    endedAtRank(count) {
      // Read from the index only when there are more: it would walk all of them to find out.
      const row = countOf() > count ? rank.get(count) : undefined;
      return row === undefined ? Number.NEGATIVE_INFINITY : (row.ended_at as number);
    },
    hasLogs: (id) => hasLogs.get(id) !== undefined,
    isEnded,
    logs: (id, limit) => logs.all(id, limit).map((row) => ({ id: row.id as number, bytes: row.bytes as number })),
    remove: (row) => void remove.run(row),
  };
}
