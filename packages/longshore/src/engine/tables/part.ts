// The tables of parts. A life of a task is named by its first attempt.

import type { Part } from "../part/store.ts";
import type { Column, TableSpec } from "../rows.ts";
import { plainTable } from "./plain-table.ts";

export interface PartRow extends Part {
  readonly taskId: string;
  readonly life: number;
}

const name = "part";
const key = ["task_id", "life", "sequence"];

/** The columns that a later hand-out may replace. */
export const partValue: readonly Column<PartRow>[] = [
  ["grant_count", ({ grant }) => grant],
  ["at", ({ at }) => at],
  ["value", ({ value }) => value],
];

export const partTable: TableSpec<PartRow> = {
  ...{ name, key },
  columns: [
    ["task_id", ({ taskId }) => taskId],
    ["life", ({ life }) => life],
    ["sequence", ({ sequence }) => sequence],
    ["uid", ({ uid }) => uid],
    ...partValue,
  ],
  of: (row) => ({
    taskId: row.task_id as string,
    life: row.life as number,
    sequence: row.sequence as number,
    uid: row.uid as string,
    grant: row.grant_count as number,
    at: row.at as number,
    value: row.value as string,
  }),
};

/** A part without its value. */
export interface PartHead {
  readonly uid: string;
  readonly grant: number;
  /** Bytes of the value. */
  readonly bytes: number;
}

export const partHeadTable: TableSpec<PartHead> = {
  ...{ name, key },
  columns: [
    ["uid", ({ uid }) => uid],
    ["grant_count", ({ grant }) => grant],
  ],
  sizes: [["bytes", ["value"]]],
  of: (row) => ({ uid: row.uid as string, grant: row.grant_count as number, bytes: row.bytes as number }),
};

export const partNumberTable = plainTable<Pick<PartRow, "sequence">>(name, key, { sequence: "sequence" });

export const partTimeTable = plainTable<Pick<PartRow, "sequence" | "at">>(name, key, { sequence: "sequence", at: "at" });

/** Hashes of the uids of parts, four bytes each, from the part with this number on: a row for each commit. */
export interface UidRow {
  readonly taskId: string;
  readonly life: number;
  readonly first: number;
  readonly hashes: Uint8Array;
}

export const uidTable = plainTable<UidRow>("part_uid", ["task_id", "life", "first"], {
  taskId: "task_id",
  life: "life",
  first: "first",
  hashes: "hashes",
});

/** A stretch of parts that a reading task has finished with, including both numbers. */
export interface StretchRow {
  readonly reader: string;
  readonly readerLife: number;
  readonly source: string;
  readonly sourceLife: number;
  readonly first: number;
  readonly last: number;
}

export const stretchTable = plainTable<StretchRow>("part_read", ["reader", "reader_life", "source", "source_life", "first"], {
  reader: "reader",
  readerLife: "reader_life",
  source: "source",
  sourceLife: "source_life",
  first: "first",
  last: "last",
});
