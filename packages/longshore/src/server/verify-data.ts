// A data folder as the source of the checker. It is opened for reading only and read in one transaction, so that the file is checked as it was
// at one moment, and stays as it is.

import { existsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Dialect } from "../engine/run/dialect.ts";
import type { Plan } from "../engine/run/plan.ts";
import { LongshoreError, toError } from "../errors.ts";
import { type Database, isLocked, openDatabase } from "../store/sqlite/driver.ts";
import { refuseStrangeFiles } from "../store/sqlite/folder.ts";
import { SqliteHistory } from "../store/sqlite/history.ts";
import { refuseNewer, schemaVersion } from "../store/sqlite/schema.ts";
import { type Finding, finding } from "../verify/finding.ts";
import type { HistorySource } from "../verify/verify.ts";
import { plainDialects } from "./protocols.ts";

/** Runs, or tasks without one, that are read at a time. */
const pageRows = 500;

export async function openDataFolder(directory: string): Promise<{ source: HistorySource; close(): void }> {
  const folder = resolve(directory);
  const file = join(folder, "longshore.db");
  if (!existsSync(file)) {
    throw new LongshoreError("LONGSHORE_NOT_FOUND", `There is no data file in ${folder}: name the folder of a server with --data.`);
  }
  refuseStrangeFiles(folder);
  const db = await openReadOnly(file);
  try {
    refuseOlder(refuseNewer(db, file), file);
    db.exec("BEGIN");
    const history = new SqliteHistory({ db, startsRun: startsRun(db, await plainDialects()), withParts: true });
    return { source: sourceOf(history, db, join(folder, "blobs")), close: () => db.close() };
  } catch (error) {
    db.close();
    throw error;
  }
}

/** A file that is only read cannot be migrated. */
function refuseOlder(version: number, file: string): void {
  if (version === schemaVersion) return;
  throw new LongshoreError(
    "LONGSHORE_BAD_CONFIG",
    `The data file ${file} has schema version ${version}, expected ${schemaVersion}: start a server on it once, which brings it up to date.`,
  );
}

async function openReadOnly(file: string): Promise<Database> {
  try {
    return await openDatabase(file, { readOnly: true });
  } catch (cause) {
    const why = isLocked(cause) ? "a server is using it: check the running server with --on URL" : toError(cause).message;
    throw new LongshoreError("LONGSHORE_STORE_UNAVAILABLE", `The data file ${file} cannot be read: ${why}.`, { cause });
  }
}

function sourceOf(history: SqliteHistory, db: Database, blobs: string): HistorySource {
  return {
    async *runs() {
      for (let after = ""; ; ) {
        const ids = history.runIds(after, pageRows);
        for (const id of ids) {
          const run = history.run(id);
          if (run !== undefined) yield run;
        }
        if (ids.length < pageRows) return;
        after = ids.at(-1) as string;
      }
    },
    async *looseTasks() {
      for (let after = ""; ; ) {
        const { items, next } = history.looseTasks(after, pageRows);
        yield* items;
        if (next === null) return;
        after = next;
      }
    },
    async *others() {
      for (const row of db.prepare("SELECT hash, bytes FROM blob").iterate())
        yield* checkBlob(blobs, row.hash as string, row.bytes as number);
    },
    kept: async () => history.kept(),
    run: async (id) => history.runPage(id, { after: "", limit: 0 }),
    task: async (id) => history.task(id),
    step: async (runId, step) => history.run(runId)?.tasks.find((task) => task.step === step),
  };
}

function checkBlob(folder: string, hash: string, bytes: number): Finding[] {
  const path = join(folder, hash.slice(0, 2), hash);
  const size = statSync(path, { throwIfNoEntry: false })?.size;
  if (size === bytes) return [];
  const what = size === undefined ? "its file is not there" : `its file has ${size} bytes`;
  return [finding("blob-whole", hash, `${bytes} bytes of it were acknowledged and ${what}`, path)];
}

/** Definitions are compiled once each. One that cannot be compiled any more starts no run as far as the checker knows. */
function startsRun(db: Database, known: readonly Dialect[]): (definitionId: string, node: number) => boolean {
  const dialects = new Map(known.map((dialect) => [dialect.name, dialect]));
  const select = db.prepare("SELECT dialect, source FROM definition WHERE id = ?");
  const plans = new Map<string, Plan | null>();
  const compile = (id: string): Plan | null => {
    const row = select.get(id);
    try {
      return row === undefined ? null : (dialects.get(row.dialect as string)?.compile(row.source as string) ?? null);
    } catch {
      // Its runs are still checked by every other rule.
      return null;
    }
  };
  return (id, node) => {
    const plan = plans.get(id) ?? compile(id);
    plans.set(id, plan);
    return plan?.nodes[node]?.kind === "run";
  };
}
