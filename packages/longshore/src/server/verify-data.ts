// A data folder as the source for `longshore verify`. The file is read as it was at one moment and is not changed.

import { existsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { LongshoreError } from "../core/errors.ts";
import type { Dialect } from "../engine/run/dialect.ts";
import { LocalHistory } from "../engine/run/local-history.ts";
import type { Plan, PlanNode } from "../engine/run/plan.ts";
import type { ReadTx } from "../engine/tx.ts";
import { blobPath } from "../store/sqlite/blob-path.ts";
import type { Database } from "../store/sqlite/driver.ts";
import { refuseStrangeFiles } from "../store/sqlite/folder.ts";
import { sqliteRows } from "../store/sqlite/row-store.ts";
import { blobRows, definitionSources, openSnapshot } from "../store/sqlite/snapshot.ts";
import { type Finding, finding } from "../verify/finding.ts";
import type { HistorySource } from "../verify/verify.ts";
import { plainDialects } from "./protocols.ts";

/** How many runs, or tasks without a run, are read at a time. */
const pageRows = 500;

export async function openDataFolder(directory: string): Promise<{ source: HistorySource; close(): void }> {
  const folder = resolve(directory);
  const file = join(folder, "longshore.db");
  if (!existsSync(file)) {
    throw new LongshoreError("LONGSHORE_NOT_FOUND", `There is no data file in ${folder}: name the folder of a server with --data.`);
  }
  refuseStrangeFiles(folder);
  const db = await openSnapshot(file);
  try {
    const kind = kindOf(db, await plainDialects());
    const history = new LocalHistory({ store: sqliteRows(db, () => null), kindOf: (_tx, id, node) => kind(id, node), withParts: true });
    return { source: sourceOf(history, db, join(folder, "blobs")), close: () => db.close() };
  } catch (error) {
    db.close();
    throw error;
  }
}

/** SQLite reads synchronously, so nothing has to be loaded first. */
const tx: ReadTx = { isOperation: false, loaded: new Map() };

function sourceOf(history: LocalHistory, db: Database, blobs: string): HistorySource {
  return {
    async *runs() {
      for (let after = ""; ; ) {
        const ids = history.runIds(tx, after, pageRows);
        for (const id of ids) {
          const run = history.run(tx, id);
          if (run !== undefined) yield run;
        }
        if (ids.length < pageRows) return;
        after = ids.at(-1) as string;
      }
    },
    async *looseTasks() {
      for (let after = ""; ; ) {
        const { items, next } = history.looseTasks(tx, after, pageRows);
        yield* items;
        if (next === null) return;
        after = next;
      }
    },
    async *others() {
      for (const { hash, bytes } of blobRows(db)) yield* checkBlob(blobs, hash, bytes);
    },
    kept: async () => history.kept(tx),
    run: async (id) => history.runPage(tx, id, { after: "", limit: 0 }),
    task: async (id) => history.task(tx, id),
    step: async (runId, step) => history.run(tx, runId)?.tasks.find((task) => task.step === step),
  };
}

function checkBlob(folder: string, hash: string, bytes: number): Finding[] {
  const path = blobPath(folder, hash);
  if (path === null) return [finding("blob-whole", hash, "its name is not a hash, so it has no file")];
  const size = statSync(path.file, { throwIfNoEntry: false })?.size;
  if (size === bytes) return [];
  const what = size === undefined ? "its file is not there" : `its file has ${size} bytes`;
  return [finding("blob-whole", hash, `${bytes} bytes of it were acknowledged and ${what}`, path.file)];
}

/** Compiles each definition once. For a definition that cannot be compiled any more, nothing is known about its nodes. */
function kindOf(db: Database, known: readonly Dialect[]): (definitionId: string, node: number) => PlanNode["kind"] | undefined {
  const dialects = new Map(known.map((dialect) => [dialect.name, dialect]));
  const read = definitionSources(db);
  const plans = new Map<string, Plan | null>();
  const compile = (id: string): Plan | null => {
    const definition = read(id);
    try {
      return definition === undefined ? null : (dialects.get(definition.dialect)?.compile(definition.source) ?? null);
    } catch {
      // Its runs are still checked by every other rule.
      return null;
    }
  };
  return (id, node) => {
    const plan = plans.get(id) ?? compile(id);
    plans.set(id, plan);
    return plan?.nodes[node]?.kind;
  };
}
