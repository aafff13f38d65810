// Carries out orders to many runs, in the process that owns the data. A job is a row; after each slice, the row says how far the job has come.
// After a crash, the job continues with the slice that was in progress. The audit shows which runs of that slice have got their order
// already.

import { setMaxListeners } from "node:events";
import type { Clock } from "../../core/clock.ts";
import { isClosing, isTransient, LongshoreError, toError } from "../../core/errors.ts";
import type { FailureListener } from "../../core/failure-listener.ts";
import { idFrom, type MakeId } from "../../core/ids.ts";
import type { Orderers } from "../../core/orderer.ts";
import { cutMiddle } from "../../core/text.ts";
import type { AuditReader } from "../audit/audit.ts";
import type { Audit } from "../audit/local-audit.ts";
import { Additions } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { RowStore, TableRows } from "../rows.ts";
import type { RunSummaries } from "../run/run-summary.ts";
import type { Runs } from "../run/runs.ts";
import { type BulkRow, type BulkState, bulkTable } from "../tables/bulk.ts";
import { type BulkJob, type BulkJobs, type BulkOrder, type Refused, whyNotBulk } from "./bulk.ts";

/** Runs of one slice. After a crash, a slice is processed again. */
const sliceMax = 200;
/** Orders that are given together: they share transactions. Between two such groups, a job can be stopped. */
const togetherMax = 20;
/** Jobs that run at the same time: each takes its part of every transaction. */
const openMax = 20;
/** Refused runs that are kept with their errors. */
const errorsMax = 20;
const errorCharsMax = 500;
/** How long a job that has ended can be read. */
const keptMs = 30 * 86_400_000;
/** Old jobs that one new job removes. */
const removedMax = 100;
/** Delay before a slice that could not be written is tried again. */
const retryMs = 1_000;
/** Entries of the audit of one run that are looked at: orders of people are few. */
const lookedMax = 20;
const activity = "carrying out an order to many runs";

export interface LocalBulkDeps {
  readonly store: RowStore;
  readonly commit: GroupCommit;
  readonly clock: Clock;
  readonly makeId: MakeId;
  readonly runs: Pick<Runs, "rerun" | "retry" | "run" | "tell">;
  readonly summaries: Pick<RunSummaries, "page">;
  readonly removeRun: (runId: string) => Promise<boolean>;
  /** The number of a step in the plan of its run. */
  readonly nodeOf: (runId: string, step: string) => Promise<number | undefined>;
  readonly audit: Audit;
  readonly auditReader: AuditReader;
  readonly orderers: Orderers;
  readonly trouble?: FailureListener | undefined;
}

/** A run of a slice, and the step at which it begins again. */
interface Target {
  readonly run: string;
  readonly step: string | undefined;
}

interface Slice {
  readonly targets: readonly Target[];
  /** Null after the last slice. */
  readonly cursor: string | null;
  readonly looked: number | null;
  readonly of: number | null;
}

export class LocalBulk implements BulkJobs {
  readonly #deps: LocalBulkDeps;
  readonly #rows: TableRows<BulkRow>;
  readonly #changes: Additions<BulkRow>;
  readonly #removals: Additions<string>;
  /** Running jobs. `stopped` ends one. */
  readonly #open = new Map<string, { readonly stopped: AbortController; readonly done: Promise<void> }>();
  readonly #closing = new AbortController();

