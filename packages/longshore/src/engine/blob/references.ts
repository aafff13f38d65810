// Which blobs open runs and tasks refer to. A reference is a hash that occurs in their input, output, variables or definition,
// or in a part that they have put: handlers pass hashes on freely, so nothing else would find them all. Searched only when there are blobs
// to prune. A reference is a use, so that a blob outlives the run that needs it by as much as one that was read.

import type { Task } from "../board/task.ts";
import type { Rows } from "../cached-rows.ts";
import type { Definitions } from "../run/definitions.ts";
import type { Run } from "../run/run.ts";
import { committed, type ReadTx, type Tx } from "../tx.ts";
import type { LocalBlobs } from "./local-blobs.ts";
import type { Database, SqlRow } from "../../store/sqlite/driver.ts";
import type { SqliteParts } from "../../store/sqlite/parts.ts";

export interface BlobReferencesDeps {
  db: Database;
  runs: Rows<Run>;
  tasks: Rows<Task>;
  definitions: Definitions;
  parts: Pick<SqliteParts, "pending" | "onPut">;
  blobs: LocalBlobs;
}

/** Rows looked through without a pause: about a millisecond for payloads of a few kilobytes. */
const sliceRows = 100;
/** Of parts, which may be long, also by their length. */
const sliceChars = 256 * 1_024;

export class BlobReferences {
  readonly #options: BlobReferencesDeps;
  readonly #sql: ReturnType<typeof prepareStatements>;
  /** While set, blobs last used before this time are about to be pruned, and every change is looked through. */
  #usedBefore: number | null = null;

