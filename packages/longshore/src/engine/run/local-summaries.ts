// Reads pages of run summaries from rows.

import type { Clock } from "../../core/clock.ts";
import { idBound } from "../../core/ids.ts";
import type { Json } from "../../core/json/json.ts";
import { parseExact } from "../../core/json/json-exact.ts";
import { inTurns } from "../../core/slices/slice-work.ts";
import { turnRows, wholeRow } from "../../core/slices/slices.ts";
import { wholeHead } from "../../core/text.ts";
import { hasTextInSlices } from "../../core/text-search.ts";
import { isOpen, type TaskRow, type TaskRowHead } from "../board/task.ts";
import { readAll, type TableRows, type TableSpec } from "../rows.ts";
import type { ReadDeps } from "../sliced-reads.ts";
import { definitionHeadTable } from "../tables/definition.ts";
import { gateTable } from "../tables/gate.ts";
import { runsInAll, scanOpen } from "../tables/reader-tables.ts";
import { taskHeadTable } from "../tables/task.ts";
import type { ReadTx } from "../tx.ts";
import type { DefinitionHead } from "./catalogue.ts";
import type { Gate } from "./gate.ts";
import { limited, scanMax } from "./list-page.ts";
import { byId, byParent, type Walk, walkRuns } from "./local-walk.ts";
import type { RunState } from "./run.ts";
import {
  type Bounds,
  firstErrorMax,
  hasValue,
  type RunFilter,
  type RunSummaries,
  type RunSummary,
  type SummaryPage,
  type SummaryQuery,
  valueCharsMax,
} from "./run-summary.ts";

/** How many runs one page visits: some tens of milliseconds, in slices. */
const lookedMax = 5 * scanMax;
/** How many bytes of texts one page reads. The run that exceeds them is the last. */
const pageBytesMax = 32 * 1_048_576;
/** How many open tasks of a run are visited to find out why the run waits. For a durable function, these are its driver and some steps. */
const openTasksMax = 5;
/** A text of this length is parsed in a separate turn of the event loop. */
const longChars = 16_384;

export interface LocalSummariesDeps extends ReadDeps {
  readonly clock: Clock;
  /** Returns the newest version of a task in memory; null when it was removed. */
  readonly tasks: { newest(tx: ReadTx, id: string, stored: TaskRow): TaskRow | null };
  readonly counts: {
    readonly openRuns: number;
    /** The number of stored runs; null where it is not known. */
    stored(): Promise<number | null>;
  };
}

export class LocalSummaries implements RunSummaries {
  readonly #deps: LocalSummariesDeps;
  readonly #rows: TableRows<RunRow>;
  readonly #withTexts: TableRows<RunRow>;
  readonly #definitions: TableRows<DefinitionHead>;
  readonly #taskHeads: TableRows<TaskRow>;
  readonly #gates: TableRows<Gate>;

  constructor(deps: LocalSummariesDeps) {
    this.#deps = deps;
    this.#rows = deps.store.table(rowTable);
    this.#withTexts = deps.store.table(rowTextTable);
    this.#definitions = deps.store.table(definitionHeadTable);
    this.#taskHeads = deps.store.table(taskHeadTable);
    this.#gates = deps.store.table(gateTable);
  }

