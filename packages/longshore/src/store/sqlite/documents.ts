// Documents as rows, read whole from the file: they are few, and asked for seldom.

import type { Clock } from "../../clock.ts";
import { LongshoreError } from "../../errors.ts";
import { checkName } from "../../names.ts";
import { type Document, type DocumentStore, documentsMax } from "../../run/documents.ts";
import { Slices, wholeRow } from "../../slices.ts";
import type { Amount } from "./amounts.ts";
import type { GroupCommit } from "./commit.ts";
import type { Database, SqlRow } from "./driver.ts";
import { Rows } from "./rows.ts";
import { rowBytes, type StoredBytes } from "./stored-bytes.ts";

/** Documents kept in memory: those that runs ask for while they are decided. */
const keptMax = 2_000;
/** Longer ones are read from the file each time: workers write documents, and 2,000 of the largest would be gigabytes. */
const keptCharsMax = 16_384;

const separator = "\u0000";

/** Documents that a list reads without a pause, and their text: each may have megabytes. */
const rowsMax = 250;
const charsMax = 1_048_576;

export interface SqliteDocumentsOptions {
  db: Database;
  commit: GroupCommit;
  clock: Clock;
  stored: StoredBytes;
  slices?: Slices;
}

export class SqliteDocuments implements DocumentStore {
  readonly #commit: GroupCommit;
  readonly #clock: Clock;
  readonly #rows: Rows<Document>;
  readonly #versions: (kind: string, name: string) => number[];
  /** The highest version below another one; undefined when there is none. */
  readonly #highestBelow: (kind: string, name: string, version: number) => number | undefined;
  /** Some documents behind one of them: of a kind, or of one name. */
  readonly #behind: (kind: string, name: string, version: number) => Iterable<SqlRow>;
  readonly #named: (kind: string, name: string, version: number) => Iterable<SqlRow>;
  readonly #slices: Slices;
  readonly #stored: StoredBytes;