  constructor(options: BlobReferencesDeps) {
    this.#options = options;
    this.#sql = prepareStatements(options.db);
    options.parts.onPut.add((parts) => {
      if (this.#usedBefore !== null) for (const { value } of parts) this.#note(value);
    });
  }

  /** Calls `prune` once every blob that is referred to and was last used before `usedBefore` counts as used now. */
  async spare(usedBefore: number, signal: AbortSignal | undefined, prune: () => Promise<void>): Promise<void> {
    this.#usedBefore = usedBefore;
    try {
      for (const texts of this.#slices()) {
        for (const text of texts) this.#note(text);
        await this.#options.blobs.noteUses();
        await new Promise((resolve) => setImmediate(resolve));
        if (signal?.aborted) return;
      }
      await prune();
    } finally {
      this.#usedBefore = null;
    }
  }

  /** The hashes that earlier operations of the same batch have brought in. */
  pending(tx: Tx): Set<string> {
    const { tasks, runs, parts } = this.#options;
    const texts = [...tasks.pending(tx).flatMap(textsOfTask), ...runs.pending(tx).flatMap((run) => this.#textsOfRun(tx, run))];
    return new Set([...texts, ...parts.pending(tx).map(({ value }) => value)].flatMap(hashesIn));
  }

  /** Must be called for each task and run that a commit changed. */
  taskChanged(task: Task): void {
    if (this.#usedBefore !== null) for (const text of textsOfTask(task)) this.#note(text);
  }

  runChanged(run: Run): void {
    if (this.#usedBefore !== null) for (const text of this.#textsOfRun(committed, run)) this.#note(text);
  }

  #note(text: Text): void {
    for (const hash of hashesIn(text)) this.#options.blobs.refer(hash, this.#usedBefore ?? 0);
  }

  /** All that is open. Changes in the meantime are reported, so each slice may be read at its own time. */
  *#slices(): Generator<Text[]> {
    const { openRuns, tasksOfRun, looseTasks, partsOf, messages } = this.#sql;
    const seen = new Set<string>();
    for (const rows of pages(openRuns)) {
      yield rows.flatMap((row) => [
        ...[row.input, row.variables, row.settings, row.backlog].map((text) => text as Text),
        this.#sourceOf(row.definition_id as string, seen),
      ]);
      for (const { id } of rows) {
        for (const tasks of pages((after) => tasksOfRun(id as string, after))) yield payloads(tasks);
        yield* partPages(partsOf, `${id}.`, `${id}/`);
      }
    }
    for (const rows of pages(looseTasks)) {
      yield payloads(rows);
      for (const { id } of rows) yield* partPages(partsOf, id as string, id as string);
    }
    for (const rows of pages(messages)) yield rows.map((row) => row.body as Text);
  }

  /** The definition of many runs is looked through once. */
  #sourceOf(definitionId: string, seen: Set<string>): Text {
    if (seen.has(definitionId)) return null;
    seen.add(definitionId);
    return this.#options.definitions.byId(committed, definitionId)?.source ?? null;
  }

  #textsOfRun(tx: ReadTx, run: Run): Text[] {
    const { input, output, variables, settings, backlog } = run;
    return [input, output, variables, settings, backlog, this.#options.definitions.byId(tx, run.definitionId)?.source ?? null];
  }
}

type Text = string | null;

function textsOfTask(task: Task): Text[] {
  return [task.input, task.output];
}

function hashesIn(text: Text): string[] {
  if (text === null || text.length < 64) return [];
  return (text.match(/[0-9a-f]{64,}/g) ?? []).filter((digits) => digits.length === 64);
}

function payloads(rows: SqlRow[]): Text[] {
  return rows.flatMap((row) => [row.input as Text, row.output as Text]);
}

/** `read` returns the rows behind `after`, or the first ones. */
function* pages(read: (after: SqlRow | undefined) => SqlRow[]): Generator<SqlRow[]> {
  let after: SqlRow | undefined;
  do {
    const rows = read(after);
    if (rows.length > 0) yield rows;
    after = rows.length < sliceRows ? undefined : rows.at(-1);
  } while (after !== undefined);
}

/** The values of all parts of tasks from one id to another. */
function* partPages(read: PartsOf, first: string, last: string): Generator<Text[]> {
  let after: SqlRow = { task_id: first, life: -1, sequence: -1 };
  for (;;) {
    const values: Text[] = [];
    let chars = 0;
    for (const row of read(after, last)) {
      after = row;
      values.push(row.value as Text);
      chars += (row.value as Text)?.length ?? 0;
      if (chars >= sliceChars) break;
    }
    if (values.length === 0) return;
    yield values;
  }
}

type PartsOf = (after: SqlRow, last: string) => Iterable<SqlRow>;

function prepareStatements(db: Database) {
  const limit = `LIMIT ${sliceRows}`;
  // In the order of the index of open runs, so that those that have ended are not walked over.
  const openRuns = db.prepare(
    `SELECT id, workflow, definition_id, input, variables, settings, backlog FROM run WHERE ended_at IS NULL AND (workflow, id) > (?, ?) ORDER BY workflow, id ${limit}`,
  );
  // '.' and '/' are neighbours, so this is the range of keys that begin with '<run id>.'.
  const tasksOfRun = db.prepare(`SELECT id, input, output FROM task WHERE id > ? AND id < ? ORDER BY id ${limit}`);
  const looseTasks = db.prepare(
    `SELECT id, input, output FROM task WHERE ended_at IS NULL AND run_id IS NULL AND id > ? ORDER BY id ${limit}`,
  );
  // What is shorter than a hash has none in it.
  const partsOf = db.prepare(
    `SELECT task_id, life, sequence, CASE WHEN length(value) < 64 THEN NULL ELSE value END AS value FROM part
     WHERE (task_id, life, sequence) > (?, ?, ?) AND task_id <= ? ORDER BY task_id, life, sequence ${limit}`,
  );
  const messages = db.prepare(`SELECT id, body FROM message WHERE id > ? ORDER BY id ${limit}`);
  return {
    openRuns: (after?: SqlRow) => openRuns.all((after?.workflow ?? "") as string, (after?.id ?? "") as string),
    tasksOfRun: (runId: string, after?: SqlRow) => tasksOfRun.all((after?.id ?? `${runId}.`) as string, `${runId}/`),
    looseTasks: (after?: SqlRow) => looseTasks.all((after?.id ?? "") as string),
    partsOf: (({ task_id, life, sequence }, last) =>
      partsOf.iterate(task_id as string, life as number, sequence as number, last)) as PartsOf,
    messages: (after?: SqlRow) => messages.all((after?.id ?? 0) as number),
  };
}