  async page(query: SummaryQuery): Promise<SummaryPage> {
    const { clock, counts, read } = this.#deps;
    const limit = limited(query.limit);
    const rows = query.text === undefined && query.values === undefined ? this.#rows : this.#withTexts;
    const matches = matching(query, clock.now());
    const items: RunSummary[] = [];
    let looked = 0;
    let bytes = 0;
    let cursor: string | null = null;
    const done = async (next: string | null): Promise<SummaryPage> => ({ items, next, looked, of: await counts.stored() });
    for await (const slice of walkRuns(this.#deps, walkOf(query, counts.openRuns))) {
      // Checked before each slice, and not after it: only a run beyond the page shows that there is a next page.
      if (looked >= lookedMax || bytes >= pageBytesMax) return done(cursor);
      bytes += slice.bytes;
      const found = await read((tx) => readAll(slice.ids, (id) => rows.get(tx, id)));
      const definitions = await this.#definitionsOf(found);
      for (const [at, row] of found.entries()) {
        if (items.length === limit) return done(cursor);
        looked++;
        cursor = slice.cursors[at] as string;
        // The run may have been removed since.
        if (row === null) continue;
        const definition = definitions.get(row.definitionId);
        if (!matches(row, definition) || !(await this.#hasTexts(row, query))) continue;
        items.push(summaryOf(row, definition));
      }
    }
    return done(null);
  }

  async openTasks(runId: string): Promise<TaskRowHead[]> {
    const { slices, read, tasks } = this.#deps;
    await slices.turn(openTasksMax * wholeRow);
    const ofRun = { above: [`${runId}.`], below: [`${runId}/`], limit: openTasksMax };
    return read((tx) =>
      [...scanOpen(tx, this.#taskHeads, ofRun, ({ id }) => id)]
        .flatMap((stored) => tasks.newest(tx, stored.id, stored) ?? [])
        .filter(({ state }) => isOpen(state)),
    );
  }

  gate(name: string): Promise<Gate | null> {
    return this.#deps.read((tx) => this.#gates.get(tx, name));
  }

  async #definitionsOf(found: readonly (RunRow | null)[]): Promise<Map<string, DefinitionHead>> {
    const ids = [...new Set(found.flatMap((row) => row?.definitionId ?? []))];
    const heads = await this.#deps.read((tx) => readAll(ids, (id) => this.#definitions.get(tx, id)));
    return new Map(heads.flatMap((head) => (head === null ? [] : [[head.id, head] as const])));
  }

  async #hasTexts(row: RunRow, { text, error, values = [] }: RunFilter): Promise<boolean> {
    if (error !== undefined && !(await this.#has(row.error, error))) return false;
    if (text !== undefined && !(await this.#hasAnywhere(row, text))) return false;
    for (const of of ["input", "output"] as const) {
      const filters = values.filter((filter) => filter.of === of);
      if (filters.length === 0) continue;
      const value = await this.#parsed(row[of]);
      if (value === undefined || !filters.every((filter) => hasValue(value, filter))) return false;
    }
    return true;
  }

  async #hasAnywhere({ id, workflow, alias, input, output, error }: RunRow, text: string): Promise<boolean> {
    for (const value of [id, workflow, alias, error, input, output]) if (await this.#has(value, text)) return true;
    return false;
  }

  async #has(value: string | null, text: string): Promise<boolean> {
    return value !== null && inTurns(hasTextInSlices(value, text), this.#deps.slices);
  }

  async #parsed(text: string | null): Promise<Json | undefined> {
    if (text === null || text.length > valueCharsMax) return undefined;
    if (text.length > longChars) await this.#deps.slices.turn(turnRows);
    return parseExact(text) as Json;
  }
}

function walkOf(query: SummaryQuery, openRuns: number): Walk {
  const { parent, alias, before, created = {}, limit } = query;
  const isFiltered = Object.entries(query).some(([name, value]) => !unfiltered.has(name) && value !== undefined);
  const few = isFiltered ? undefined : limited(limit) + 1;
  const searched = query.text !== undefined || query.values !== undefined;
  if (parent !== undefined) {
    const children = { by: ["parent_task_id", "parent_attempt"], having: "parent_task_id", index: "run_parent" };
    return { order: byParent, scans: [{ ...children, above: [`${parent}.`], below: [`${parent}/`] }], before, few, searched };
  }
  // Ids begin with the time at which they were made.
  const above = created.after === undefined ? undefined : [idBound(created.after)];
  const below = created.before === undefined ? undefined : idBound(created.before);
  const scans = alias === undefined ? runsInAll(query, openRuns) : [{ by: ["alias", "id"], equal: [alias] }];
  const from = below === undefined || (before !== undefined && before < below) ? before : below;
  return { order: byId, scans: scans.map((scan) => ({ ...scan, above })), before: from, few, searched };
}

/** Filters that an index answers by itself, at least in most cases. */
const unfiltered: ReadonlySet<string> = new Set(["limit", "before", "parent", "alias"]);

/** A run while the filters are checked. */
interface RunRow extends Omit<RunSummary, "version" | "dialect" | "firstError"> {
  readonly error: string | null;
  /** Null when the texts are not read. */
  readonly input: string | null;
  readonly output: string | null;
}

function runRows(texts: readonly string[]): TableSpec<RunRow> {
  const columns = [
    ...["id", "workflow", "definition_id", "state", "error", "created_at", "start_at", "ended_at", "recorded_count", "left_count"],
    ...["failed_count", "retries", "priority", "gate", "turn", "alias", "parent_task_id", "parent_attempt"],
  ];
  return {
    ...{ name: "run", key: ["id"] },
    columns: [...columns, ...texts].map((column) => [column, () => null] as const),
    of: (row) => ({
      id: row.id as string,
      workflow: row.workflow as string,
      definitionId: row.definition_id as string,
      state: row.state as RunState,
      error: row.error as string | null,
      createdAt: row.created_at as number,
      startAt: row.start_at as number | null,
      gate: row.turn === null ? null : (row.gate as string),
      endedAt: row.ended_at as number | null,
      steps: row.recorded_count as number,
      left: row.left_count as number,
      failed: row.failed_count as number,
      retries: row.retries as number,
      priority: row.priority as number,
      alias: row.alias as string | null,
      parentTaskId: row.parent_task_id as string | null,
      parentAttempt: row.parent_attempt as number,
      input: (row.input ?? null) as string | null,
      output: (row.output ?? null) as string | null,
    }),
  };
}

const rowTable = runRows([]);
const rowTextTable = runRows(["input", "output"]);

function matching(
  { states, workflows, dialects, alias, created, ended, minMs }: RunFilter,
  now: number,
): (run: RunRow, definition: DefinitionHead | undefined) => boolean {
  const [isState, isWorkflow, isDialect] = [oneOf<string>(states), oneOf(workflows), oneOf(dialects)];
  const [isCreated, isEnded] = [within(created), within(ended)];
  return (run, definition) =>
    isState(run.state) &&
    isWorkflow(run.workflow) &&
    isDialect(definition?.dialect) &&
    (alias === undefined || run.alias === alias) &&
    isCreated(run.createdAt) &&
    isEnded(run.endedAt) &&
    (minMs === undefined || (run.endedAt ?? now) - run.createdAt >= minMs);
}

function oneOf<T>(wanted: readonly T[] | undefined): (value: T | undefined) => boolean {
  if (wanted === undefined) return () => true;
  const set = new Set<T | undefined>(wanted);
  return (value) => value !== undefined && set.has(value);
}

function within({ after, before }: Bounds = {}): (at: number | null) => boolean {
  if (after === undefined && before === undefined) return () => true;
  return (at) => at !== null && (after === undefined || at > after) && (before === undefined || at < before);
}

function summaryOf({ error, input: _input, output: _output, ...run }: RunRow, definition: DefinitionHead | undefined): RunSummary {
  return {
    ...run,
    version: definition?.version ?? null,
    dialect: definition?.dialect ?? null,
    firstError: error === null ? null : wholeHead(error, firstErrorMax),
  };
}
