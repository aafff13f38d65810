// Pruning. A run or task disappears for every reader in one small transaction that also records its id; its rows in other tables are
// removed in slices later (remains.ts). The recorded ids survive a crash: the next pruning continues with them.

import { Slices, turnRows } from "../../core/slices/slices.ts";
import type { LocalAudit } from "../audit/local-audit.ts";
import type { LocalBlobs } from "../blob/local-blobs.ts";
import type { BlobReferences } from "../blob/references.ts";
import type { LocalBoard } from "../board/local-board.ts";
import type { TaskRow } from "../board/task.ts";
import { Additions, type Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import { Postponed } from "../commit-errors.ts";
import { type Once, unmarked } from "../request-marks.ts";
import { type RowStore, readAll, type TableRows, type Value } from "../rows.ts";
import type { StoredBytes } from "../stored-bytes.ts";
import { type Ended, type EndedKind, endedRuns, endedTasks, type Property, propertyTable } from "../tables/endings.ts";
import { runKeyTable } from "../tables/run.ts";
import type { ReadTx, Tx } from "../tx.ts";
import type { AgeMark } from "./age.ts";
import type { Counts } from "./counts.ts";
import { LogRetention } from "./log-retention.ts";
import type { Remains } from "./remains.ts";
import {
  type Keep,
  keptProperty,
  lingerMs,
  type Pruned,
  type PruningView,
  type RetentionPolicy,
  type RetentionStore,
} from "./retention.ts";
import type { Run } from "./run.ts";

export interface LocalRetentionDeps {
  store: RowStore;
  commit: GroupCommit;
  /** Default: no request is tracked. */
  performed?: Once;
  runs: Rows<Run>;
  tasks: Rows<TaskRow>;
  board: Pick<LocalBoard, "unwritten" | "remains">;
  counts: Counts;
  stored: StoredBytes;
  blobs: LocalBlobs;
  references: BlobReferences;
  /** Default: nothing is noted. */
  audit?: LocalAudit;
  /** Default: turns of its own. */
  slices?: Slices;
}

/** The name of the age for retention in the data file. */
const ageProperty = "age";
/** Runs or tasks that disappear in one transaction. */
const batchMax = 100;
/** Maximum bytes of their inputs and outputs together; a larger one disappears alone. A store visits all pages that it frees. */
const batchBytesMax = 4 * 1_048_576;

export class LocalRetention implements RetentionStore {
  readonly #options: LocalRetentionDeps;
  readonly #runs: Ending;
  readonly #tasks: Ending;
  readonly #keysOf: Additions<string>;
  readonly #properties: TableRows<Property>;
  readonly #changed: Additions<Property>;
  readonly #remains: Remains;
  readonly #logs: LogRetention;

  constructor(options: LocalRetentionDeps) {
    const { store, commit, counts } = options;
    this.#options = options;
    this.#runs = { kind: endedRuns, rows: store.table(endedRuns.sized), count: () => counts.endedRuns };
    this.#tasks = { kind: endedTasks, rows: store.table(endedTasks.sized), count: () => counts.endedTasks };
    const keys = store.table(runKeyTable);
    this.#keysOf = new Additions(commit, (runId) => keys.remove({ by: ["run_id"], equal: [runId] }));
    this.#properties = store.table(propertyTable);
    this.#changed = new Additions(commit, (property) => this.#properties.write(property));
    this.#remains = options.board.remains;
    this.#logs = new LogRetention(options);
  }

  async prune(policy: RetentionPolicy, now: number, signal?: AbortSignal): Promise<Pruned> {
    const pruned: Pruned = { runs: 0, tasks: 0, logs: 0, blobs: 0 };
    await this.#options.counts.counted();
    await this.#remains.remove(signal);
    await repeat(signal, async () => {
      const runs = await this.#pruneRuns(policy.runs, now);
      pruned.runs += runs;
      await this.#remains.remove(signal);
      return runs > 0;
    });
    await repeat(signal, async () => {
      const tasks = await this.#pruneTasks(policy.tasks, now);
      pruned.tasks += tasks;
      await this.#remains.remove(signal);
      return tasks > 0;
    });
    pruned.logs = await this.#logs.prune(policy.logs, now, signal);
    pruned.blobs = await this.#pruneBlobs(policy.blobs, now, signal);
    await this.#options.blobs.sweep();
    const { audit } = this.#options;
    await repeat(signal, async () => (await audit?.prune(policy.audit, now)) ?? false);
    return pruned;
  }

  async #pruneBlobs(keep: Keep, now: number, signal: AbortSignal | undefined): Promise<number> {
    const { blobs, references } = this.#options;
    // As with runs, recently used blobs are not pruned by count.
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

  async foresee(keep: Keep, now: number): Promise<PruningView> {
    const { counts, commit, slices = new Slices() } = this.#options;
    await counts.counted();
    const { kind } = this.#runs;
    const ends = this.#options.store.table(kind.table);
    const below = [Math.max(0, now - keep.ageMs + 1)];
    let old = 0;
    for (let above: Value[] | undefined; ; ) {
      await slices.turn(turnRows);
      const some = await commit.read((tx) => [...ends.scan(tx, { ...kind.scan, ...(above && { above }), below, limit: turnRows })]);
      old += some.length;
      const last = some.at(-1);
      if (last === undefined || some.length < turnRows) break;
      above = [last.endedAt, last.id];
    }
    const of = counts.endedRuns;
    return { runs: Math.min(of, Math.max(old, of - keep.count)), of };
  }

  async removeRun(runId: string): Promise<boolean> {
    const { commit, performed = unmarked(commit), runs, counts, board } = this.#options;
    await counts.counted();
    const remove = (tx: Tx) => {
      const run = runs.get(tx, runId);
      if (run === null || run.endedAt === null) return false;
      const released = board.unwritten.released(runId);
      if (released !== undefined) throw new Postponed(released);
      this.#removeRun(tx, runId);
      this.#options.audit?.note(tx, {
        verb: "remove",
        kind: "run",
        target: runId,
        was: { state: run.state, workflow: run.workflow },
        became: null,
      });
      tx.after(() => counts.pruned({ runs: [run] }));
      return true;
    };
    const removed = await performed.once(`remove ${runId}`, remove, (_, before) => before);
    if (removed) await this.#remains.remove(undefined);
    return removed;
  }

  notePolicy(policy: RetentionPolicy): Promise<void> {
    const value = JSON.stringify(policy.runs);
    return this.#options.commit.run((tx) => {
      if (this.#properties.get(tx, keptProperty)?.value !== value) this.#changed.add(tx, { name: keptProperty, value });
    });
  }

  async age(): Promise<AgeMark | null> {
    const kept = await this.#options.commit.read((tx) => this.#properties.get(tx, ageProperty));
    return kept === null ? null : (JSON.parse(kept.value) as AgeMark);
  }

  keepAge(mark: AgeMark): Promise<void> {
    return this.#options.commit.run((tx) => this.#changed.add(tx, { name: ageProperty, value: JSON.stringify(mark) }));
  }

  #pruneRuns(keep: Keep, now: number): Promise<number> {
    const { runs, counts, board } = this.#options;
    return this.#whenAny(this.#runs, keep, now, (tx, ids) => {
      // A retry in the same batch may have reopened the run. A run is also kept until all its tasks have ended.
      const found = readAll(ids, (id) => runs.get(tx, id));
      const ended = found.filter((run) => run !== null && run.endedAt !== null && board.unwritten.released(run.id) === undefined) as Run[];
      for (const { id } of ended) this.#removeRun(tx, id);
      // Without their texts, which may be long.
      const left = ended.map(({ id, workflow, state }) => ({ id, workflow, state }));
      tx.after(() => counts.pruned({ runs: left }));
      return ended.length;
    });
  }

  #pruneTasks(keep: Keep, now: number): Promise<number> {
    const { tasks, counts } = this.#options;
    return this.#whenAny(this.#tasks, keep, now, (tx, ids) => {
      for (const id of ids) {
        tasks.remove(tx, id);
        this.#remains.note(tx, id);
      }
      tx.after(() => counts.pruned({ tasks: ids.length }));
      return ids.length;
    });
  }

  #removeRun(tx: Tx, id: string): void {
    this.#options.runs.remove(tx, id);
    this.#keysOf.add(tx, id);
    this.#remains.note(tx, id);
  }

  /** Reads first, so that a pruning without a result costs no transaction. */
  async #whenAny(ending: Ending, keep: Keep, now: number, remove: (tx: Tx, ids: string[]) => number): Promise<number> {
    const { commit } = this.#options;
    const found = await commit.read((tx) => findExcess(tx, ending, keep, now));
    return found.length === 0 ? 0 : commit.run((tx) => remove(tx, findExcess(tx, ending, keep, now)));
  }
}

