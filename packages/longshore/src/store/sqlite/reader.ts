// Reading on SQLite. Every list walks an index from the newest entry and looks at a bounded number of rows, so a rare filter costs
// several pages rather than a pause for all requests.

import { type Growth, type ListOptions, ListTexts } from "../../core/list-text.ts";
import type { LongBytes } from "../../core/long-bytes.ts";
import { wholeRow } from "../../core/slices/slices.ts";
import { isOpen, type TaskRow, type TaskRowHead } from "../../engine/board/task.ts";
import type { Definition } from "../../engine/run/dialect.ts";
import {
  type AttemptView,
  type CountsView,
  type Page,
  pageCharsMax,
  pageMax,
  type Reader,
  type RunQuery,
  type RunSearch,
  type TaskQuery,
} from "../../engine/run/reader.ts";
import { isRunOpen, type Run, type RunHead, type RunState } from "../../engine/run/run.ts";
import type { ReaderDeps } from "../../engine/store.ts";
import { runHeadOf, runOf } from "../../engine/tables/run.ts";
import { taskOf } from "../../engine/tables/task.ts";
import type { ReadTx } from "../../engine/tx.ts";
import { attemptOf, currentAttempt } from "./attempt-views.ts";
import type { Database, SqlRow } from "./driver.ts";
import { limited, matching, scan, scanMax } from "./index-scan.ts";
import { prepareStatements, type ReaderStatements } from "./reader-statements.ts";
import { type FoundRuns, searchRuns } from "./search.ts";

/** Entries of an index that are passed at the cost of one that is looked at. */
const passedPerRow = 16;
/** Whole rows that are read without a pause. */
const wholeRowsMax = 250;
/** Open runs that are sorted to list them: about a millisecond. */
const sortMax = 2_000;
/** Above every id in SQLite's byte order. */
const last = "\u{10ffff}";

export class SqliteReader implements Reader {
  readonly #db: Database;
  readonly #options: ReaderDeps;
  readonly #sql: ReaderStatements;
  readonly #lists: ListTexts;

  constructor(db: Database, options: ReaderDeps) {
    this.#db = db;
    this.#options = options;
    this.#lists = new ListTexts(options.slices);
    this.#sql = prepareStatements(db);
  }

  run(id: string): Promise<Run | undefined> {
    const { runs } = this.#options;
    return this.#options.read((tx) => runs.get(tx, id) ?? undefined);
  }

