// Reading on SQLite. Every list walks an index from the newest entry and looks at a bounded number of rows, so a rare filter costs
// several pages rather than a pause for everybody.

import type { Lanes } from "../../board/lanes.ts";
import { type Fault, isOpen, type Task, type Verb } from "../../board/task.ts";
import { type ListOptions, ListTexts } from "../../list-text.ts";
import type { Definition } from "../../run/dialect.ts";
import {
  type AttemptView,
  type CountsView,
  type Page,
  pageMax,
  type Reader,
  type RunQuery,
  type RunSearch,
  type TaskQuery,
} from "../../run/reader.ts";
import { isRunOpen, type Run, type RunState } from "../../run/run.ts";
import { type Slices, turnRows, wholeRow } from "../../slices.ts";
import type { Counts } from "./counts.ts";
import type { Database, SqlRow, Statement } from "./driver.ts";
import type { Rows } from "./rows.ts";
import { runColumns, runOf } from "./run-rows.ts";
import { searchRuns } from "./search.ts";
import { taskColumns, taskOf } from "./task-rows.ts";

export interface SqliteReaderOptions {
  db: Database;
  tasks: Rows<Task>;
  runs: Rows<Run>;
  definitions: { newest(name: string): Definition | null; byId(id: string): Definition | null };
  lanes: Lanes;
  counts: Counts;
  slices: Slices;
}

/** Entries of an index that are looked at without a pause, and that one page looks at while it searches for matches. */
const scanMax = turnRows / 2;
/** Entries of an index that are passed at the cost of one that is looked at. */
const passedPerRow = 16;
/** Inputs and outputs in one page, and what the last of them has above it: a thousand rows may have gigabytes together. */
const pageCharsMax = 8 * 1_048_576;
/** Whole rows that are read without a pause. */
const wholeRowsMax = 250;
/** Open runs that are sorted to list them: about a millisecond. */
const sortMax = 2_000;
/** Above every id in SQLite's byte order. */
const last = "\u{10ffff}";

export class SqliteReader implements Reader {
  readonly #options: SqliteReaderOptions;
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #lists: ListTexts;

  constructor(options: SqliteReaderOptions) {
    this.#options = options;
    this.#lists = new ListTexts(options.slices);
    this.#sql = prepareStatements(options.db);
  }