  constructor({ db, commit, clock, stored, slices = new Slices() }: SqliteDocumentsOptions) {
    this.#stored = stored;
    this.#slices = slices;
    this.#commit = commit;
    this.#clock = clock;
    const select = db.prepare("SELECT * FROM document WHERE kind = ? AND name = ? AND version = ?");
    const upsert = db.prepare(
      "INSERT OR REPLACE INTO document (kind, name, version, body, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)",
    );
    const remove = db.prepare("DELETE FROM document WHERE kind = ? AND name = ? AND version = ?");
    this.#rows = new Rows<Document>(commit, {
      load(key) {
        const row = select.get(...partsOf(key));
        return row === undefined ? null : documentOf(row);
      },
      save: (row) => upsert.run(row.kind, row.name, row.version, row.body, row.createdAt, row.updatedAt),
      remove: (key) => remove.run(...partsOf(key)),
      chars: ({ body }) => body.length,
      keep: ({ body }) => (body.length <= keptCharsMax ? "while-room" : "no"),
      keptMax,
    });
    const versions = db.prepare("SELECT version FROM document WHERE kind = ? AND name = ?");
    this.#versions = (kind, name) => versions.all(kind, name).map((row) => row.version as number);
    const highest = db.prepare("SELECT max(version) AS version FROM document WHERE kind = ? AND name = ? AND version < ?");
    this.#highestBelow = (kind, name, version) => (highest.get(kind, name, version)?.version as number | null) ?? undefined;
    const behind = db.prepare("SELECT * FROM document WHERE kind = ? AND (name, version) > (?, ?) ORDER BY name, version LIMIT ?");
    this.#behind = (kind, name, version) => behind.iterate(kind, name, version, rowsMax);
    const named = db.prepare("SELECT * FROM document WHERE kind = ? AND name = ? AND version > ? ORDER BY version LIMIT ?");
    this.#named = (kind, name, version) => named.iterate(kind, name, version, rowsMax);
  }

  document(kind: string, name: string, version?: number): Promise<Document | undefined> {
    return Promise.resolve(this.find(kind, name, version) ?? undefined);
  }

  async documents(kind: string, name?: string): Promise<Document[]> {
    const all: Document[] = [];
    for await (const document of this.eachDocument(kind, name)) all.push(document);
    return all;
  }

  async *eachDocument(kind: string, name?: string): AsyncGenerator<Document, void, void> {
    for (let last = { name: name ?? "", version: -1 }; ; ) {
      await this.#slices.turn(rowsMax * wholeRow);
      const { some, more } = this.#page((name === undefined ? this.#behind : this.#named)(kind, last.name, last.version));
      yield* some;
      if (!more) return;
      last = some.at(-1) as Document;
    }
  }

  /** As many rows as may be read without a pause. */
  #page(rows: Iterable<SqlRow>): { some: Document[]; more: boolean } {
    const some: Document[] = [];
    let chars = 0;
    for (const row of rows) {
      const document = documentOf(row);
      some.push(document);
      chars += document.body.length;
      if (chars >= charsMax) break;
    }
    this.#slices.spent(chars);
    return { some, more: some.length === rowsMax || chars >= charsMax };
  }

  keepDocument(
    wanted: { kind: string; name: string; version: number; body: string },
    options: { unlessThere?: boolean; own?: boolean } = {},
  ): Promise<boolean> {
    return this.#commit.run(() => {
      checkName(wanted.name, "name");
      const key = keyOf(wanted.kind, wanted.name, wanted.version);
      const before = this.#rows.get(key);
      if (before !== null && options.unlessThere) return false;
      this.#admit(wanted, before, options.own === true);
      const now = this.#clock.now();
      this.#rows.put(key, { ...wanted, createdAt: before?.createdAt ?? now, updatedAt: now }, true);
      return true;
    });
  }

  removeDocument(kind: string, name: string, version?: number): Promise<number> {
    return this.#commit.run(() => {
      const versions = this.#allVersions(kind, name).filter((each) => version === undefined || each === version);
      for (const each of versions) this.#remove(kind, name, each);
      return versions.length;
    });
  }

  #admit(wanted: Pick<Document, "kind" | "name" | "body">, before: Document | null, own: boolean): void {
    const count = this.#countOf(wanted.kind);
    if (before === null && count.value >= documentsMax) throw tooMany(wanted.kind);
    const more = bytesOf(wanted) - (before === null ? 0 : bytesOf(before));
    const room = this.#stored.of("documents");
    // What gets smaller is always taken.
    if (more > 0 && !own) room.take(more);
    else room.add(more);
    if (before === null) count.add(1);
  }

  #remove(kind: string, name: string, version: number): void {
    const key = keyOf(kind, name, version);
    const before = this.#rows.get(key);
    if (before === null) return;
    this.#stored.of("documents").add(-bytesOf(before));
    this.#countOf(kind).add(-1);
    this.#rows.remove(key);
  }

  #countOf(kind: string): Amount {
    return this.#stored.amounts.of(`documents of ${kind}`);
  }

  /** Inside an operation or between them: one version, or the highest. */
  find(kind: string, name: string, version?: number): Document | null {
    return version === undefined ? this.#highest(kind, name) : this.#rows.get(keyOf(kind, name, version));
  }

  /** Costs what this batch has changed, not how many versions there are. */
  #highest(kind: string, name: string): Document | null {
    let found: Document | null = null;
    for (const row of this.#rows.pending()) {
      if (row.kind === kind && row.name === name && row.version > (found?.version ?? -1)) found = row;
    }
    let version = this.#highestBelow(kind, name, Number.MAX_SAFE_INTEGER);
    while (version !== undefined && version > (found?.version ?? -1)) {
      if (!this.#rows.isRemoved(keyOf(kind, name, version))) return this.#rows.get(keyOf(kind, name, version));
      version = this.#highestBelow(kind, name, version);
    }
    return found;
  }

  #allVersions(kind: string, name: string): number[] {
    const fresh = this.#rows.pending().filter((row) => row.kind === kind && row.name === name);
    const versions = new Set([...this.#versions(kind, name), ...fresh.map((row) => row.version)]);
    return [...versions].filter((version) => !this.#rows.isRemoved(keyOf(kind, name, version)));
  }
}

function bytesOf({ name, body }: Pick<Document, "name" | "body">): number {
  return rowBytes + Buffer.byteLength(name) + Buffer.byteLength(body);
}

function keyOf(kind: string, name: string, version: number): string {
  return [kind, name, version].join(separator);
}

function partsOf(key: string): [string, string, number] {
  const [kind, name, version] = key.split(separator) as [string, string, string];
  return [kind, name, Number(version)];
}

function documentOf(row: SqlRow): Document {
  return {
    kind: row.kind as string,
    name: row.name as string,
    version: row.version as number,
    body: row.body as string,
    createdAt: row.created_at as number,
    updatedAt: row.updated_at as number,
  };
}

function tooMany(kind: string): LongshoreError {
  return new LongshoreError(
    "LONGSHORE_LIMIT",
    `There are ${documentsMax} documents of kind ${kind} already, which is the limit: remove some first.`,
  );
}
