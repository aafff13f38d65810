// The checker: reads everything that a server stores, one run at a time, then compares it with recordings. It is the same for a data file
// and for a live server; only the source differs.

import type { ReadAddress } from "../core/recording.ts";
import type { RunHistory, TaskHistory } from "../engine/run/history.ts";
import { type Keep, lingerMs, retentionDefault } from "../engine/run/retention.ts";
import type { Finding } from "./finding.ts";
import { checkRecorded, type PlacedLine, type Rows } from "./recorded-rules.ts";
import { checkRun } from "./run-rules.ts";
import { checkTask } from "./task-rules.ts";

export interface HistorySource extends Rows {
  /** Every run. Each is read as it was at one moment. */
  runs(): AsyncIterable<RunHistory>;
  /** Every task without a run. */
  looseTasks(): AsyncIterable<TaskHistory>;
  /** Findings outside of runs and tasks. */
  others(): AsyncIterable<Finding>;
  /** How long runs are kept after their end; undefined when unknown. */
  kept(): Promise<Keep | undefined>;
  /** Reads the run again. Undefined when the rows cannot change while they are checked. */
  again?(runId: string): Promise<RunHistory | undefined>;
}

export interface VerifyOptions {
  readonly recorded: readonly PlacedLine[];
  /** The readers of the protocols' task ids, where they differ from the common form. */
  readonly addresses?: readonly ReadAddress[];
  readonly now: number;
  /** How long runs are kept after their end; overrides the value of the source. */
  readonly keptMs?: number;
  readonly progress?: (checked: { readonly runs: number; readonly tasks: number }) => void;
}

export interface Verification {
  readonly runs: number;
  readonly tasks: number;
  readonly attempts: number;
  readonly lines: { readonly judged: number; readonly tooOld: number; readonly unknown: number };
  /** The number of findings, and the first of them. */
  readonly total: number;
  readonly findings: readonly Finding[];
}

/** Maximum number of findings that are kept: more than a person reads. A broken file may have one finding for each of a million rows. */
const findingsMax = 1_000;
/**
 * Maximum number of reads of one run on a live server, until two of them agree. When a run changes between all reads, it is making
 * progress.
 */
const readsMax = 5;

export async function verify(source: HistorySource, options: VerifyOptions): Promise<Verification> {
  const counts = { runs: 0, tasks: 0, attempts: 0, total: 0 };
  const findings: Finding[] = [];
  const add = (found: readonly Finding[]) => {
    counts.total += found.length;
    findings.push(...found.slice(0, Math.max(0, findingsMax - findings.length)));
  };
  for await (const run of source.runs()) {
    counts.runs++;
    count(run.tasks);
    add(await lasting(source, run));
    options.progress?.(counts);
  }
  for await (const task of source.looseTasks()) {
    count([task]);
    add(checkTask(task));
    options.progress?.(counts);
  }
  for await (const found of source.others()) add([found]);
  const keptSince = await keptSinceOf(source, options, counts.runs);
  const { findings: recorded, ...lines } = await checkRecorded(
    options.recorded,
    { rows: source, addresses: options.addresses ?? [] },
    keptSince,
  );
  add(recorded);
  const { runs, tasks, attempts, total } = counts;
  return { runs, tasks, attempts, lines, total, findings };

  function count(tasks: readonly TaskHistory[]): void {
    counts.tasks += tasks.length;
    for (const task of tasks) counts.attempts += task.attempts.length;
  }
}

/**
 * The time since which everything that was acknowledged must be stored. When the limit of kept runs is reached, older runs were removed
 * regardless of their age.
 */
async function keptSinceOf(source: HistorySource, { now, keptMs }: VerifyOptions, runs: number): Promise<number> {
  if (keptMs !== undefined) return now - keptMs;
  const { ageMs, count } = (await source.kept()) ?? retentionDefault.runs;
  return now - (runs < count ? ageMs : lingerMs);
}

export function checkHistory(run: RunHistory): Finding[] {
  return [...checkRun(run), ...run.tasks.flatMap(checkTask)];
}

/** A large run of a live server is read in pages and may change between them, so only findings of two reads count. */
async function lasting(source: HistorySource, run: RunHistory): Promise<Finding[]> {
  let found = checkHistory(run);
  if (source.again === undefined) return found;
  for (let reads = 1; found.length > 0 && reads < readsMax; reads++) {
    const next = await source.again(run.id);
    const later = next === undefined ? [] : checkHistory(next);
    if (JSON.stringify(later) === JSON.stringify(found)) return found;
    found = later;
  }
  return [];
}
