// Searching runs on SQLite: a query is put together from its filters, every value bound. It walks the runs from the newest in slices, so
// that other requests are served meanwhile, and looks at a bounded number of them.
//
// A row is as long as the texts in it, and even a column behind them is read through them. So the lengths are read first, which are at the
// beginning of a row, and a slice is limited in bytes as well as in rows.

import { inTurns } from "../../core/slices/slice-work.ts";
import { type Slices, wholeRow } from "../../core/slices/slices.ts";
import { sortInSlices } from "../../core/slices/sort-slices.ts";
import { hasTextInSlices } from "../../core/text-search.ts";
import { type RunSearch, searchMax } from "../../engine/run/reader.ts";
import type { Run, RunHead } from "../../engine/run/run.ts";
import { runColumns, runHeadColumns, runHeadOf, runOf } from "../../engine/tables/run.ts";
import type { Database, SqlRow } from "./driver.ts";

type Value = string | number;

/** A run that was found, with what it may be put in order by. */
interface Hit {
  readonly id: string;
  readonly key: Value | null;
}

const orders = { ended: "ended_at", workflow: "workflow", state: "state" } as const;
/** Lengths that are read at once. */
const lengthsMax = 1_000;
/** Rows and bytes that one statement looks into. */
const rowsMax = 200;
const bytesMax = 1_048_576;
/** Above every id in SQLite's byte order. */
const last = "\u{10ffff}";

export interface FoundRuns {
  total: number;
  runs: AsyncIterable<Run>;
  heads: AsyncIterable<RunHead>;
}

export async function searchRuns(db: Database, slices: Slices, search: RunSearch): Promise<FoundRuns> {
  const { by, down } = search.order ?? { by: "created", down: true };
  const hits: Hit[] = [];
  const look = looking(db, slices, search, by === "created" ? "NULL" : orders[by]);
  for await (const ids of idsInSlices(db, slices, search)) for await (const hit of look(ids)) hits.push(hit);
  const ordered = await inOrder(hits, slices, by !== "created", down);
  const wanted = ordered.slice(search.offset, search.offset + search.limit);
  return {
    total: hits.length,
    runs: { [Symbol.asyncIterator]: () => loaded(db, slices, wanted) },
    heads: { [Symbol.asyncIterator]: () => loadedHeads(db, slices, wanted) },
  };
}

/** Ids that are stored side by side in the file, newest first; each list is a slice that may be read now. */
async function* idsInSlices(db: Database, slices: Slices, search: RunSearch): AsyncGenerator<string[]> {
  const walk = walkOf(db, search);
  let before = last;
  for (let looked = 0; looked < searchMax; ) {
    await slices.turn(lengthsMax);
    const rows = walk(before);
    looked += rows.length;
    for (const slice of slicesOf(rows)) {
      await slices.turn(slice.cost);
      yield slice.ids;
    }
    if (rows.length < lengthsMax) return;
    before = rows.at(-1)?.id as string;
  }
}

/** The index that comes nearest to the question. */
function walkOf(db: Database, { ids, workflows, aliases }: RunSearch): (before: string) => SqlRow[] {
  const bytes = "octet_length(input) + ifnull(octet_length(output), 0) + ifnull(octet_length(error), 0) AS bytes";
  const walk = (where: string, ...values: Value[]) => {
    const rows = db.prepare(`SELECT id, ${bytes} FROM run WHERE ${where} id < ? ORDER BY id DESC LIMIT ${lengthsMax}`);
    return (before: string) => rows.all(...values, before);
  };
  if (ids !== undefined) return walk("id IN (SELECT value FROM json_each(?)) AND", JSON.stringify(ids));
  if (aliases?.length === 1) return walk("alias = ? AND", aliases[0] as string);
  return workflows?.length === 1 ? walk("workflow = ? AND", workflows[0] as string) : walk("");
}

function* slicesOf(rows: readonly SqlRow[]): Iterable<{ ids: string[]; cost: number }> {
  let ids: string[] = [];
  let bytes = 0;
  for (const row of rows) {
    const more = row.bytes as number;
    if (ids.length === rowsMax || (ids.length > 0 && bytes + more > bytesMax)) {
      yield { ids, cost: costOf(ids.length, bytes) };
      ids = [];
      bytes = 0;
    }
    ids.push(row.id as string);
    bytes += more;
  }
  if (ids.length > 0) yield { ids, cost: costOf(ids.length, bytes) };
}

