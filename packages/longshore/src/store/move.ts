// Moves all data from one side to the other: a folder and PostgreSQL, in either direction. No server can use either side meanwhile.
//
// 1. The target is marked as incomplete, and emptied.
// 2. Every table is copied in pages, then the contents of blobs.
// 3. Every table of the target is read again: the number of rows and their checksum must equal those of the source.
// 4. The source is marked as moved; then the target loses its mark.
//
// A migration that is interrupted leaves an incomplete target, which no server serves, and an unchanged source. If it is interrupted during
// the last step, both sides have marks of the same migration. In all cases the same migration can be run again; it begins from the start.

import { createHash, randomUUID } from "node:crypto";
import { LongshoreError } from "../core/errors.ts";
import { Checksum, type TableSum } from "./checksum.ts";
import { placeProperties, refuseMarked } from "./marks.ts";
import type { MovedRow, MovedTable, Side } from "./move-side.ts";

export interface MoveProgress {
  readonly what: "rows" | "checked rows" | "blobs";
  readonly done: number;
  readonly total: number;
}

export interface Moved {
  /** The number of rows, by table. */
  readonly tables: { readonly [name: string]: number };
  readonly rows: number;
  readonly blobs: number;
  /** Blobs of the data whose content is missing. */
  readonly missingBlobs: number;
}

/** Tables that have rows as soon as a server has started. A target with rows only in these tables counts as empty. */
const ofEveryServer: readonly string[] = ["property", "amount"];

export async function move(source: Side, target: Side, progress: (news: MoveProgress) => void = () => {}): Promise<Moved> {
  const tables = sameTables(await source.tables(), await target.tables(), source.place, target.place);
  const { incomplete } = target.marks;
  const isAgain = incomplete !== null && source.marks.moved?.id === incomplete.id;
  if (!isAgain) refuseMarked(source.place, source.marks, source.undo);
  if (incomplete === null) await refuseFull(target, tables);
  const id = randomUUID();
  const at = new Date().toISOString();
  await target.mark("incomplete", { id, place: source.place, at });
  await target.clear(tables);
  const sums = await copyRows(source, target, tables, progress);
  const blobs = await copyBlobs(source, target, tables, progress);
  await compare(target, tables, sums, progress);
  await target.settle(tables);
  await source.mark("moved", { id, place: target.place, at });
  await target.mark("incomplete", null);
  const counts = Object.fromEntries(tables.map(({ name }) => [name, sums.get(name)?.rows ?? 0]));
  return { tables: counts, rows: total(counts), ...blobs };
}

/** Throws when a table or a column is on one side only: it would be lost. */
function sameTables(ones: readonly MovedTable[], others: readonly MovedTable[], one: string, other: string): readonly MovedTable[] {
  const linesOf = (tables: readonly MovedTable[]) =>
    new Set(tables.flatMap(({ name, columns }) => [name, ...columns.map((column) => `${name}.${column.name} (${column.kind})`)]));
  const [here, there] = [linesOf(ones), linesOf(others)];
  const missing = [...[...here].filter((line) => !there.has(line)), ...[...there].filter((line) => !here.has(line))];
  if (missing.length > 0)
    throw new Error(`The tables in ${one} and ${other} differ, so that nothing was moved: only one of them has ${missing.join(", ")}.`);
  return ones;
}

async function refuseFull(target: Side, tables: readonly MovedTable[]): Promise<void> {
  for (const table of tables) {
    if (ofEveryServer.includes(table.name)) continue;
    const rows = await target.count(table);
    if (rows === 0) continue;
    throw new LongshoreError(
      "LONGSHORE_BAD_CONFIG",
      `${target.place} is not empty: the table ${table.name} has ${rows} rows. Name a target without data, such as another schema.`,
    );
  }
}