/** Runs or tasks that have ended. */
interface Ending {
  readonly kind: EndedKind;
  readonly rows: TableRows<Ended & { readonly bytes: number }>;
  count(): number;
}

/** Both rules remove the oldest first, so the one that removes more decides. */
function findExcess(tx: ReadTx, ending: Ending, keep: Keep, now: number): string[] {
  const old = find(tx, ending, now - keep.ageMs, batchMax);
  const excess = Math.min(batchMax, ending.count() - keep.count);
  return excess <= old.length ? old : find(tx, ending, now - Math.min(lingerMs, keep.ageMs), excess);
}

/**
 * The ids of those that ended at `endedBy` or before, oldest first. The first is always included; with the next ones, the total stays below
 * `batchBytesMax`.
 */
function find(tx: ReadTx, { kind, rows }: Ending, endedBy: number, limit: number): string[] {
  const ids: string[] = [];
  let sum = 0;
  for (const { id, bytes } of rows.scan(tx, { ...kind.scan, below: [Math.max(0, endedBy + 1)], limit })) {
    sum += bytes;
    if (ids.length > 0 && sum > batchBytesMax) break;
    ids.push(id);
  }
  return ids;
}

async function repeat(signal: AbortSignal | undefined, step: () => Promise<boolean>): Promise<void> {
  while (signal?.aborted !== true && (await step()));
}
