// Documents as rows. Short documents that are in use stay in memory.

import type { Clock } from "../../core/clock.ts";
import { LongshoreError } from "../../core/errors.ts";
import { checkName } from "../../core/names.ts";
import { Slices, wholeRow } from "../../core/slices/slices.ts";
import type { Amount } from "../amounts.ts";
import { type Audit, unaudited } from "../audit/local-audit.ts";
import { Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import { type Once, unmarked } from "../request-marks.ts";
import type { Enough, RowStore, Scan, TableRows } from "../rows.ts";
import { rowBytes, type StoredBytes } from "../stored-bytes.ts";
import { documentTable } from "../tables/document.ts";
import { plainTable } from "../tables/plain-table.ts";
import type { ReadTx, Tx } from "../tx.ts";
import { type Document, type DocumentStore, documentsMax } from "./documents.ts";

/** Maximum number of documents in memory: those that decisions about runs read. */
const keptMax = 2_000;
/** Names whose highest version is remembered: some megabytes. */
const foundMax = 20_000;
/** Longer documents are read from the store each time: workers write documents, and 2,000 of the largest would be gigabytes. */
const keptCharsMax = 16_384;

const separator = "\u0000";

/** How many documents a list reads without a pause, and the length of their texts: each may have megabytes. */
const rowsMax = 250;
const charsMax = 1_048_576;
const enough: Enough = { chars: charsMax, of: ["body"] };

const by = ["kind", "name", "version"];

/** Versions without the bodies, which may be long. */
const versionTable = plainTable<Pick<Document, "version">>("document", by, { version: "version" });

export interface LocalDocumentsDeps {
  store: RowStore;
  commit: GroupCommit;
  /** Default: no request is tracked. */
  performed?: Once;
  /** Default: nothing is noted. */
  audit?: Audit;
  clock: Clock;
  stored: StoredBytes;
  slices?: Slices;
}

export class LocalDocuments implements DocumentStore {
  readonly #commit: GroupCommit;
  readonly #performed: Once;
  readonly #audit: Audit;
  readonly #clock: Clock;
  readonly #rows: Rows<Document>;
  readonly #stored: TableRows<Document>;
  readonly #versions: TableRows<Pick<Document, "version">>;
  readonly #slices: Slices;
  readonly #bytes: StoredBytes;
  /** The highest versions that operations have found, and null for names without a document. Any change of a document empties it. */
  readonly #found = new Map<string, number | null>();

  constructor({
    store,
    commit,
    performed = unmarked(commit),
    audit = unaudited,
    clock,
    stored,
    slices = new Slices(),
  }: LocalDocumentsDeps) {
    this.#audit = audit;
    this.#bytes = stored;
    this.#performed = performed;
    this.#slices = slices;
    this.#commit = commit;
    this.#clock = clock;
    this.#stored = store.table(documentTable);
    this.#versions = store.table(versionTable);
    this.#rows = new Rows<Document>(commit, {
      load: (tx, key) => this.#stored.get(tx, ...partsOf(key)),
      save: (row) => this.#stored.write(row),
      remove: (key) => this.#stored.remove(partsOf(key)),
      chars: ({ body }) => body.length,
      keep: ({ body }) => (body.length <= keptCharsMax ? "while-room" : "no"),
      keptMax,
      committed: () => this.#found.clear(),
      removed: () => this.#found.clear(),
    });
  }

  document(kind: string, name: string, version?: number): Promise<Document | undefined> {
    return this.#commit.read((tx) => this.find(tx, kind, name, version) ?? undefined);
  }

  async *eachDocument(kind: string, name?: string): AsyncGenerator<Document, void, void> {
    for (let last = { name: name ?? "", version: -1 }; ; ) {
      await this.#slices.turn(rowsMax * wholeRow);
      const behind: Scan =
        name === undefined ? { by, equal: [kind], above: [last.name, last.version] } : { by, equal: [kind, name], above: [last.version] };
      const { some, more } = await this.#commit.read((tx) => this.#page(this.#stored.scan(tx, { ...behind, limit: rowsMax, enough })));
      yield* some;
      if (!more) return;
      last = some.at(-1) as Document;
    }
  }

  /** As many rows as may be read without a pause. */
  #page(documents: Iterable<Document>): { some: Document[]; more: boolean } {
    const some: Document[] = [];
    let chars = 0;
    for (const document of documents) {
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
    const key = keyOf(wanted.kind, wanted.name, wanted.version);
    const keep = (tx: Tx) => {
      checkName(wanted.name, "name");
      const before = this.#rows.get(tx, key);
      if (before !== null && options.unlessThere) return false;
      this.#admit(tx, wanted, before, options.own === true);
      const now = this.#clock.now();
      this.#rows.put(tx, key, { ...wanted, createdAt: before?.createdAt ?? now, updatedAt: now }, true);
      if (options.own !== true && before?.body !== wanted.body) this.#note(tx, "keep", before, wanted);
      return true;
    };
    return this.#performed.once(`keep ${key}`, keep, (_, kept) => kept);
  }

  /** In the operation of the caller, for documents of the server itself. */
  keepNow(tx: Tx, wanted: { kind: string; name: string; version: number; body: string }): void {
    const key = keyOf(wanted.kind, wanted.name, wanted.version);
    const before = this.#rows.get(tx, key);
    if (before?.body === wanted.body) return;
    this.#admit(tx, wanted, before, true);
    const now = this.#clock.now();
    this.#rows.put(tx, key, { ...wanted, createdAt: before?.createdAt ?? now, updatedAt: now }, true);
  }

  /** The same, for a document that is not needed any more. */
  removeNow(tx: Tx, kind: string, name: string, version: number): void {
    this.#remove(tx, kind, name, version);
  }

  /** All versions are removed in slices: a worker may store very many of them. */
  async removeDocument(kind: string, name: string, version?: number): Promise<number> {
    if (version !== undefined) {
      const key = keyOf(kind, name, version);
      const remove = (tx: Tx) => {
        const before = this.#rows.get(tx, key);
        if (before === null) return 0;
        this.#note(tx, "remove", before, null);
        this.#remove(tx, kind, name, version);
        return 1;
      };
      return this.#performed.once(`remove ${key}`, remove, (_, removed) => removed);
    }
    for (let removed = 0, slice = 0; ; ) {
      await this.#slices.turn(rowsMax * wholeRow);
      const count = await this.#removeSlice(kind, name, slice++);
      removed += Math.abs(count);
      if (count <= 0) return removed;
    }
  }

  /** Returns how many were removed. The number is negative when no more are left. */
  #removeSlice(kind: string, name: string, slice: number): Promise<number> {
    const remove = (tx: Tx) => {
      const { count, more } = this.#removeSome(tx, kind, name);
      const ordered = { verb: "remove", kind: "document", target: `${kind} ${name}`, was: { versions: "all" }, became: null } as const;
      if (slice === 0 && count > 0) this.#audit.note(tx, ordered);
      return more ? count : -count;
    };
    return this.#performed.once(`remove ${kind} ${name} ${slice}`, remove, (_, removed) => removed);
  }

  #removeSome(tx: Tx, kind: string, name: string): { count: number; more: boolean } {
    let count = 0;
    let bytes = 0;
    for (const version of this.#someVersions(tx, kind, name)) {
      if (count === rowsMax || bytes >= charsMax) return { count, more: true };
      bytes += this.#remove(tx, kind, name, version);
      count++;
    }
    return { count, more: false };
  }

  #note(tx: Tx, verb: string, before: Document | null, after: Pick<Document, "kind" | "name" | "version" | "body"> | null): void {
    const { kind, name } = (after ?? before) as Document;
    const of = (one: Pick<Document, "version" | "body"> | null) => one && { version: one.version, chars: one.body.length };
    this.#audit.note(tx, { verb, kind: "document", target: `${kind} ${name}`, was: of(before), became: of(after) });
  }

  #admit(tx: Tx, wanted: Pick<Document, "kind" | "name" | "body">, before: Document | null, own: boolean): void {
    const count = this.#countOf(wanted.kind);
    if (before === null && count.value >= documentsMax) throw tooMany(wanted.kind);
    const more = bytesOf(wanted) - (before === null ? 0 : bytesOf(before));
    const room = this.#bytes.of("documents");
    // A smaller text is always accepted.
    if (more > 0 && !own) room.take(tx, more);
    else room.add(tx, more);
    if (before === null) count.add(tx, 1);
  }

  /** Returns how many bytes it had; 0 when there was none. */
  #remove(tx: Tx, kind: string, name: string, version: number): number {
    const key = keyOf(kind, name, version);
    const before = this.#rows.get(tx, key);
    if (before === null) return 0;
    const bytes = bytesOf(before);
    this.#bytes.of("documents").add(tx, -bytes);
    this.#countOf(kind).add(tx, -1);
    this.#rows.remove(tx, key);
    return bytes;
  }

  #countOf(kind: string): Amount {
    return this.#bytes.amounts.of(`documents of ${kind}`);
  }

  /** One version, or the highest. */
  find(tx: ReadTx, kind: string, name: string, version?: number): Document | null {
    return version === undefined ? this.#highest(tx, kind, name) : this.#rows.get(tx, keyOf(kind, name, version));
  }

  /** A fork with thousands of tasks looks for the same documents in each of its decisions. */
  #highest(tx: ReadTx, kind: string, name: string): Document | null {
    if (!tx.isOperation || this.#rows.dirty) return this.#search(tx, kind, name);
    const key = keyOf(kind, name, 0);
    const version = this.#found.get(key);
    if (version !== undefined) return version === null ? null : this.#rows.get(tx, keyOf(kind, name, version));
    const found = this.#search(tx, kind, name);
    if (this.#found.size >= foundMax) this.#found.clear();
    this.#found.set(key, found === null ? null : found.version);
    return found;
  }

  /** The cost depends on the changes of this batch, not on the number of versions. */
  #search(tx: ReadTx, kind: string, name: string): Document | null {
    let found: Document | null = null;
    for (const row of this.#rows.pending(tx)) {
      if (row.kind === kind && row.name === name && row.version > (found?.version ?? -1)) found = row;
    }
    let version = this.#highestBelow(tx, kind, name, Number.MAX_SAFE_INTEGER);
    while (version !== undefined && version > (found?.version ?? -1)) {
      if (!this.#rows.isRemoved(tx, keyOf(kind, name, version))) return this.#rows.get(tx, keyOf(kind, name, version));
      version = this.#highestBelow(tx, kind, name, version);
    }
    return found;
  }

  /** The highest version below another one; undefined when there is none. */
  #highestBelow(tx: ReadTx, kind: string, name: string, version: number): number | undefined {
    const below = { by, equal: [kind, name], below: [version], backwards: true, limit: 1 };
    for (const found of this.#versions.scan(tx, below)) return found.version;
    return undefined;
  }

  /** Reads more rows than one slice removes, because the scan may also find rows that the batch has removed. */
  #someVersions(tx: ReadTx, kind: string, name: string): number[] {
    const versions = new Set<number>();
    for (const row of this.#rows.pending(tx)) if (row.kind === kind && row.name === name) versions.add(row.version);
    for (const { version } of this.#versions.scan(tx, { by, equal: [kind, name] })) {
      if (versions.size > rowsMax) break;
      if (!this.#rows.isRemoved(tx, keyOf(kind, name, version))) versions.add(version);
    }
    return [...versions];
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

function tooMany(kind: string): LongshoreError {
  return new LongshoreError(
    "LONGSHORE_LIMIT",
    `There are ${documentsMax} documents of kind ${kind} already, which is the limit: remove some first.`,
  );
}