  run(id: string): Promise<Run | undefined> {
    return Promise.resolve(this.#run(id));
  }

  async runs(query: RunQuery): Promise<Page<Run>> {
    const { workflow, state, before = last } = query;
    await this.#options.slices.turn(state === undefined ? limited(query.limit) : scanMax);
    const found = scan(this.#runRows(workflow, state, before), query.limit, (row) => state === undefined || row.state === state);
    return this.#page(found, (id) => this.#run(id));
  }

  search(search: RunSearch): Promise<{ total: number; runs: AsyncIterable<Run> }> {
    return searchRuns(this.#options.db, this.#options.slices, search);
  }

  runsUnder(prefix: string, page: { after?: string; limit: number }): Promise<Run[]> {
    return this.#allOf(limited(page.limit), page.after ?? prefix, (after, some) =>
      this.#sql.runsUnder.all(after, `${prefix}${last}`, some).map(runOf),
    );
  }

  async statesUnder(prefix: string): Promise<Map<RunState, number>> {
    const states = new Map<RunState, number>();
    await this.#walk(
      prefix,
      (after, some) => this.#sql.statesUnder.all(after, `${prefix}${last}`, some),
      (row) => {
        const state = row.state as RunState;
        states.set(state, (states.get(state) ?? 0) + 1);
      },
    );
    return states;
  }

  childOf(taskId: string, attempt: number): Promise<Run | undefined> {
    return Promise.resolve(orUndefined(this.#sql.child.get(taskId, attempt), runOf));
  }

  newestRun(workflow: string): Promise<Run | undefined> {
    return Promise.resolve(orUndefined(this.#sql.newestRun.get(workflow), runOf));
  }

  openRuns(workflow: string, limit: number = pageMax): Promise<Run[]> {
    return this.#allOf(limit, last, (before, some) => this.#sql.openRunsOf.all(workflow, before, some).map(runOf));
  }

  runByAlias(alias: string): Promise<Run | undefined> {
    return Promise.resolve(orUndefined(this.#sql.runByAlias.get(alias), runOf));
  }

  async records(runId: string): Promise<Task[]> {
    const records = await this.#allOf(Number.POSITIVE_INFINITY, `${runId}.`, (after, some) =>
      this.#sql.records.all(after, `${runId}/`, some).map((row) => this.#newer(taskOf(row))),
    );
    return records.sort((a, b) => a.node - b.node);
  }

  task(id: string): Promise<Task | undefined> {
    return Promise.resolve(this.#task(id));
  }

  async tasks(query: TaskQuery): Promise<Page<Task>> {
    const { state, lane } = query;
    await this.#options.slices.turn(state === undefined && lane === undefined ? limited(query.limit) : scanMax);
    const matches = (row: SqlRow) => (state === undefined || row.state === state) && (lane === undefined || row.lane === lane);
    return this.#page(scan(this.#taskRows(query), query.limit, matches), (id) => this.#task(id));
  }

  async attempts(taskId: string): Promise<AttemptView[]> {
    await this.#options.slices.turn(wholeRow);
    const task = this.#task(taskId);
    if (task === undefined) return [];
    return [...this.#sql.attempts.all(taskId).map(attemptOf), currentAttempt(task)];
  }

  async definitions(page: { limit: number; offset?: number; dialect?: string }): Promise<Definition[]> {
    const { slices, definitions } = this.#options;
    const dialect = page.dialect ?? null;
    // Passing an entry costs a small part of what reading it does.
    await slices.turn(limited(page.limit) + Math.ceil((page.offset ?? 0) / passedPerRow));
    const found: Definition[] = [];
    for (const row of this.#sql.names.all(dialect, dialect, limited(page.limit), page.offset ?? 0)) {
      await slices.turn(wholeRow);
      const newest = definitions.newest(row.name as string);
      if (newest === null) continue;
      slices.spent(newest.source.length);
      found.push(newest);
    }
    return found;
  }

  definition(name: string): Promise<Definition | undefined> {
    return Promise.resolve(this.#options.definitions.newest(name) ?? undefined);
  }

  definitionById(id: string): Promise<Definition | undefined> {
    return Promise.resolve(this.#options.definitions.byId(id) ?? undefined);
  }

  async laneNames(): Promise<Set<string>> {
    const { lanes, slices } = this.#options;
    const names = new Set<string>();
    let passed = 0;
    for (const { lane } of lanes.all()) {
      if (passed++ % scanMax === 0) await slices.turn(scanMax);
      names.add(lane.name);
    }
    return names;
  }

  async queued(): Promise<Map<string, number>> {
    const queued = new Map<string, number>();
    await this.#walk(
      "",
      (after, some) => this.#sql.openTasksAfter.all(after, some),
      (row) => {
        if (row.state !== "queued" || row.lane === null) return;
        const lane = row.lane as string;
        queued.set(lane, (queued.get(lane) ?? 0) + 1);
      },
    );
    return queued;
  }

  async counts(): Promise<CountsView> {
    const { counts } = this.#options;
    await counts.counted();
    return { openRuns: counts.openRuns, endedRuns: counts.endedRuns, endedTasks: counts.endedTasks };
  }

  listText(items: AsyncIterable<string> | Iterable<string>, options?: ListOptions): Promise<string> {
    return this.#lists.of(items, options);
  }

  turn(rows: number): Promise<void> {
    return this.#options.slices.turn(rows * wholeRow);
  }

  async #page<T extends Run | Task>(found: { ids: string[]; next: string | null }, load: (id: string) => T | undefined): Promise<Page<T>> {
    const { slices } = this.#options;
    const items: T[] = [];
    let chars = 0;
    for (const id of found.ids) {
      await slices.turn(wholeRow);
      const item = load(id);
      if (item === undefined) continue;
      const size = textOf(item);
      slices.spent(size);
      items.push(item);
      chars += size;
      if (chars >= pageCharsMax && id !== found.ids.at(-1)) return { items, next: id };
    }
    return { items, next: found.next };
  }

  /** Whole rows in the order of their ids, one way or the other, behind `after`, some at a time. */
  async #allOf<T extends Run | Task>(limit: number, after: string, read: (after: string, some: number) => T[]): Promise<T[]> {
    const { slices } = this.#options;
    const all: T[] = [];
    for (let behind = after; all.length < limit; ) {
      const some = Math.min(wholeRowsMax, limit - all.length);
      await slices.turn(some * wholeRow);
      const rows = read(behind, some);
      all.push(...rows);
      slices.spent(rows.reduce((sum, row) => sum + textOf(row), 0));
      if (rows.length < some) break;
      behind = rows.at(-1)?.id as string;
    }
    return all;
  }

  /** Entries of an index in the order of their ids, behind `after`, some at a time. */
  async #walk(after: string, read: (after: string, some: number) => SqlRow[], look: (row: SqlRow) => void): Promise<void> {
    for (let behind = after; ; ) {
      await this.#options.slices.turn(scanMax);
      const rows = read(behind, scanMax);
      for (const row of rows) look(row);
      if (rows.length < scanMax) return;
      behind = rows.at(-1)?.id as string;
    }
  }

  #run(id: string): Run | undefined {
    return this.#options.runs.get(id) ?? undefined;
  }

  #task(id: string): Task | undefined {
    return this.#options.tasks.get(id) ?? undefined;
  }

  /** A hold may have been renewed in memory since its row was written. */
  #newer(task: Task): Task {
    return this.#options.tasks.kept(task.id) ?? task;
  }

  /** The index that comes nearest to the question, newest first. */
  #runRows(workflow: string | undefined, state: Run["state"] | undefined, before: string): Iterable<SqlRow> {
    if (workflow !== undefined) return this.#sql.runsOf.iterate(workflow, before);
    if (state === undefined || state === "succeeded") return this.#sql.runs.iterate(before);
    // Sorting them all would cost more than walking past those that have ended.
    if (isRunOpen(state) && this.#options.counts.openRuns > sortMax) return this.#sql.runs.iterate(before);
    return isRunOpen(state) ? this.#sql.openRuns.iterate(before) : this.#sql.unsuccessfulRuns.iterate(state, before);
  }

  #taskRows({ runId, state, before = last }: TaskQuery): Iterable<SqlRow> {
    if (runId !== undefined) return this.#sql.tasksOf.iterate(`${runId}.`, before < `${runId}/` ? before : `${runId}/`);
    return state !== undefined && isOpen(state) ? this.#sql.openTasks.iterate(before) : this.#sql.tasks.iterate(before);
  }
}

function prepareStatements(db: Database) {
  const prepare = (sql: string): Statement => db.prepare(sql);
  return {
    newestRun: prepare(`SELECT ${runColumns} FROM run WHERE workflow = ? ORDER BY id DESC LIMIT 1`),
    openRunsOf: prepare(`SELECT ${runColumns} FROM run WHERE workflow = ? AND ended_at IS NULL AND id < ? ORDER BY id DESC LIMIT ?`),
    runByAlias: prepare(`SELECT ${runColumns} FROM run WHERE alias = ? ORDER BY id DESC LIMIT 1`),
    runsUnder: prepare(`SELECT ${runColumns} FROM run WHERE id > ? AND id < ? ORDER BY id LIMIT ?`),
    statesUnder: prepare("SELECT id, state FROM run WHERE id > ? AND id < ? ORDER BY id LIMIT ?"),
    child: prepare(`SELECT ${runColumns} FROM run WHERE parent_task_id = ? AND parent_attempt = ?`),
    openTasksAfter: prepare("SELECT id, state, lane FROM task INDEXED BY task_open WHERE ended_at IS NULL AND id > ? ORDER BY id LIMIT ?"),
    runs: prepare("SELECT id, state FROM run WHERE id < ? ORDER BY id DESC"),
    runsOf: prepare("SELECT id, state FROM run WHERE workflow = ? AND id < ? ORDER BY id DESC"),
    // Sorts the open runs, which are few beside those that ended. Left to itself SQLite would walk through all runs instead.
    openRuns: prepare("SELECT id, state FROM run INDEXED BY run_open WHERE ended_at IS NULL AND id < ? ORDER BY id DESC"),
    unsuccessfulRuns: prepare(
      "SELECT id, state FROM run WHERE state IN ('failed', 'cancelled', 'timed-out') AND state = ? AND id < ? ORDER BY id DESC",
    ),
    records: prepare(`SELECT ${taskColumns} FROM task WHERE id > ? AND id < ? ORDER BY id LIMIT ?`),
    tasks: prepare("SELECT id, state, lane FROM task WHERE id < ? ORDER BY id DESC"),
    tasksOf: prepare("SELECT id, state, lane FROM task WHERE id > ? AND id < ? ORDER BY id DESC"),
    openTasks: prepare("SELECT id, state, lane FROM task WHERE ended_at IS NULL AND id < ? ORDER BY id DESC"),
    attempts: prepare("SELECT * FROM attempt WHERE task_id = ? ORDER BY grant_count"),
    names: prepare(
      "SELECT name FROM definition WHERE version = 1 AND (? IS NULL OR dialect = ?) AND name NOT LIKE '.%' ORDER BY created_at, name LIMIT ? OFFSET ?",
    ),
  };
}

/** Walks rows until `limit` of them match, or enough were looked at. */
function scan(rows: Iterable<SqlRow>, limit: number, matches: (row: SqlRow) => boolean): { ids: string[]; next: string | null } {
  const ids: string[] = [];
  const wanted = limited(limit);
  let looked = 0;
  let previous: string | null = null;
  for (const row of rows) {
    // Only a row beyond the page tells that there is a next one.
    if (ids.length === wanted || looked === scanMax) return { ids, next: previous };
    looked++;
    previous = row.id as string;
    if (matches(row)) ids.push(previous);
  }
  return { ids, next: null };
}

function textOf({ input, output }: Run | Task): number {
  return input.length + (output?.length ?? 0);
}

function limited(limit: number): number {
  return Math.min(Math.max(0, Math.floor(limit)), pageMax);
}

function orUndefined<T>(row: SqlRow | undefined, of: (row: SqlRow) => T): T | undefined {
  return row === undefined ? undefined : of(row);
}

function attemptOf(row: SqlRow): AttemptView {
  return {
    attempt: row.attempt as number,
    grant: row.grant_count as number,
    holder: row.holder as string | null,
    error: row.error as string | null,
    queuedAt: row.queued_at as number,
    startedAt: row.started_at as number | null,
    endedAt: row.ended_at as number,
    closedBy: row.closed_by as Verb,
    fault: row.fault as Fault | null,
    ordinal: row.ordinal as number,
    deferrals: row.deferrals as number,
    attemptAt: row.attempt_at as number,
    dueAt: row.due_at as number,
    claimedAt: row.claimed_at as number | null,
    input: row.input as string | null,
    output: row.output as string | null,
  };
}

function currentAttempt(task: Task): AttemptView {
  const ended = task.endedAt !== null;
  return {
    attempt: task.attempt,
    grant: task.grant,
    holder: task.holder,
    error: ended ? task.error : null,
    queuedAt: task.queuedAt,
    startedAt: task.startedAt,
    endedAt: task.endedAt,
    closedBy: ended ? task.closedBy : null,
    fault: task.fault,
    ordinal: task.ordinal,
    deferrals: task.deferrals,
    attemptAt: task.attemptAt,
    dueAt: task.dueAt,
    claimedAt: task.claimedAt,
    input: task.input,
    output: task.output,
  };
}
