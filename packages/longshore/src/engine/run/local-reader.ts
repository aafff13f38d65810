// Reads rows for display. A page of a list visits a bounded number of rows, in the order of an index. So a list with a rare filter has
// several pages with few rows, and does not make other requests wait.

import { type Growth, type ListOptions, ListTexts } from "../../core/list-text.ts";
import type { LongBytes } from "../../core/long-bytes.ts";
import { wholeRead, wholeRow } from "../../core/slices/slices.ts";
import type { Lanes } from "../board/lanes.ts";
import { isOpen, type TaskRow, type TaskRowHead } from "../board/task.ts";
import { lastText, type Scan } from "../rows.ts";
import { allRows, firstRow, pagesById, type ReadDeps } from "../sliced-reads.ts";
import { openTasks, type ReaderTables, readerTables, runsIn, scanOpen } from "../tables/reader-tables.ts";
import type { TaskPlace } from "../tables/task.ts";
import type { ReadTx } from "../tx.ts";
import { type PlannedDefinitions, planned } from "./definitions.ts";
import type { Definition } from "./dialect.ts";
import { limited, listPage, matching, rowsOfPage, scanMax, textOf, withoutTexts } from "./list-page.ts";
import { attemptsOf, lastErrorOf } from "./local-attempts.ts";
import { namesInOrder } from "./local-names.ts";
import { type FoundRuns, searchRuns } from "./local-search.ts";
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
} from "./reader.ts";
import type { Run, RunHead, RunState } from "./run.ts";

/** Whole rows that are read without a pause. */
const wholeRowsMax = 250;

/** Rows in memory. They include changes that are not yet written to the tables. */
interface MemoryRows<R> {
  get(tx: ReadTx, key: string): R | null;
  /** Returns the newest version in memory of a row that was read from its table; null when it was removed. */
  newest(tx: ReadTx, key: string, stored: R): R | null;
  /** Undefined when the row is not in memory. */
  kept(key: string): R | undefined;
}

export interface LocalReaderDeps extends ReadDeps {
  readonly tasks: MemoryRows<TaskRow>;
  readonly runs: Pick<MemoryRows<Run>, "get" | "kept">;
  readonly definitions: PlannedDefinitions & { newest(tx: ReadTx, name: string): Definition | null };
  readonly lanes: Pick<Lanes, "all">;
  readonly counts: CountsView & { counted(): Promise<void> };
}

export class LocalReader implements Reader {
  readonly #options: LocalReaderDeps;
  readonly #tables: ReaderTables;
  readonly #lists: ListTexts;

  constructor(options: LocalReaderDeps) {
    this.#options = options;
    this.#lists = new ListTexts(options.slices);
    this.#tables = readerTables(options.store);
  }

  run(id: string): Promise<Run | undefined> {
    const { runs } = this.#options;
    return this.#whole((tx) => runs.get(tx, id) ?? undefined);
  }

