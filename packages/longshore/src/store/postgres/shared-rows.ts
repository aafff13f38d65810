// The rows and blobs of a schema, for a server that does not own it. It reads what is committed, while another server owns the data.

import type { BlobContents } from "../../engine/blob/contents.ts";
import type { RowStore } from "../../engine/rows.ts";
import { readAddress } from "./address.ts";
import { PostgresBlobs } from "./blobs.ts";
import { connector } from "./connect.ts";
import { planSettings, sharedReadersMax } from "./database.ts";
import { Readers } from "./readers.ts";
import { postgresRows } from "./row-store.ts";
import { type Catalog, readCatalog } from "./schema.ts";
import { Statements } from "./statements.ts";

export interface SharedRows {
  /** Each load sees one state of the data. */
  readonly rows: RowStore;
  readonly contents: Pick<BlobContents, "open">;
  /** The time of PostgreSQL, which the times in rows are based on. */
  now(): Promise<number>;
  close(): Promise<void>;
}

/** The statements of one message are one transaction. With this setting, all of them see the same state of the data. */
const oneState = "-c default_transaction_isolation=repeatable\\ read";

/** Never reads from a standby, which may lack work that the owner has acknowledged. */
export async function openSharedRows(url: string): Promise<SharedRows> {
  const address = readAddress(url);
  const { schema } = address;
  const connect = await connector(address);
  const settings = `${planSettings} ${oneState} -c search_path=${schema}`;
  const setup = await connect({ role: "setup", settings });
  let catalog: Catalog;
  try {
    catalog = await readCatalog(setup, schema);
  } finally {
    await setup.end();
  }
  const statements = new Statements();
  const readers = new Readers(sharedReadersMax, () => connect({ role: "read", settings }));
  const rows = postgresRows({
    ...{ catalog, statements, isOwned: () => false, isGone: () => null },
    read: (calls) => readers.read(calls),
    commit: () => Promise.reject(new Error("Only the owner of the data writes.")),
  });
  const contents = new PostgresBlobs({ statements, run: (calls) => readers.read(calls), now: Date.now });
  const time = statements.of("SELECT (extract(epoch FROM now()) * 1000)::bigint");
  return {
    ...{ rows, contents },
    now: async () => Number((await readers.read([{ statement: time, values: [] }]))[0]?.[0]?.[0]),
    close: () => readers.close(),
  };
}
