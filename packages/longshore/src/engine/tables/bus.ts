// The tables of the embedded bus. The id of a record has its topic in the high bits and its number in the low bits. So a topic is one range
// of one tree, and an append needs no further index.

import type { TableSpec } from "../rows.ts";
import { plainTable } from "./plain-table.ts";

export interface TopicRow {
  readonly id: number;
  readonly name: string;
}

export const topicTable = plainTable<TopicRow>("bus_topic", ["id"], { id: "id", name: "name" });

export interface RecordRow {
  readonly id: number;
  readonly key: string | null;
  readonly at: number;
  /** Stored as bytes, because one of the drivers cuts texts at a NUL. */
  readonly value: Uint8Array;
}

export const recordTable: TableSpec<RecordRow> = {
  name: "bus_record",
  key: ["id"],
  columns: [
    ["id", ({ id }) => id],
    ["key", ({ key }) => key],
    ["at", ({ at }) => at],
    ["value", ({ value }) => value],
  ],
  of: (row) => ({ id: row.id as number, key: row.key as string | null, at: row.at as number, value: row.value as Uint8Array }),
};

/** A record without its value. */
export interface RecordHead {
  readonly id: number;
  readonly at: number;
  /** Bytes of key and value. */
  readonly bytes: number;
}

export const recordHeadTable: TableSpec<RecordHead> = {
  name: "bus_record",
  key: ["id"],
  columns: [
    ["id", ({ id }) => id],
    ["at", ({ at }) => at],
  ],
  sizes: [["bytes", ["key", "value"]]],
  of: (row) => ({ id: row.id as number, at: row.at as number, bytes: row.bytes as number }),
};

export interface GroupRow {
  readonly topic: number;
  readonly name: string;
  /** All records up to this number are done. */
  readonly position: number;
  /** First and last number of further ranges that are done. */
  readonly done: readonly (readonly [number, number])[];
  readonly seenAt: number;
}

export const groupTable: TableSpec<GroupRow> = {
  name: "bus_group",
  key: ["topic", "name"],
  columns: [
    ["topic", ({ topic }) => topic],
    ["name", ({ name }) => name],
    ["position", ({ position }) => position],
    ["done", ({ done }) => JSON.stringify(done)],
    ["seen_at", ({ seenAt }) => seenAt],
  ],
  of: (row) => ({
    topic: row.topic as number,
    name: row.name as string,
    position: row.position as number,
    done: JSON.parse(row.done as string) as [number, number][],
    seenAt: row.seen_at as number,
  }),
};