  /** One that is in memory has its texts, which are there once for all. */
  runHead(id: string): Promise<RunHead | undefined> {
    return Promise.resolve(this.#options.runs.kept(id) ?? orUndefined(this.#sql.runHead.get(id), runHeadOf));
  }

  async runs(query: RunQuery): Promise<Page<Run>> {
    return this.#page(await this.#runIds(query), (id) => this.run(id));
  }

  async runHeads(query: RunQuery): Promise<Page<RunHead>> {
    const { ids, next } = await this.#runIds(query);
    const items: RunHead[] = [];
    for await (const head of this.#eachHead(ids)) items.push(head);
    return { items, next };
  }

  async #runIds({ workflow, state, before = last, limit }: RunQuery): Promise<{ ids: string[]; next: string | null }> {
    await this.#options.slices.turn(state === undefined ? limited(limit) : scanMax);
    return scan(this.#runRows(workflow, state, before), limit, (row) => state === undefined || row.state === state);
  }

  search(search: RunSearch): Promise<FoundRuns> {
    return searchRuns(this.#db, this.#options.slices, search);
  }

  runsUnder(prefix: string): AsyncIterable<Run> {
    return this.#under(prefix, (ids) => this.#each(ids, (id) => this.run(id)));
  }

  headsUnder(prefix: string): AsyncIterable<RunHead> {
    return this.#under(prefix, (ids) => this.#eachHead(ids));
  }

  async *#under<T>(prefix: string, each: (ids: readonly string[]) => AsyncGenerator<T>): AsyncGenerator<T, void, void> {
    for (let after = prefix; ; ) {
      await this.#options.slices.turn(scanMax);
      const ids = this.#sql.statesUnder.all(after, `${prefix}${last}`, scanMax).map((row) => row.id as string);
      yield* each(ids);
      if (ids.length < scanMax) return;
      after = ids.at(-1) as string;
    }
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

  async openRuns(workflow: string, limit: number = pageMax): ReturnType<Reader["openRuns"]> {
    const heads: Awaited<ReturnType<Reader["openRuns"]>> = [];
    const read = (before: string, some: number) => this.#sql.openRunsOf.all(workflow, before, Math.min(some, limit - heads.length));
    await this.#walk(last, read, (row) => {
      heads.push({ id: row.id as string, createdAt: row.created_at as number, settings: row.settings as string | null });
    });
    return heads;
  }

  runByAlias(alias: string): Promise<Run | undefined> {
    return Promise.resolve(orUndefined(this.#sql.runByAlias.get(alias), runOf));
  }

  async *records(runId: string): AsyncGenerator<TaskRow, void, void> {
    const places: { id: string; node: number }[] = [];
    await this.#walk(
      `${runId}.`,
      (after, some) => this.#sql.nodes.all(after, `${runId}/`, some),
      (row) => places.push({ id: row.id as string, node: row.node as number }),
    );
    const ids = places.sort((a, b) => a.node - b.node).map(({ id }) => id);
    yield* this.#each(ids, (id) => this.task(id));
  }

  async heads(runId: string): Promise<TaskRowHead[]> {
    const { slices } = this.#options;
    const heads: TaskRowHead[] = [];
    for (let behind = `${runId}.`; ; ) {
      await slices.turn(wholeRowsMax * wholeRow);
      const page = await this.#options.read((tx) => this.#headsBehind(tx, { runId, behind }));
      heads.push(...page);
      if (page.length < wholeRowsMax) return heads.sort((a, b) => a.node - b.node);
      behind = page.at(-1)?.id as string;
    }
  }

  /** Most tasks of an open run are in memory. Where all of a page are, only their ids are read: that takes a tenth of the time. */
  #headsBehind(tx: ReadTx, { runId, behind }: { runId: string; behind: string }): TaskRowHead[] {
    const end = `${runId}/`;
    const stored = () => this.#sql.heads.all(behind, end, wholeRowsMax).map((row) => this.#headOf(tx, row));
    if (this.#options.runs.kept(runId) === undefined) return stored();
    const heads: TaskRowHead[] = [];
    for (const { id } of this.#sql.nodes.all(behind, end, wholeRowsMax)) {
      const kept = this.#options.tasks.kept(id as string);
      if (kept === undefined) return stored();
      heads.push(kept);
    }
    return heads;
  }

  task(id: string): Promise<TaskRow | undefined> {
    const { tasks } = this.#options;
    return this.#options.read((tx) => tasks.get(tx, id) ?? undefined);
  }

  taskHead(id: string): Promise<TaskRowHead | undefined> {
    const { tasks } = this.#options;
    return this.#options.read((tx) => tasks.kept(id) ?? orUndefined(this.#sql.head.get(id), (row) => this.#headOf(tx, row)));
  }

  async tasks(query: TaskQuery): Promise<Page<TaskRow>> {
    const { state, lane } = query;
    await this.#options.slices.turn(state === undefined && lane === undefined ? limited(query.limit) : scanMax);
    return this.#page(scan(this.#taskRows(query), query.limit, matching(query)), (id) => this.task(id));
  }

  async taskHeads(query: TaskQuery): Promise<Page<TaskRowHead>> {
    const { slices } = this.#options;
    await slices.turn(scanMax);
    const { ids, next } = scan(this.#taskRows(query), query.limit, matching(query));
    const items: TaskRowHead[] = [];
    for (const id of ids) {
      await slices.turn(wholeRow);
      const head = await this.taskHead(id);
      if (head !== undefined) items.push(withoutTexts(head));
    }
    return { items, next };
  }

  async attempts(taskId: string, charsMax = pageCharsMax): Promise<AttemptView[]> {
    const { slices } = this.#options;
    await slices.turn(wholeRow);
    const task = await this.task(taskId);
    if (task === undefined) return [];
    const newestFirst = [currentAttempt(task)];
    let chars = 0;
    for (let row = this.#sql.lastAttempt.get(taskId); row !== undefined; row = this.#attemptBefore(taskId, row, chars < charsMax)) {
      await slices.turn(wholeRow);
      const attempt = attemptOf(row);
      const size = (attempt.input?.length ?? 0) + (attempt.output?.length ?? 0) + (attempt.error?.length ?? 0);
      slices.spent(size);
      chars += size;
      newestFirst.push(attempt);
    }
    return newestFirst.reverse();
  }

  async lastError(taskId: string): Promise<string | null> {
    await this.#options.slices.turn(wholeRow);
    return (this.#sql.lastError.get(taskId)?.error as string | undefined) ?? null;
  }

  async definitions(page: { limit: number; offset?: number; dialect?: string }): Promise<Definition[]> {
    const { slices, definitions } = this.#options;
    const dialect = page.dialect ?? null;
    // Passing an entry costs a small part of what reading it does.
    await slices.turn(limited(page.limit) + Math.ceil((page.offset ?? 0) / passedPerRow));
    const found: Definition[] = [];
    for (const row of this.#sql.names.all(dialect, dialect, limited(page.limit), page.offset ?? 0)) {
      await slices.turn(wholeRow);
      const newest = await this.#options.read((tx) => definitions.newest(tx, row.name as string));
      if (newest === null) continue;
      slices.spent(newest.source.length);
      found.push(newest);
    }
    return found;
  }

  definition(name: string): Promise<Definition | undefined> {
    return this.#options.read((tx) => this.#options.definitions.newest(tx, name) ?? undefined);
  }

  definitionById(id: string): Promise<Definition | undefined> {
    return this.#options.read((tx) => this.#options.definitions.byId(tx, id) ?? undefined);
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

  listText(items: () => AsyncIterable<string> | Iterable<string>, options?: ListOptions): Promise<string> {
    return this.#lists.of(items, options);
  }

  longBody(make: (growth: Growth) => Promise<readonly string[]>): Promise<string | LongBytes> {
    return this.#lists.body(make);
  }

  turn(rows: number): Promise<void> {
    return this.#options.slices.turn(rows * wholeRow);
  }

  async #page<T extends Run | TaskRow>(
    found: { ids: string[]; next: string | null },
    load: (id: string) => Promise<T | undefined>,
  ): Promise<Page<T>> {
    const { slices } = this.#options;
    const items: T[] = [];
    let chars = 0;
    for (const id of found.ids) {
      await slices.turn(wholeRow);
      const item = await load(id);
      if (item === undefined) continue;
      const size = textOf(item);
      slices.spent(size);
      items.push(item);
      chars += size;
      if (chars >= pageCharsMax && id !== found.ids.at(-1)) return { items, next: id };
    }
    return { items, next: found.next };
  }

  /** Whole rows one by one: none is in memory that its reader has not taken. */
  async *#each<T extends Run | TaskRow>(
    ids: readonly string[],
    load: (id: string) => Promise<T | undefined>,
  ): AsyncGenerator<T, void, void> {
    const { slices } = this.#options;
    for (const id of ids) {
      await slices.turn(wholeRow);
      const item = await load(id);
      if (item === undefined) continue;
      slices.spent(textOf(item));
      yield item;
    }
  }

  async *#eachHead(ids: readonly string[]): AsyncGenerator<RunHead, void, void> {
    for (const id of ids) {
      await this.#options.slices.turn(wholeRow);
      const head = await this.runHead(id);
      if (head !== undefined) yield head;
    }
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

  /** A hold may have been renewed in memory since its row was written. */
  #headOf(tx: ReadTx, row: SqlRow): TaskRowHead {
    const stored = taskOf(row);
    return this.#options.tasks.newest(tx, stored.id, stored) ?? stored;
  }

  #attemptBefore(taskId: string, { grant_count, attempt }: SqlRow, withTexts: boolean): SqlRow | undefined {
    const before = withTexts ? this.#sql.attemptBefore : this.#sql.attemptHeadBefore;
    return before.get(taskId, grant_count as number, attempt as number);
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

/** A task that is in memory has its texts, which a list of heads would hold. */
function withoutTexts(head: TaskRowHead): TaskRowHead {
  const { input: _input, output: _output, ...rest } = head as TaskRow;
  return rest;
}

/** Characters of what callers and data decide the size of. */
function textOf(item: Run | TaskRow): number {
  const more = "variables" in item ? (item.variables?.length ?? 0) + (item.settings?.length ?? 0) + (item.backlog?.length ?? 0) : 0;
  return item.input.length + (item.output?.length ?? 0) + (item.error?.length ?? 0) + more;
}

function orUndefined<T>(row: SqlRow | undefined, of: (row: SqlRow) => T): T | undefined {
  return row === undefined ? undefined : of(row);
}
