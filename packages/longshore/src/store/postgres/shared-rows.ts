// The rows and blobs of a schema, for a server that does not own it: it reads what is committed, beside the owner.

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
  /** PostgreSQL's time: that of the rows. */
  now(): Promise<number>;
  close(): Promise<void>;
}

/** The statements of one message are one transaction, and with this they see one state of the data. */
const oneState = "-c default_transaction_isolation=repeatable\\ read";

/** Never a standby: it may be behind what the owner has acknowledged. */
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
