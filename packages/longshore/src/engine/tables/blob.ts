// The table of blobs.

import type { StoredBlob } from "../blob/blob.ts";
import { Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { Column, RowStore, TableSpec } from "../rows.ts";

export interface Blob extends StoredBlob {
  readonly createdAt: number;
  readonly usedAt: number;
}

const name = "blob";
const key = ["hash"];

const fixed: readonly Column<Blob>[] = [
  ["hash", ({ hash }) => hash],
  ["bytes", ({ bytes }) => bytes],
  ["created_at", ({ createdAt }) => createdAt],
];
const changing: readonly Column<Blob>[] = [
  ["used_at", ({ usedAt }) => usedAt],
  ["note", ({ note }) => note],
];

export const blobTable: TableSpec<Blob> = {
  ...{ name, key },
  columns: [...fixed, ...changing],
  of: (row) => ({
    hash: row.hash as string,
    bytes: row.bytes as number,
    createdAt: row.created_at as number,
    usedAt: row.used_at as number,
    note: row.note as string | null,
  }),
};

/** The time of last use only: the index contains it. */
export const blobUseTable: TableSpec<Pick<Blob, "usedAt">> = {
  ...{ name, key },
  columns: [["used_at", ({ usedAt }) => usedAt]],
  of: (row) => ({ usedAt: row.used_at as number }),
};

export function blobRows(store: RowStore, commit: GroupCommit): Rows<Blob> {
  const rows = store.table(blobTable);
  return new Rows<Blob>(commit, {
    load: (tx, hash) => rows.get(tx, hash),
    save: (blob, isNew) => (isNew ? rows.insert([blob]) : rows.write(blob, changing)),
    remove: (hash) => rows.remove([hash]),
    keep: () => "no",
    keptMax: 0,
  });
}
