// What a store brings: the interfaces that a second database implements. A store keeps rows and finds them again; what they mean is decided
// by the engine, which is put together on this value.

import type { LongshoreError } from "../core/errors.ts";
import type { Slices } from "../core/slices/slices.ts";
import type { BlobContents } from "./blob/contents.ts";
import type { Lanes } from "./board/lanes.ts";
import type { TaskRow } from "./board/task.ts";
import type { RowStore } from "./rows.ts";
import type { Definition } from "./run/dialect.ts";
import type { HistoryReader } from "./run/history.ts";
import type { PlanNode } from "./run/plan.ts";
import type { CountsView, Reader } from "./run/reader.ts";
import type { Run } from "./run/run.ts";
import type { Later, ReadRows, ReadTx } from "./tx.ts";

export interface Store {
  /** A server has written to it before: it may be a copy of what that one made of it later. */
  readonly wasServed: boolean;
  /** Rows by key and by index, and their transactions. */
  readonly rows: RowStore;
  /** Contents of blobs. */
  readonly contents: BlobContents;
  /** Lists, searches and views for people. */
  reader(deps: ReaderDeps): Reader;
  /** Runs and tasks with all of their attempts, for a checker. */
  history(deps: HistoryDeps): HistoryReader;
  /** Checks what was too much for the start, and calls `refuse` when that is damaged. */
  checkRest(refuse: (damage: LongshoreError) => void): void;
  /** An error of the start with what to do about it, where it is a matter of the machine. */
  inWords(error: unknown): unknown;
  /** Called once, after the last commit. */
  close(): Later<void>;
}

/** Rows as memory has them: newer than their tables by what is not written yet. */
export interface MemoryRows<R> {
  get(tx: ReadTx, key: string): R | null;
  /** What memory has made of a row that was read from its table; null when it was removed. */
  newest(tx: ReadTx, key: string, stored: R): R | null;
  /** Undefined when it is not in memory. */
  kept(key: string): R | undefined;
}

/** What a reader gets from the engine. */
export interface ReaderDeps {
  /** How rows that memory may have are read. */
  readonly read: ReadRows;
  readonly tasks: MemoryRows<TaskRow>;
  readonly runs: Pick<MemoryRows<Run>, "get" | "kept">;
  readonly definitions: { newest(tx: ReadTx, name: string): Definition | null; byId(tx: ReadTx, id: string): Definition | null };
  readonly lanes: Pick<Lanes, "all">;
  readonly counts: CountsView & { counted(): Promise<void> };
  /** Bounds what all readers together do in one turn of the event loop. */
  readonly slices: Slices;
}

export interface HistoryDeps {
  readonly read: ReadRows;
  /** What a node of a definition is. Undefined for a definition that cannot be read. */
  kindOf(tx: ReadTx, definitionId: string, node: number): PlanNode["kind"] | undefined;
}
