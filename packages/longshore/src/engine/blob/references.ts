// Finds the blobs that open runs and tasks refer to. Handlers pass hashes on in any form. So a text search looks for them in inputs,
// outputs, stored values, definitions, parts and waiting signals. It runs only when there are blobs to prune. A reference counts as a use
// of the blob.

import type { TaskRow } from "../board/task.ts";
import type { Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { NewPart } from "../part/store.ts";
import type { Enough, RowStore, Scan, TableRows, Value } from "../rows.ts";
import type { Definitions } from "../run/definitions.ts";
import type { Run } from "../run/run.ts";
import { openTasks } from "../tables/reader-tables.ts";
import { messageTexts, partTexts, runTexts, signalTexts, type Text, type Texts, taskTexts } from "../tables/texts.ts";
import type { ReadTx, Tx } from "../tx.ts";
import type { LocalBlobs } from "./local-blobs.ts";

export interface PutParts {
  /** Parts that earlier operations of the same batch have put. */
  pending(tx: Tx): Iterable<NewPart>;
  /** Must be called with the parts of each commit. */
  readonly onPut: Set<(parts: readonly NewPart[]) => void>;
}

/** The signals that runs keep. */
export interface KeptSignals {
  /** Signals that earlier operations of the same batch have changed. */
  pending(tx: Tx): Iterable<{ readonly value: string | null }>;
  /** Must be called with the value of each signal that a commit keeps. */
  readonly onKept: Set<(value: string) => void>;
}

export interface BlobReferencesDeps {
  store: RowStore;
  commit: GroupCommit;
  runs: Rows<Run>;
  tasks: Rows<TaskRow>;
  definitions: Definitions;
  parts: PutParts;
  signals: KeptSignals;
  blobs: LocalBlobs;
}

/** The limits of rows that are searched without a pause: their number, and their length without the last row. It takes about a millisecond. */
const sliceRows = 100;
const sliceChars = 256 * 1_024;

export class BlobReferences {
  readonly #options: BlobReferencesDeps;
  readonly #tables: { readonly [Name in "runs" | "tasks" | "parts" | "signals" | "messages"]: TableRows<Texts> };
  /** While set, blobs last used before this time are about to be pruned, and every change is searched. */
  #usedBefore: number | null = null;
  /** Definitions of runs that changed since then, and the hashes in them; null until they are read. */
  readonly #definitions = new Map<string, readonly string[] | null>();

  constructor(options: BlobReferencesDeps) {
    const { store, parts, signals } = options;
    this.#options = options;
    this.#tables = {
      runs: store.table(runTexts),
      tasks: store.table(taskTexts),
      parts: store.table(partTexts),
      signals: store.table(signalTexts),
      messages: store.table(messageTexts),
    };
    parts.onPut.add((put) => {
      if (this.#usedBefore !== null) for (const { value } of put) this.#note(value);
    });
    signals.onKept.add((value) => {
      if (this.#usedBefore !== null) this.#note(value);
    });
  }

  /** Calls `prune` after every referenced blob that was last used before `usedBefore` is marked as used now. */
  async spare(usedBefore: number, signal: AbortSignal | undefined, prune: () => Promise<void>): Promise<void> {
    this.#usedBefore = usedBefore;
    try {
      for await (const texts of this.#slices()) {
        for (const text of texts) this.#note(text);
        await this.#options.blobs.noteUses();
        await new Promise((resolve) => setImmediate(resolve));
        if (signal?.aborted) return;
      }
      await prune();
    } finally {
      this.#usedBefore = null;
      this.#definitions.clear();
    }
  }

  /** The hashes that earlier operations of the same batch have added, and those in definitions of runs that changed. */
  pending(tx: Tx): Set<string> {
    const { tasks, runs, parts, signals } = this.#options;
    const hashes = new Set<string>();
    const look = (text: Text) => {
      for (const hash of hashesIn(text)) hashes.add(hash);
    };
    for (const task of tasks.pending(tx)) for (const text of textsOfTask(task)) look(text);
    for (const { value } of parts.pending(tx)) look(value);
    for (const { value } of signals.pending(tx)) look(value);
    for (const run of runs.pending(tx)) {
      for (const text of textsOfRun(run)) look(text);
      look(this.#sourceOf(tx, run.definitionId));
    }
    for (const [id, known] of this.#definitions) {
      const found = known ?? hashesIn(this.#sourceOf(tx, id));
      this.#definitions.set(id, found);
      for (const hash of found) hashes.add(hash);
    }
    return hashes;
  }

  /** Must be called with each task and run that a commit changed. */
  taskChanged(task: TaskRow): void {
    if (this.#usedBefore !== null) for (const text of textsOfTask(task)) this.#note(text);
  }

  runChanged(run: Run): void {
    if (this.#usedBefore === null) return;
    for (const text of textsOfRun(run)) this.#note(text);
    if (!this.#definitions.has(run.definitionId)) this.#definitions.set(run.definitionId, null);
  }

  #note(text: Text): void {
    for (const hash of hashesIn(text)) this.#options.blobs.refer(hash, this.#usedBefore ?? 0);
  }

  /** The texts of all open runs and tasks. Changes in the meantime are recorded, so each slice may be read at its own time. */
  async *#slices(): AsyncGenerator<readonly Text[], void> {
    const { runs, tasks, parts, signals, messages } = this.#tables;
    const seen = new Set<string>();
    const ofTask = enough("input", "output");
    const ofParts = ["task_id", "life", "sequence"];
    for await (const some of this.#pages(runs, {
      by: ["workflow", "id"],
      without: "ended_at",
      enough: enough("input", "variables", "settings", "backlog"),
    })) {
      yield [...textsOf(some), ...(await this.#sources(some, seen))];
      for (const { id } of some) {
        // '.' and '/' are neighbours, so this is the range of keys that begin with '<run id>.'.
        const ofRun = { above: [`${id}.`], below: [`${id}/`] };
        for await (const page of this.#pages(tasks, { by: ["id"], ...ofRun, enough: ofTask })) yield textsOf(page);
        for await (const page of this.#pages(parts, { by: ofParts, ...ofRun, enough: enough("value") })) yield textsOf(page);
        const kept = { by: ["run_id", "number"], equal: [id], without: "taken_at", enough: enough("value") };
        for await (const page of this.#pages(signals, kept)) yield textsOf(page);
      }
    }
    for await (const some of this.#pages(tasks, { ...openTasks, without: ["ended_at", "run_id"], enough: ofTask })) {
      yield textsOf(some);
      for (const { id } of some)
        for await (const page of this.#pages(parts, { by: ofParts, equal: [id], enough: enough("value") })) yield textsOf(page);
    }
    for await (const some of this.#pages(messages, { by: ["id"], enough: enough("body") })) yield textsOf(some);
  }

  async *#pages(rows: TableRows<Texts>, scan: Scan): AsyncGenerator<readonly Texts[], void> {
    for (let above: readonly Value[] | undefined = scan.above; ; ) {
      const some = { ...scan, above, limit: sliceRows };
      const { page, more } = await this.#options.commit.read((tx) => slice(rows.scan(tx, some)));
      if (page.length > 0) yield page;
      if (!more) return;
      above = page.at(-1)?.at.slice(scan.equal?.length ?? 0);
    }
  }

  /** A definition that many runs share is searched once. */
  async #sources(runs: readonly Texts[], seen: Set<string>): Promise<Text[]> {
    const sources: Text[] = [];
    for (const { definitionId } of runs) {
      if (definitionId === undefined || seen.has(definitionId)) continue;
      seen.add(definitionId);
      sources.push(await this.#options.commit.read((tx) => this.#sourceOf(tx, definitionId)));
    }
    return sources;
  }

  #sourceOf(tx: ReadTx, definitionId: string): Text {
    return this.#options.definitions.byId(tx, definitionId)?.source ?? null;
  }
}

function enough(...of: string[]): Enough {
  return { chars: sliceChars, of };
}

/** Returns as many rows as may be searched without a pause, and whether there may be more. */
function slice(rows: Iterable<Texts>): { page: Texts[]; more: boolean } {
  const page: Texts[] = [];
  let chars = 0;
  for (const row of rows) {
    page.push(row);
    for (const text of row.texts) chars += text?.length ?? 0;
    if (chars >= sliceChars) return { page, more: true };
  }
  return { page, more: page.length === sliceRows };
}

function textsOf(rows: readonly Texts[]): Text[] {
  return rows.flatMap(({ texts }) => texts);
}

function textsOfTask({ input, output }: TaskRow): Text[] {
  return [input, output];
}

function textsOfRun({ input, output, variables, settings, backlog }: Run): Text[] {
  return [input, output, variables, settings, backlog];
}

function hashesIn(text: Text): string[] {
  if (text === null || text.length < 64) return [];
  return (text.match(/[0-9a-f]{64,}/g) ?? []).filter((digits) => digits.length === 64);
}
