// Pruning on SQLite. A run or task disappears for every reader in one small transaction that also notes its id; the rows that belong
// to it in other tables follow in slices, so that a run of ten thousand steps stalls no request. The noted ids survive a crash: the next
// pruning continues with them.

import type { LocalBlobs } from "../blob/local-blobs.ts";
import type { BlobReferences } from "../blob/references.ts";
import type { Task } from "../board/task.ts";
import { Additions, type Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { AgeMark } from "./age.ts";
import { type Keep, lingerMs, type Pruned, type RetentionPolicy, type RetentionStore } from "./retention.ts";
import type { Run } from "./run.ts";
import type { StoredBytes } from "../stored-bytes.ts";
import type { Tx } from "../tx.ts";
import type { Counts } from "./counts.ts";
import type { Database, SqlRow } from "../../store/sqlite/driver.ts";
import { LogRetention } from "./log-retention.ts";
import { readProperty, writeProperty } from "../../store/sqlite/properties.ts";
import { writeRetention } from "../../store/sqlite/retention-property.ts";
import { prepareSlices } from "./remains.ts";

export interface LocalRetentionDeps {
  db: Database;
  commit: GroupCommit;
  runs: Rows<Run>;
  tasks: Rows<Task>;
  counts: Counts;
  stored: StoredBytes;
  blobs: LocalBlobs;
  references: BlobReferences;
}

/** Under which name the data file keeps how old it is to retention. */
const ageProperty = "age";
/** Runs or tasks that disappear in one transaction. */
const batchMax = 100;
/** Bytes of their inputs and outputs, besides those of the first: SQLite walks all pages that it frees. */
const batchBytesMax = 4 * 1_048_576;

export class LocalRetention implements RetentionStore {
  readonly #options: LocalRetentionDeps;
  /** What an operation has decided to delete or to note; it is carried out inside its transaction. */
  readonly #changes: Additions<(tx: Tx) => void>;
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #logs: LogRetention;

  constructor(options: LocalRetentionDeps) {
    this.#options = options;
    this.#changes = new Additions(options.commit, (remove, tx) => remove(tx));
    this.#sql = prepareStatements(options.db, options.stored);
    this.#logs = new LogRetention(options);
  }

  async prune(policy: RetentionPolicy, now: number, signal?: AbortSignal): Promise<Pruned> {
    const pruned: Pruned = { runs: 0, tasks: 0, logs: 0, blobs: 0 };
    await this.#options.counts.counted();
    await this.#removeRest(signal);
    await repeat(signal, async () => {
      const runs = await this.#pruneRuns(policy.runs, now);
      pruned.runs += runs;
      await this.#removeRest(signal);
      return runs > 0;
    });
    await repeat(signal, async () => {
      const tasks = await this.#pruneTasks(policy.tasks, now);
      pruned.tasks += tasks;
      await this.#removeRest(signal);
      return tasks > 0;
    });
    pruned.logs = await this.#logs.prune(policy.logs, now, signal);
    pruned.blobs = await this.#pruneBlobs(policy.blobs, now, signal);
    await this.#options.blobs.sweep();
    return pruned;
  }

  async #pruneBlobs(keep: Keep, now: number, signal: AbortSignal | undefined): Promise<number> {
    const { blobs, references } = this.#options;
    // Like runs, what was used just now is not pruned by count.
    const usedBefore = Math.max(now - keep.ageMs, Math.min(await blobs.beyond(keep.count), now - lingerMs));
    let pruned = 0;
    if (!(await blobs.anyUnused(usedBefore))) return pruned;
    await references.spare(usedBefore, signal, () =>
      repeat(signal, async () => {
        const removed = await blobs.prune(usedBefore, (tx) => references.pending(tx));
        pruned += removed;
        return removed > 0;
      }),
    );
    return pruned;
  }

  async removeRun(runId: string): Promise<boolean> {
    const { commit, runs, counts } = this.#options;
    await counts.counted();
    const removed = await commit.run((tx) => {
      if (runs.get(tx, runId)?.endedAt == null) return false;
      runs.remove(tx, runId);
      this.#changes.add(tx, () => this.#sql.forgetRun(runId));
      tx.after(() => counts.pruned({ runs: 1, tasks: 0 }));
      return true;
    });
    if (removed) await this.#removeRest(undefined);
    return removed;
  }

  notePolicy(policy: RetentionPolicy): void {
    writeRetention(this.#options.db, policy.runs);
  }

  age(): AgeMark | null {
    const kept = readProperty(this.#options.db, ageProperty);
    return kept === null ? null : (JSON.parse(kept) as AgeMark);
  }

  keepAge(mark: AgeMark): Promise<void> {
    const { commit, db } = this.#options;
    return commit.run((tx) => this.#changes.add(tx, () => writeProperty(db, ageProperty, JSON.stringify(mark))));
  }

  #pruneRuns(keep: Keep, now: number): Promise<number> {
    const { runs, counts } = this.#options;
    return this.#whenAny(this.#sql.endedRuns, keep, counts.endedRuns, now, (tx, ids) => {
      // A retry in the same batch may have opened it again.
      const ended = ids.filter((id) => runs.get(tx, id)?.endedAt != null);
      for (const id of ended) {
        runs.remove(tx, id);
        this.#changes.add(tx, () => this.#sql.forgetRun(id));
      }
      tx.after(() => counts.pruned({ runs: ended.length, tasks: 0 }));
      return ended.length;
    });
  }

  #pruneTasks(keep: Keep, now: number): Promise<number> {
    const { tasks, counts } = this.#options;
    return this.#whenAny(this.#sql.endedTasks, keep, counts.endedTasks, now, (tx, ids) => {
      for (const id of ids) {
        tasks.remove(tx, id);
        this.#changes.add(tx, () => this.#sql.forgetTask(id));
      }
      tx.after(() => counts.pruned({ runs: 0, tasks: ids.length }));
      return ids.length;
    });
  }

  /** Looks first, so that a pruning which finds nothing costs no transaction. */
  #whenAny(find: Find, keep: Keep, count: number, now: number, remove: (tx: Tx, ids: string[]) => number): Promise<number> {
    const look = () => findExcess(find, keep, count, now);
    return look().length === 0 ? Promise.resolve(0) : this.#options.commit.run((tx) => remove(tx, look()));
  }

  async #removeRest(signal: AbortSignal | undefined): Promise<void> {
    await repeat(signal, async () => {
      if (!this.#sql.hasRest()) return false;
      await this.#options.commit.run((tx) => this.#changes.add(tx, (now) => this.#sql.removeSlice(now)));
      return true;
    });
  }
}

