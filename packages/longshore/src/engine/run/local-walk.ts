// Walks through stored runs, for lists and searches that may look at many: newest first, or the child runs of a parent, those of its last
// step first. The texts of a row may be very long. So their lengths are read first, which are at the beginning of the row. Each slice is
// then limited in bytes as well as in rows.
//
// The walk may need several indexes, for example one for each of three states. Their rows are merged by the id.

import { rowBytes, type Slices } from "../../core/slices/slices.ts";
import { lastText, readAll, type Scan, type TableRows, type TableSpec, type Value } from "../rows.ts";
import type { ReadDeps } from "../sliced-reads.ts";
import { type Sized, type SizedSlice, slicesOf } from "./sized-slices.ts";

/** How many lengths are read at once. */
const lengthsMax = 1_000;
/** The limits of the rows and bytes that one statement reads. */
const rowsMax = 200;
const bytesMax = 524_288;

/** A run with its place in the order of the walk. */
interface Place extends Sized {
  readonly at: readonly Value[];
}

export interface WalkOrder {
  readonly table: TableSpec<Place>;
  /** Conversions between the cursor of a page and the position of a row. */
  positionOf(cursor: string): readonly Value[];
  cursorOf(at: readonly Value[]): string;
}

/** Newest first. */
export const byId: WalkOrder = {
  table: {
    name: "run",
    key: ["id"],
    columns: [["id", ({ id }) => id]],
    sizes: [["bytes", ["input", "output", "error"]]],
    of: (row) => ({ id: row.id as string, bytes: row.bytes as number, at: [row.id as string] }),
  },
  positionOf: (cursor) => [cursor],
  cursorOf: ([id]) => id as string,
};

/** The last step of the parent first. */
export const byParent: WalkOrder = {
  table: {
    ...byId.table,
    columns: ["id", "parent_task_id", "parent_attempt"].map((column) => [column, () => null] as const),
    of: (row) => ({
      ...{ id: row.id as string, bytes: row.bytes as number },
      at: [row.parent_task_id as string, row.parent_attempt as number],
    }),
  },
  positionOf(cursor) {
    const slash = cursor.lastIndexOf("/");
    return [cursor.slice(0, slash), Number(cursor.slice(slash + 1)) || 0];
  },
  cursorOf: ([task, attempt]) => `${task}/${attempt}`,
};

export interface Walk {
  readonly order: WalkOrder;
  /** There may be several only with the order `byId`. */
  readonly scans: readonly Scan[];
  /** The cursor behind which it begins. */
  readonly before?: string | undefined;
  /** How many rows are enough for most callers. At first only this many are read. */
  readonly few?: number | undefined;
  /** The caller reads the texts of the rows, and looks at each of their characters. */
  readonly searched?: boolean;
}

/** Some runs that may be read now, and where the walk continues behind each of them. */
export interface WalkSlice {
  readonly ids: readonly string[];
  readonly cursors: readonly string[];
  /** The lengths of their texts. */
  readonly bytes: number;
}

/** Returns each slice after it got its turn of the event loop. */
export async function* walkRuns(deps: ReadDeps, walk: Walk): AsyncGenerator<WalkSlice, void, void> {
  const { order } = walk;
  for await (const places of pagesOf(deps, walk)) {
    let passed = 0;
    for await (const { ids, bytes } of turnsOf(deps.slices, places, walk.searched)) {
      const cursors = places.slice(passed, passed + ids.length).map(({ at }) => order.cursorOf(at));
      passed += ids.length;
      yield { ids, cursors, bytes };
    }
  }
}

/** Groups of rows, each in its own turn of the event loop. */
export async function* turnsOf(slices: Slices, rows: readonly Sized[], searched = false): AsyncGenerator<SizedSlice, void, void> {
  for (const slice of slicesOf(rows, { rowsMax, bytesMax })) {
    // Searching a text takes as long as reading it.
    await slices.turn(slice.cost + (searched ? Math.floor(slice.bytes / rowBytes) : 0));
    yield slice;
  }
}

/** The sizes of runs whose ids are known, some at a time. */
export async function* sizesOf({ store, read, slices }: ReadDeps, ids: readonly string[]): AsyncGenerator<readonly Sized[], void, void> {
  const rows = store.table(byId.table);
  for (let from = 0; from < ids.length; from += lengthsMax) {
    await slices.turn(lengthsMax);
    const found = await read((tx) => readAll(ids.slice(from, from + lengthsMax), (id) => rows.get(tx, id)));
    yield found.filter((row) => row !== null);
  }
}

/** One of the indexes, with the rows that were read from it and not returned yet. */
interface Source {
  readonly scan: Scan;
  rows: readonly Place[];
  next: number;
  below: readonly Value[] | undefined;
  isOver: boolean;
}

async function* pagesOf(
  { store, read, slices }: ReadDeps,
  { order, scans, before, few }: Walk,
): AsyncGenerator<readonly Place[], void, void> {
  const rows = store.table(order.table);
  const begin = before === undefined ? undefined : order.positionOf(before);
  const sources = scans.map((scan): Source => ({ scan, rows: [], next: 0, below: begin ?? scan.below, isOver: false }));
  const most = Math.ceil(Math.min(lengthsMax, few ?? lengthsMax) / scans.length);
  for (;;) {
    const empty = sources.filter((source) => !source.isOver && source.next === source.rows.length);
    if (empty.length > 0) {
      await slices.turn(most * empty.length);
      const found = await read((tx) => readAll(empty, (source) => placesBelow(tx, rows, source, most)));
      for (const [at, source] of empty.entries()) refill(source, found[at] as Place[], most);
    }
    const merged = takeNewest(sources);
    if (merged.length === 0) return;
    yield merged;
  }
}

function placesBelow(tx: Parameters<TableRows<Place>["scan"]>[0], rows: TableRows<Place>, { scan, below }: Source, limit: number): Place[] {
  return [...rows.scan(tx, { ...scan, below: below ?? [lastText], backwards: true, limit })];
}

function refill(source: Source, found: readonly Place[], most: number): void {
  source.rows = found;
  source.next = 0;
  source.below = found.at(-1)?.at;
  source.isOver = found.length < most;
}

/**
 * Merges the rows of the sources, up to the first source that may have more. A run that moved from one index to another between two reads
 * is returned only once.
 */
function takeNewest(sources: readonly Source[]): Place[] {
  const taken: Place[] = [];
  for (;;) {
    let newest: Source | undefined;
    for (const source of sources) {
      const row = source.rows[source.next];
      if (row === undefined) {
        if (!source.isOver) return taken;
        continue;
      }
      if (newest === undefined || row.id > (newest.rows[newest.next] as Place).id) newest = source;
    }
    if (newest === undefined) return taken;
    const row = newest.rows[newest.next++] as Place;
    if (taken.at(-1)?.id !== row.id) taken.push(row);
  }
}
