// How long ended runs and tasks are kept, and the loop that removes them.

import type { Clock } from "../../core/clock.ts";
import { Age, type AgeMark } from "./age.ts";

export interface Keep {
  /** Counted from the end, or from the last use. */
  readonly ageMs: number;
  /** Above this number the oldest are removed, at any age. */
  readonly count: number;
}

/** How long ended work stays in the data file, by kind. */
export interface RetentionPolicy {
  /** Ended runs, with their tasks, attempts and logs. */
  readonly runs: Keep;
  /** Ended tasks that belong to no run. */
  readonly tasks: Keep;
  /** Logs that are removed before their run or task; the count is how many runs or tasks keep their logs. */
  readonly logs: Keep;
  /** Blobs; their age counts from when they were last stored, read or looked up, or an open run needed them. */
  readonly blobs: Keep;
  /** Entries of the audit. */
  readonly audit: Keep;
}

/** The name in the data file for how long runs are kept. A checker needs this time to distinguish removed runs from lost runs. */
export const keptProperty = "kept";

/** Reads a value that was written as JSON, which has null for Infinity. */
export function keepOf({ ageMs, count }: { readonly [Field in keyof Keep]: number | null }): Keep {
  return { ageMs: ageMs ?? Number.POSITIVE_INFINITY, count: count ?? Number.POSITIVE_INFINITY };
}

/** Settings that are absent have their defaults. */
export type RetentionSettings = { readonly [What in keyof RetentionPolicy]?: Partial<RetentionPolicy[What]> };

const dayMs = 86_400_000;

/** A month of history, but at most as much as a laptop's disk easily holds: a small run with its task takes about 1 KB. */
export const retentionDefault: RetentionPolicy = {
  runs: { ageMs: 30 * dayMs, count: 500_000 },
  tasks: { ageMs: 7 * dayMs, count: 500_000 },
  logs: { ageMs: 30 * dayMs, count: 500_000 },
  blobs: { ageMs: 30 * dayMs, count: 100_000 },
  // An entry takes about 300 bytes: at most 30 MB.
  audit: { ageMs: 90 * dayMs, count: 100_000 },
};

export function retentionPolicy({ runs, tasks, logs, blobs, audit }: RetentionSettings = {}): RetentionPolicy {
  return {
    runs: keep(runs, retentionDefault.runs),
    tasks: keep(tasks, retentionDefault.tasks),
    logs: keep(logs, retentionDefault.logs),
    blobs: keep(blobs, retentionDefault.blobs),
    audit: keep(audit, retentionDefault.audit),
  };
}

function keep(given: Partial<Keep> = {}, defaults: Keep): Keep {
  return { ageMs: given.ageMs ?? defaults.ageMs, count: given.count ?? defaults.count };
}

/** Runs and tasks that ended within this time are not pruned by count: callers still read the result, and workers still repeat reports. */
export const lingerMs = 300_000;

export interface Pruned {
  runs: number;
  tasks: number;
  /** The number of runs and tasks that stay without their logs. */
  logs: number;
  blobs: number;
}

/** What pruning would remove. */
export interface PruningView {
  readonly runs: number;
  /** The number of ended runs. */
  readonly of: number;
}

export interface RetentionStore {
  /** How many ended runs `prune` would remove; counted in slices. */
  foresee(keep: Keep, now: number): Promise<PruningView>;
  /**
   * Removes what the policy no longer keeps, in small transactions. Safe to interrupt: the next call continues. When `signal` aborts, it
   * stops after the current transaction.
   */
  prune(policy: RetentionPolicy, now: number, signal?: AbortSignal): Promise<Pruned>;
  /** Removes a run that has ended, at once for every reader. False when there is none. */
  removeRun(runId: string): Promise<boolean>;
  /** The mark that `keepAge` last stored; null when there is none. */
  age(): Promise<AgeMark | null>;
  keepAge(mark: AgeMark): Promise<void>;
  /** Stores how long runs are kept, for checkers. Must be called before anything is served. */
  notePolicy(policy: RetentionPolicy): Promise<void>;
}

export interface RetentionOptions {
  store: RetentionStore;
  /** The age mark of the store. */
  age: AgeMark | null;
  clock: Clock;
  policy?: RetentionPolicy;
  pruned?: (pruned: Pruned) => void;
  /** Called when pruning failed, such as on a full disk. It is tried again a minute later. */
  failed?: (error: unknown) => void;
}

/** Time between the end of one pruning and the start of the next. */
const everyMs = 60_000;
/** The age is written this often: after a crash, the time since the last write counts as absence. */
const keepAgeMs = 3_600_000;

export class Retention {
  readonly #options: RetentionOptions;
  readonly #stopping = new AbortController();
  #cancelTimer: (() => void) | null = null;
  #pruning: Promise<void> | null = null;
  readonly #age: Age;
  #ageKeptAt = Number.NEGATIVE_INFINITY;

  /** Prunes a minute from now for the first time, then each minute. */
  constructor(options: RetentionOptions) {
    this.#options = options;
    this.#age = new Age(options.age, options.clock.now());
    this.#arm();
  }

  /** What pruning would remove now, with these limits for runs. */
  foresee(keep: Keep): Promise<PruningView> {
    const { store, clock } = this.#options;
    return store.foresee(keep, this.#age.at(clock.now()));
  }

  /** Resolves when no pruning is in progress. May be called twice. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#cancelTimer?.();
    await this.#pruning;
  }

  #arm(): void {
    if (this.#stopping.signal.aborted) return;
    const { clock } = this.#options;
    this.#cancelTimer = clock.at(clock.now() + everyMs, () => {
      this.#pruning = this.#prune().finally(() => this.#arm());
    });
  }

  async #prune(): Promise<void> {
    const { store, clock, policy = retentionDefault } = this.#options;
    const now = clock.now();
    try {
      const pruned = await store.prune(policy, this.#age.at(now), this.#stopping.signal);
      if (pruned.runs + pruned.tasks + pruned.logs + pruned.blobs > 0) this.#options.pruned?.(pruned);
      if (now - this.#ageKeptAt >= keepAgeMs) {
        await store.keepAge(this.#age.mark);
        this.#ageKeptAt = now;
      }
    } catch (error) {
      this.#options.failed?.(error);
    }
  }
}