  /** A run in memory is returned with its texts, which are not copied. */
  runHead(id: string): Promise<RunHead | undefined> {
    const { runs, read } = this.#options;
    return read((tx) => runs.kept(id) ?? this.#tables.runHeads.get(tx, id) ?? undefined);
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

  async #runIds({ workflow, state, before = lastText, limit }: RunQuery): Promise<{ ids: string[]; next: string | null }> {
    await this.#options.slices.turn(state === undefined ? limited(limit) : scanMax);
    const index = runsIn(workflow, state, this.#options.counts.openRuns);
    const scan: Scan = { ...index, below: [before], backwards: true, limit: rowsOfPage(limit, state !== undefined) };
    const matches = (row: { readonly state: RunState }) => state === undefined || row.state === state;
    return this.#options.read((tx) => listPage(this.#tables.runStates.scan(tx, scan), limit, matches));
  }

  search(search: RunSearch): Promise<FoundRuns> {
    return searchRuns(this.#options, search);
  }

  runsUnder(prefix: string): AsyncIterable<Run> {
    return this.#under(prefix, (ids) => this.#each(ids, (id) => this.run(id)));
  }

  headsUnder(prefix: string): AsyncIterable<RunHead> {
    return this.#under(prefix, (ids) => this.#eachHead(ids));
  }

  async *#under<T>(prefix: string, each: (ids: readonly string[]) => AsyncGenerator<T>): AsyncGenerator<T, void, void> {
    const under: Scan = { by: ["id"], below: [`${prefix}${lastText}`] };
    for await (const rows of pagesById(this.#options, this.#tables.runStates, under, prefix)) yield* each(rows.map(({ id }) => id));
  }

  async statesUnder(prefix: string): Promise<Map<RunState, number>> {
    const states = new Map<RunState, number>();
    const under: Scan = { by: ["id"], below: [`${prefix}${lastText}`] };
    for await (const rows of pagesById(this.#options, this.#tables.runStates, under, prefix))
      for (const { state } of rows) states.set(state, (states.get(state) ?? 0) + 1);
    return states;
  }

  childOf(taskId: string, attempt: number): Promise<Run | undefined> {
    return firstRow(this.#options, this.#tables.runs, { by: ["parent_task_id", "parent_attempt"], equal: [taskId, attempt] });
  }

  childHeadOf(taskId: string, attempt: number): Promise<RunHead | undefined> {
    return firstRow(this.#options, this.#tables.runHeads, { by: ["parent_task_id", "parent_attempt"], equal: [taskId, attempt] });
  }

  newestRun(workflow: string): Promise<Run | undefined> {
    return firstRow(this.#options, this.#tables.runs, { by: ["workflow", "id"], equal: [workflow], backwards: true });
  }

  async openRuns(workflow: string, limit: number = pageMax): ReturnType<Reader["openRuns"]> {
    const heads: Awaited<ReturnType<Reader["openRuns"]>> = [];
    for (let before = lastText; heads.length < limit; ) {
      await this.#options.slices.turn(scanMax);
      const some = Math.min(scanMax, limit - heads.length);
      const open: Scan = { by: ["workflow", "id"], equal: [workflow], without: "ended_at", below: [before], backwards: true, limit: some };
      const rows = await allRows(this.#options, this.#tables.runHeads, open);
      for (const { id, createdAt, settings } of rows) heads.push({ id, createdAt, settings });
      if (rows.length < some) break;
      before = rows.at(-1)?.id as string;
    }
    return heads;
  }

  runByAlias(alias: string): Promise<Run | undefined> {
    return firstRow(this.#options, this.#tables.runs, { by: ["alias", "id"], equal: [alias], backwards: true });
  }

  async *records(runId: string): AsyncGenerator<TaskRow, void, void> {
    const places: { id: string; node: number }[] = [];
    const ofRun: Scan = { by: ["id"], below: [`${runId}/`] };
    for await (const rows of pagesById(this.#options, this.#tables.taskPlaces, ofRun, `${runId}.`))
      for (const { id, node } of rows) places.push({ id, node });
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

  /** Most tasks of an open run are in memory. When all tasks of a page are, only their ids are read: that takes a tenth of the time. */
  #headsBehind(tx: ReadTx, { runId, behind }: { runId: string; behind: string }): TaskRowHead[] {
    const scan: Scan = { by: ["id"], above: [behind], below: [`${runId}/`], limit: wholeRowsMax };
    const stored = () => Array.from(this.#tables.taskHeads.scan(tx, scan), (task) => this.#newest(tx, task));
    if (this.#options.runs.kept(runId) === undefined) return stored();
    const heads: TaskRowHead[] = [];
    for (const { id } of this.#tables.taskPlaces.scan(tx, scan)) {
      const kept = this.#options.tasks.kept(id);
      if (kept === undefined) return stored();
      heads.push(kept);
    }
    return heads;
  }

  task(id: string): Promise<TaskRow | undefined> {
    const { tasks } = this.#options;
    return this.#whole((tx) => tasks.get(tx, id) ?? undefined);
  }

  taskHead(id: string): Promise<TaskRowHead | undefined> {
    const { tasks } = this.#options;
    return this.#options.read((tx) => {
      const kept = tasks.kept(id);
      if (kept !== undefined) return kept;
      const stored = this.#tables.taskHeads.get(tx, id);
      return stored === null ? undefined : this.#newest(tx, stored);
    });
  }

  async tasks(query: TaskQuery): Promise<Page<TaskRow>> {
    const { state, lane } = query;
    await this.#options.slices.turn(state === undefined && lane === undefined ? limited(query.limit) : scanMax);
    return this.#page(await this.#taskPage(query), (id) => this.task(id));
  }

  async taskHeads(query: TaskQuery): Promise<Page<TaskRowHead>> {
    const { slices } = this.#options;
    await slices.turn(scanMax);
    const { ids, next } = await this.#taskPage(query);
    const items: TaskRowHead[] = [];
    for (const id of ids) {
      await slices.turn(wholeRow);
      const head = await this.taskHead(id);
      if (head !== undefined) items.push(withoutTexts(head));
    }
    return { items, next };
  }

  async attempts(taskId: string, charsMax = pageCharsMax): Promise<AttemptView[]> {
    const task = charsMax > 0 ? await this.task(taskId) : await this.taskHead(taskId);
    return task === undefined ? [] : attemptsOf(this.#options, this.#tables, task, charsMax);
  }

  lastError(taskId: string): Promise<string | null> {
    return lastErrorOf(this.#options, this.#tables, taskId);
  }

  async definitions(page: { limit: number; offset?: number; dialect?: string }): Promise<Definition[]> {
    const { slices, definitions } = this.#options;
    const found: Definition[] = [];
    for await (const name of namesInOrder(this.#options, this.#tables.names, page)) {
      await slices.turn(wholeRow);
      const newest = await this.#options.read((tx) => definitions.newest(tx, name));
      if (newest === null) continue;
      slices.spent(newest.source.length);
      found.push(newest);
    }
    return found;
  }

  definition(name: string): Promise<Definition | undefined> {
    const { read, definitions } = this.#options;
    return read((tx) => planned(definitions, definitions.newest(tx, name)));
  }

  definitionById(id: string): Promise<Definition | undefined> {
    const { read, definitions } = this.#options;
    return read((tx) => planned(definitions, definitions.byId(tx, id)));
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
    for await (const rows of pagesById(this.#options, this.#tables.taskPlaces, openTasks, ""))
      for (const { state, lane } of rows) if (state === "queued" && lane !== null) queued.set(lane, (queued.get(lane) ?? 0) + 1);
    return queued;
  }

  async counts(): Promise<CountsView> {
    const { counts } = this.#options;
    await counts.counted();
    return { openRuns: counts.openRuns, endedRuns: counts.endedRuns, endedTasks: counts.endedTasks };
  }

  listBody(items: () => AsyncIterable<string> | Iterable<string>, options?: ListOptions): Promise<string | LongBytes> {
    return this.#lists.of(items, options);
  }

  longBody(make: (growth: Growth) => Promise<readonly string[]>): Promise<string | LongBytes> {
    return this.#lists.body(make);
  }

  turn(rows: number): Promise<void> {
    return this.#options.slices.turn(rows * wholeRow);
  }

  /** Reads one whole row. After a row of megabytes, the next row is read in another turn of the event loop, even for another caller. */
  async #whole<T extends Run | TaskRow>(load: (tx: ReadTx) => T | undefined): Promise<T | undefined> {
    const { slices, read } = this.#options;
    do await slices.turn(wholeRead);
    while (slices.isOver);
    return read((tx) => {
      const row = load(tx);
      if (row !== undefined) slices.spent(textOf(row));
      return row;
    });
  }

  async #page<T extends Run | TaskRow>(
    found: { ids: string[]; next: string | null },
    load: (id: string) => Promise<T | undefined>,
  ): Promise<Page<T>> {
    const items: T[] = [];
    let chars = 0;
    for (const id of found.ids) {
      const item = await load(id);
      if (item === undefined) continue;
      items.push(item);
      chars += textOf(item);
      if (chars >= pageCharsMax && id !== found.ids.at(-1)) return { items, next: id };
    }
    return { items, next: found.next };
  }

  /** Reads whole rows one by one, so that memory holds no row that the caller has not requested. */
  async *#each<T extends Run | TaskRow>(
    ids: readonly string[],
    load: (id: string) => Promise<T | undefined>,
  ): AsyncGenerator<T, void, void> {
    for (const id of ids) {
      const item = await load(id);
      if (item !== undefined) yield item;
    }
  }

  async *#eachHead(ids: readonly string[]): AsyncGenerator<RunHead, void, void> {
    for (const id of ids) {
      await this.#options.slices.turn(wholeRow);
      const head = await this.runHead(id);
      if (head !== undefined) yield head;
    }
  }

  /** A hold may have been renewed in memory since its row was written. */
  #newest(tx: ReadTx, stored: TaskRow): TaskRowHead {
    return this.#options.tasks.newest(tx, stored.id, stored) ?? stored;
  }

  #taskPage(query: TaskQuery): Promise<{ ids: string[]; next: string | null }> {
    const { runId, state, lane, before = lastText, limit } = query;
    const end = `${runId}/`;
    const isOfRun = runId !== undefined;
    const bounds = isOfRun ? { above: [`${runId}.`], below: [before < end ? before : end] } : { below: [before] };
    const some = { ...bounds, backwards: true, limit: rowsOfPage(limit, state !== undefined || lane !== undefined) };
    const { taskPlaces } = this.#tables;
    return this.#options.read((tx) => {
      const isOpenList = !isOfRun && state !== undefined && isOpen(state);
      const rows = !isOpenList
        ? taskPlaces.scan(tx, { by: ["id"], ...some })
        : state === "queued" && lane === undefined
          ? scanOpen(tx, taskPlaces, some, ({ id }) => id)
          : taskPlaces.scan(tx, { ...openTasks, ...some });
      return listPage<TaskPlace>(rows, limit, matching(query));
    });
  }
}