function costOf(rows: number, bytes: number): number {
  return rows * wholeRow + Math.floor(bytes / 1_024);
}

/** Reports which of some runs are looked for. */
function looking(
  db: Database,
  slices: Slices,
  search: RunSearch,
  key: string,
): (ids: readonly string[]) => AsyncGenerator<Hit, void, void> {
  const { condition, values } = conditionOf(search);
  const { text } = search;
  const among = "id IN (SELECT value FROM json_each(?))";
  const columns = ["id", `${key} AS key`, ...(text === undefined ? [] : searched.map((name) => `${name} AS in_${name}`))];
  const rows = db.prepare(`SELECT ${columns.join(", ")} FROM run WHERE ${[among, ...condition].join(" AND ")} ORDER BY id DESC`);
  return async function* (ids) {
    for (const row of rows.all(JSON.stringify(ids), ...values)) {
      if (text === undefined || (await hasAnywhere(row, text, slices))) yield { id: row.id as string, key: row.key as Value | null };
    }
  };
}

/** What a text is looked for in. Not by LIKE, which compares all of a long text at every place: some minutes for one run. */
const searched = ["id", "workflow", "alias", "input", "output", "error"] as const;

async function hasAnywhere(row: SqlRow, text: string, slices: Slices): Promise<boolean> {
  for (const name of searched) {
    const value = row[`in_${name}`] as string | null;
    if (value !== null && (await inTurns(hasTextInSlices(value, text), slices))) return true;
  }
  return false;
}

function conditionOf(search: RunSearch): { condition: string[]; values: Value[] } {
  const condition: string[] = [];
  const values: Value[] = [];
  const where = (sql: string, ...bound: Value[]) => {
    condition.push(sql);
    values.push(...bound);
  };
  const oneOf = (column: string, wanted: readonly string[] | undefined) => {
    if (wanted !== undefined) where(`${column} IN (SELECT value FROM json_each(?))`, JSON.stringify(wanted));
  };
  oneOf("workflow", search.workflows);
  oneOf("state", search.states);
  oneOf("alias", search.aliases);
  // Not the character 0 between them below: a comparison ends at it.
  for (const column of ["id", "workflow", "alias"] as const) {
    const pattern = search.like?.[column];
    if (pattern !== undefined) where(`${column} LIKE ? ESCAPE '\\'`, escaped(pattern).replaceAll("*", "%"));
  }
  if (search.created?.after !== undefined) where("created_at > ?", search.created.after);
  if (search.created?.before !== undefined) where("created_at < ?", search.created.before);
  if (search.ended?.after !== undefined) where("ended_at > ?", search.ended.after);
  if (search.ended?.before !== undefined) where("ended_at < ?", search.ended.before);
  return { condition, values };
}

/** Hits are newest first. Ids rise with time, so the order of creation is there already, one way or the other. */
async function inOrder(hits: Hit[], slices: Slices, byKey: boolean, down: boolean): Promise<Hit[]> {
  const ordered = byKey ? await sortInSlices(hits, down ? (a, b) => compare(b, a) : compare, slices) : hits;
  return byKey || down ? ordered : ordered.reverse();
}

/** As SQLite does: what is absent comes first, then by the id. */
function compare(a: Hit, b: Hit): number {
  if (a.key !== b.key) {
    if (a.key === null) return -1;
    return b.key === null || a.key > b.key ? 1 : -1;
  }
  return a.id < b.id ? -1 : 1;
}

/** One by one: all of them together may have gigabytes. */
async function* loaded(db: Database, slices: Slices, hits: readonly Hit[]): AsyncGenerator<Run, void, void> {
  const byId = db.prepare(`SELECT ${runColumns} FROM run WHERE id = ?`);
  for (const { id } of hits) {
    await slices.turn(wholeRow);
    const row = byId.get(id);
    // It may have been removed since.
    if (row === undefined) continue;
    const run = runOf(row);
    slices.spent(run.input.length + (run.output?.length ?? 0));
    yield run;
  }
}

async function* loadedHeads(db: Database, slices: Slices, hits: readonly Hit[]): AsyncGenerator<RunHead, void, void> {
  const byId = db.prepare(`SELECT ${runHeadColumns} FROM run WHERE id = ?`);
  for (const { id } of hits) {
    await slices.turn(wholeRow);
    const row = byId.get(id);
    if (row !== undefined) yield runHeadOf(row);
  }
}

function escaped(text: string): string {
  return text.replace(/[\\%_]/g, (sign) => `\\${sign}`);
}
