// The tables of parts. A life of a task is named by its first attempt.

import type { Part } from "../part/store.ts";
import type { Column, TableSpec } from "../rows.ts";

export interface PartRow extends Part {
  readonly taskId: string;
  readonly life: number;
}

const name = "part";
const key = ["task_id", "life", "sequence"];

/** What a later hand-out may replace. */
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

/** Without its value. */
export interface PartHead {
  readonly uid: string;
  readonly grant: number;
  /** Of its value. */
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

export const partNumberTable: TableSpec<Pick<PartRow, "sequence">> = {
  ...{ name, key },
  columns: [["sequence", ({ sequence }) => sequence]],
  of: (row) => ({ sequence: row.sequence as number }),
};

/** Hashes of the uids of parts, four bytes each, from the part with this number on: a row for each commit. */
export interface UidRow {
  readonly taskId: string;
  readonly life: number;
  readonly first: number;
  readonly hashes: Uint8Array;
}

export const uidTable: TableSpec<UidRow> = {
  name: "part_uid",
  key: ["task_id", "life", "first"],
  columns: [
    ["task_id", ({ taskId }) => taskId],
    ["life", ({ life }) => life],
    ["first", ({ first }) => first],
    ["hashes", ({ hashes }) => hashes],
  ],
  of: (row) => ({
    taskId: row.task_id as string,
    life: row.life as number,
    first: row.first as number,
    hashes: row.hashes as Uint8Array,
  }),
};

/** A stretch of parts that a reading task has finished with: both numbers belong to it. */
export interface StretchRow {
  readonly reader: string;
  readonly readerLife: number;
  readonly source: string;
  readonly sourceLife: number;
  readonly first: number;
  readonly last: number;
}

export const stretchTable: TableSpec<StretchRow> = {
  name: "part_read",
  key: ["reader", "reader_life", "source", "source_life", "first"],
  columns: [
    ["reader", ({ reader }) => reader],
    ["reader_life", ({ readerLife }) => readerLife],
    ["source", ({ source }) => source],
    ["source_life", ({ sourceLife }) => sourceLife],
    ["first", ({ first }) => first],
    ["last", ({ last }) => last],
  ],
  of: (row) => ({
    reader: row.reader as string,
    readerLife: row.reader_life as number,
    source: row.source as string,
    sourceLife: row.source_life as number,
    first: row.first as number,
    last: row.last as number,
  }),
};