/** Ids in order of their ending, oldest first, that ended at `endedBy` or before: fewer than `limit` where they are large. */
type Find = (endedBy: number, limit: number) => string[];

/** Both rules take from the same end, so the one that takes more decides. */
function findExcess(find: Find, keep: Keep, count: number, now: number): string[] {
  const old = find(now - keep.ageMs, batchMax);
  const excess = Math.min(batchMax, count - keep.count);
  return excess <= old.length ? old : find(now - Math.min(lingerMs, keep.ageMs), excess);
}

async function repeat(signal: AbortSignal | undefined, step: () => Promise<boolean>): Promise<void> {
  while (signal?.aborted !== true && (await step()));
}

function prepareStatements(db: Database, stored: StoredBytes) {
  const endedIn = (table: string, where: string): Find => {
    const bytes = "octet_length(input) + coalesce(octet_length(output), 0) AS bytes";
    const ended = `FROM ${table} WHERE ended_at IS NOT NULL${where} AND ended_at <= ?`;
    const oldest = db.prepare(`SELECT id, ${bytes} ${ended} ORDER BY ended_at, id LIMIT ?`);
    return (endedBy, limit) => withinBytes(oldest.iterate(endedBy, limit));
  };
  const forgetKeys = db.prepare("DELETE FROM run_key WHERE run_id = ?");
  const note = db.prepare("INSERT OR IGNORE INTO pruned (id) VALUES (?)");
  const hasMore = db.prepare(
    `SELECT 1 AS found FROM log WHERE task_id = ?1 UNION ALL SELECT 1 FROM part WHERE task_id = ?1 UNION ALL SELECT 1 FROM part_read WHERE reader = ?1
     UNION ALL SELECT 1 FROM attempt WHERE task_id = ?1 LIMIT 1`,
  );
  const noted = db.prepare("SELECT id FROM pruned LIMIT 1");
  const crossOff = db.prepare("DELETE FROM pruned");
  const removeSlice = prepareSlices(db, stored);
  return {
    endedRuns: endedIn("run", ""),
    endedTasks: endedIn("task", " AND run_id IS NULL"),
    forgetRun(id: string): void {
      forgetKeys.run(id);
      note.run(id);
    },
    forgetTask(id: string): void {
      if (hasMore.get(id) !== undefined) note.run(id);
    },
    hasRest: () => noted.get() !== undefined,
    removeSlice(tx: Tx): void {
      if (!removeSlice(tx)) crossOff.run();
    },
  };
}

/** The first of them, and those behind it that have few bytes together. */
function withinBytes(rows: Iterable<SqlRow>): string[] {
  const ids: string[] = [];
  let bytes = 0;
  for (const row of rows) {
    bytes += row.bytes as number;
    if (ids.length > 0 && bytes > batchBytesMax) break;
    ids.push(row.id as string);
  }
  return ids;
}