  constructor(deps: LocalBulkDeps) {
    // Each order that pauses listens to it, and Node warns about more than ten listeners.
    setMaxListeners(openMax, this.#closing.signal);
    this.#deps = deps;
    this.#rows = deps.store.table(bulkTable);
    this.#changes = new Additions(deps.commit, (row) => this.#rows.write(row));
    this.#removals = new Additions(deps.commit, (id) => this.#rows.remove([id]));
  }

  /** Continues the jobs that the last process left. Must be called once, when runs can be changed. */
  async recover(): Promise<void> {
    const open = await this.#deps.commit.read((tx) => [...this.#rows.scan(tx, { by: ["id"], without: "ended_at" })]);
    for (const row of open) this.#begin(row, true);
  }

  async create(order: BulkOrder): Promise<BulkJob> {
    const { clock, makeId, commit, audit, orderers } = this.#deps;
    const id = makeId(clock.now());
    const { row, isNew } = await commit.run((tx) => {
      // A request that is performed again finds its job.
      const before = this.#rows.get(tx, id);
      if (before !== null) return { row: before, isNew: false };
      if (this.#open.size >= openMax) throw tooMany();
      for (const old of this.#rows.scan(tx, { by: ["id"], limit: removedMax }))
        if (old.endedAt !== null && old.endedAt < clock.now() - keptMs) this.#removals.add(tx, old.id);
      const row: BulkRow = {
        id,
        order: { ...order, createdAt: clock.now(), caller: tx.orderer?.name ?? orderers.current()?.name ?? null },
        state: {
          state: "running",
          done: 0,
          skipped: {},
          refused: 0,
          errors: [],
          looked: null,
          of: order.ids?.length ?? null,
          cursor: null,
        },
        endedAt: null,
      };
      this.#changes.add(tx, row);
      const became = {
        action: order.action,
        runs: order.ids?.length ?? null,
        filter: order.filter && JSON.stringify(order.filter),
        limit: order.limit,
      };
      if (!order.dry) audit.note(tx, { verb: order.action, kind: "bulk", target: id, was: null, became, reason: order.reason });
      return { row, isNew: true };
    });
    if (isNew) this.#begin(row, false);
    return jobOf(row);
  }

  async job(id: string): Promise<BulkJob | undefined> {
    const row = await this.#row(id);
    return row === null ? undefined : jobOf(row);
  }

  async list(limit: number): Promise<readonly BulkJob[]> {
    return (await this.#deps.commit.read((tx) => [...this.#rows.scan(tx, { by: ["id"], backwards: true, limit })])).map(jobOf);
  }

  async stop(id: string): Promise<BulkJob | undefined> {
    const open = this.#open.get(id);
    open?.stopped.abort();
    await open?.done;
    return this.job(id);
  }

  async ended(id: string, giveUp: AbortSignal): Promise<void> {
    const open = this.#open.get(id);
    if (open === undefined || giveUp.aborted) return;
    await Promise.race([open.done, new Promise<void>((resolve) => giveUp.addEventListener("abort", () => resolve(), { once: true }))]);
  }

  /** Ends after the orders in progress; the next process continues. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all([...this.#open.values()].map(({ done }) => done));
  }

  #row(id: string): Promise<BulkRow | null> {
    return this.#deps.commit.read((tx) => this.#rows.get(tx, id));
  }

  #begin(row: BulkRow, isAgain: boolean): void {
    const stopped = new AbortController();
    const done = this.#carry(row, stopped.signal, isAgain).finally(() => this.#open.delete(row.id));
    this.#open.set(row.id, { stopped, done });
  }

  async #carry(begun: BulkRow, stopped: AbortSignal, isAgain: boolean): Promise<void> {
    const { trouble } = this.#deps;
    let row = begun;
    let looksBack = isAgain;
    while (row.endedAt === null && !this.#closing.signal.aborted) {
      try {
        row = await this.#slice(row, stopped, looksBack);
        looksBack = false;
        trouble?.working(activity);
      } catch (error) {
        if (isClosing(error)) return;
        trouble?.failing(activity, toError(error));
        // The slice is tried again; some of its runs have got their order.
        looksBack = true;
        await this.#pause(retryMs, stopped);
      }
    }
  }

  /** Carries out one slice. Returns the row afterwards. */
  async #slice(row: BulkRow, stopped: AbortSignal, looksBack: boolean): Promise<BulkRow> {
    const { order, state } = row;
    const slice = await this.#next(row);
    const counts = { done: state.done, skipped: { ...state.skipped }, refused: state.refused, errors: [...state.errors] };
    let at = 0;
    while (at < slice.targets.length && !stopped.aborted && !this.#closing.signal.aborted && counts.done < order.limit) {
      const size = Math.min(togetherMax, order.perSecond ?? togetherMax, order.limit - counts.done);
      const some = slice.targets.slice(at, at + size);
      const outcomes = await Promise.all(some.map((target) => this.#one(row, target, looksBack)));
      at += some.length;
      for (const [index, outcome] of outcomes.entries()) count(counts, outcome, some[index]?.run ?? "");
      if (order.perSecond !== null) await this.#pause((1_000 * some.length) / order.perSecond, stopped);
    }
    // A closing process leaves the rest of the slice to the next process, which finds in the audit what is done.
    if (this.#closing.signal.aborted && at < slice.targets.length && !stopped.aborted) return row;
    const isStopped = stopped.aborted && (at < slice.targets.length || slice.cursor !== null);
    const isOver = isStopped || slice.cursor === null || counts.done >= order.limit;
    const next: BulkState = {
      ...counts,
      state: isStopped ? "stopped" : isOver ? "done" : "running",
      cursor: slice.cursor,
      looked: slice.looked === null ? null : (state.looked ?? 0) + slice.looked,
      of: slice.of,
    };
    const after: BulkRow = { ...row, state: next, endedAt: isOver ? this.#deps.clock.now() : null };
    await this.#deps.commit.run((tx) => this.#changes.add(tx, after));
    return after;
  }

  async #next({ order, state }: BulkRow): Promise<Slice> {
    const { ids, steps, filter, createdAt } = order;
    if (ids !== null) {
      const from = Number(state.cursor ?? 0);
      const to = Math.min(ids.length, from + sliceMax);
      const targets = ids.slice(from, to).map((run, at) => ({ run, step: steps?.[from + at] }));
      return { targets, cursor: to < ids.length ? String(to) : null, looked: null, of: ids.length };
    }
    // Runs that begin later do not count, such as those that the job itself starts.
    const created = { ...filter?.created, before: Math.min(filter?.created?.before ?? Number.POSITIVE_INFINITY, createdAt + 1) };
    const page = await this.#deps.summaries.page({
      ...filter,
      created,
      limit: sliceMax,
      ...(state.cursor === null ? {} : { before: state.cursor }),
    });
    return { targets: page.items.map(({ id }) => ({ run: id, step: undefined })), cursor: page.next, looked: page.looked, of: page.of };
  }

  async #one({ id, order }: BulkRow, target: Target, looksBack: boolean): Promise<Outcome> {
    const { orderers, runs } = this.#deps;
    // Several steps of one run may be in a job.
    const via = target.step === undefined ? `bulk ${id}` : `bulk ${id} ${target.step}`;
    try {
      if (looksBack && !order.dry && (await this.#hasGot(target.run, via))) return "done";
      const run = await runs.run(target.run);
      if (run === undefined) return { skipped: "does not exist" };
      const why = whyNotBulk(order.action, run.state);
      if (why !== undefined) return { skipped: why };
      if (!order.dry) await orderers.within({ name: order.caller, via }, () => this.#order(id, order, target));
      return "done";
    } catch (error) {
      if (isTransient(error) || isClosing(error)) throw error;
      return { error: cutMiddle(toError(error).message, errorCharsMax) };
    }
  }

  async #order(id: string, { action, reason, createdAt }: BulkRow["order"], { run, step = "" }: Target): Promise<unknown> {
    const { runs, removeRun, nodeOf } = this.#deps;
    if (action === "cancel") return runs.tell(run, { kind: "cancel", ...(reason !== null && { error: reason }) });
    if (action === "pause" || action === "resume") return runs.tell(run, { kind: action });
    if (action === "retry") return runs.retry(run);
    if (action === "rerun") return runs.rerun(run, undefined, idFrom(`${id} ${run}`, createdAt));
    if (action === "remove") return removeRun(run);
    const node = await nodeOf(run, step);
    if (node === undefined) throw new LongshoreError("LONGSHORE_NOT_FOUND", `Run ${run} has no step ${step}.`);
    return runs.tell(run, { kind: "rerun", node });
  }

  async #hasGot(run: string, via: string): Promise<boolean> {
    const { items } = await this.#deps.auditReader.page({ kind: "run", target: run, limit: lookedMax });
    return items.some((entry) => entry.via === via);
  }

  #pause(ms: number, stopped: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    return new Promise((resolve) => {
      const cancel = clock.at(clock.now() + ms, () => end());
      const end = () => {
        cancel();
        stopped.removeEventListener("abort", end);
        this.#closing.signal.removeEventListener("abort", end);
        resolve();
      };
      stopped.addEventListener("abort", end);
      this.#closing.signal.addEventListener("abort", end);
    });
  }
}

type Outcome = "done" | { readonly skipped: string } | { readonly error: string };

interface Counting {
  done: number;
  readonly skipped: { [reason: string]: number };
  refused: number;
  readonly errors: Refused[];
}

function count(counts: Counting, outcome: Outcome, run: string): void {
  if (outcome === "done") counts.done++;
  else if ("skipped" in outcome) counts.skipped[outcome.skipped] = (counts.skipped[outcome.skipped] ?? 0) + 1;
  else {
    counts.refused++;
    if (counts.errors.length < errorsMax) counts.errors.push({ run, error: outcome.error });
  }
}

function jobOf({ id, order, state: { cursor: _cursor, ...state }, endedAt }: BulkRow): BulkJob {
  return { id, ...order, ...state, endedAt };
}

function tooMany(): LongshoreError {
  return new LongshoreError(
    "LONGSHORE_LIMIT",
    `${openMax} orders to many runs are being carried out, which is the limit: wait for one, or stop one.`,
  );
}