async function copyRows(
  source: Side,
  target: Side,
  tables: readonly MovedTable[],
  progress: (news: MoveProgress) => void,
): Promise<Map<string, TableSum>> {
  const all = await countAll(source, tables);
  const sums = new Map<string, TableSum>();
  let done = 0;
  for (const table of tables) {
    const checksum = new Checksum();
    for await (const rows of dataOf(source, table)) {
      for (const row of rows) checksum.add(row);
      if (rows.length > 0) await target.insert(table, rows);
      done += rows.length;
      progress({ what: "rows", done, total: all });
    }
    sums.set(table.name, checksum.get());
  }
  return sums;
}

async function compare(
  target: Side,
  tables: readonly MovedTable[],
  sums: ReadonlyMap<string, TableSum>,
  progress: (news: MoveProgress) => void,
): Promise<void> {
  const all = [...sums.values()].reduce((sum, { rows }) => sum + rows, 0);
  let done = 0;
  for (const table of tables) {
    const checksum = new Checksum();
    for await (const rows of dataOf(target, table)) {
      for (const row of rows) checksum.add(row);
      done += rows.length;
      progress({ what: "checked rows", done, total: all });
    }
    const [wanted, found] = [sums.get(table.name), checksum.get()];
    if (wanted?.rows === found.rows && wanted.sum === found.sum) continue;
    const what = wanted?.rows === found.rows ? "rows with other values" : `${found.rows} rows, expected ${wanted?.rows}`;
    throw new LongshoreError("LONGSHORE_DATA_DAMAGED", `The table ${table.name} in ${target.place} has ${what}. The copy is not used.`);
  }
}

/** The rows of a table, without those that describe the place and not the data (`placeProperties`). */
async function* dataOf(side: Side, table: MovedTable): AsyncGenerator<readonly MovedRow[]> {
  const at = table.columns.findIndex(({ name }) => name === "name");
  for await (const rows of side.pages(table))
    yield table.name === "property" ? rows.filter((row) => !placeProperties.includes(String(row[at]))) : rows;
}

async function copyBlobs(
  source: Side,
  target: Side,
  tables: readonly MovedTable[],
  progress: (news: MoveProgress) => void,
): Promise<{ blobs: number; missingBlobs: number }> {
  const table = tables.find(({ name }) => name === "blob") as MovedTable;
  const at = table.columns.findIndex(({ name }) => name === "hash");
  const all = await source.count(table);
  let blobs = 0;
  let missingBlobs = 0;
  for await (const rows of source.pages(table)) {
    for (const row of rows) {
      if (await copyBlob(source, target, String(row[at]))) blobs++;
      else missingBlobs++;
      progress({ what: "blobs", done: blobs + missingBlobs, total: all });
    }
  }
  return { blobs, missingBlobs };
}

/** Returns false for content that is missing. A server shows such a blob as missing, before and after the migration. */
async function copyBlob(source: Side, target: Side, hash: string): Promise<boolean> {
  const content = await source.contents.open(hash);
  if (content === null) return false;
  const received = await target.contents.receive(content, () => {});
  try {
    if (received.hash !== hash) throw damagedBlob(hash, source.place);
    await received.keep();
  } finally {
    await received.discard();
  }
  const digest = createHash("sha256");
  for await (const piece of (await target.contents.open(hash)) ?? []) digest.update(piece as Uint8Array);
  if (digest.digest("hex") !== hash) throw damagedBlob(hash, target.place);
  return true;
}

function damagedBlob(hash: string, place: string): LongshoreError {
  return new LongshoreError("LONGSHORE_DATA_DAMAGED", `The content of the blob ${hash} in ${place} is damaged: it has another hash.`);
}

async function countAll(side: Side, tables: readonly MovedTable[]): Promise<number> {
  let sum = 0;
  for (const table of tables) sum += await side.count(table);
  return sum;
}

function total(counts: { readonly [name: string]: number }): number {
  return Object.values(counts).reduce((sum, rows) => sum + rows, 0);
}
