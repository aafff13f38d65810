// Reads data in PostgreSQL as it was at one moment. This also works while a server runs, and on a standby.

import { LongshoreError } from "../../core/errors.ts";
import type { RowStore } from "../../engine/rows.ts";
import { type PostgresAddress, readAddress } from "./address.ts";
import { connector } from "./connect.ts";
import { planSettings } from "./database.ts";
import { inWords } from "./errors.ts";
import { type Call, Link } from "./link.ts";
import type { PgClient, RawRow } from "./package.ts";
import { postgresRows } from "./row-store.ts";
import { type Catalog, readCatalog, schemaVersion } from "./schema.ts";
import { startError } from "./start-error.ts";
import { Statements } from "./statements.ts";

export interface PostgresSnapshot {
  readonly rows: RowStore;
  /** Each blob with the number of bytes that it should have, and the number that is stored; null when nothing is stored. */
  blobs(): AsyncGenerator<{ readonly hash: string; readonly bytes: number; readonly found: number | null }>;
  close(): Promise<void>;
}

/** Maximum number of blobs that one statement reads. */
const pageRows = 500;

export async function openSnapshot(url: string): Promise<PostgresSnapshot> {
  const address = readAddress(url);
  try {
    return await open(address);
  } catch (error) {
    throw startError(error, address);
  }
}

async function open(address: PostgresAddress): Promise<PostgresSnapshot> {
  const connect = await connector(address);
  const settings = `${planSettings} -c search_path=${address.schema}`;
  const client = await connect({ role: "verify", settings, readOnly: true });
  let catalog: Catalog;
  try {
    await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    await refuseOtherVersion(client, address);
    catalog = await readCatalog(client, address.schema);
  } catch (error) {
    // The error that is thrown has the reason.
    await client.end().catch(() => {});
    throw error;
  }
  let isUsed = false;
  const link = new Link(async () => {
    // Another connection would see a later moment.
    if (isUsed) throw new Error("The connection to PostgreSQL was lost during the read");
    isUsed = true;
    return client;
  });
  const statements = new Statements();
  const read = async (calls: readonly Call[]): Promise<RawRow[][]> => {
    try {
      return await link.run(calls);
    } catch (error) {
      throw inWords(error);
    }
  };
  const rows = postgresRows({
    ...{ catalog, statements, read, isOwned: () => false, isGone: () => null },
    commit: () => Promise.reject(new Error("A snapshot is only read.")),
  });
  return { rows, blobs: () => blobsOf((sql, ...values) => read([{ statement: statements.of(sql), values }])), close: () => link.close() };
}

async function* blobsOf(read: (sql: string, ...values: string[]) => Promise<RawRow[][]>): ReturnType<PostgresSnapshot["blobs"]> {
  for (let after = ""; ; ) {
    const [page = []] = await read(
      `SELECT blob.hash, blob.bytes, sum(octet_length(chunk.bytes)) FROM (SELECT hash, bytes FROM blob WHERE hash > ? ORDER BY hash LIMIT ${pageRows}) AS blob
         LEFT JOIN blob_chunk AS chunk ON chunk.hash = blob.hash GROUP BY blob.hash, blob.bytes ORDER BY blob.hash`,
      after,
    );
    for (const [hash, bytes, found] of page)
      yield { hash: hash as string, bytes: Number(bytes), found: found === null ? null : Number(found) };
    if (page.length < pageRows) return;
    after = page.at(-1)?.[0] as string;
  }
}

async function refuseOtherVersion(client: PgClient, { schema, shown }: PostgresAddress): Promise<void> {
  const there = await client.query(`SELECT to_regclass('${schema}.meta') IS NOT NULL AS there`);
  if (there.rows[0]?.there !== true)
    throw new LongshoreError(
      "LONGSHORE_NOT_FOUND",
      `There are no data of a server in ${shown}: name its database and schema with --store.`,
    );
  const { rows } = await client.query(`SELECT schema_version FROM ${schema}.meta`);
  const version = Number(rows[0]?.schema_version);
  if (version === schemaVersion) return;
  const advice = version > schemaVersion ? "install a newer Longshore" : "start a server on it once, which brings it up to date";
  throw new LongshoreError(
    "LONGSHORE_BAD_CONFIG",
    `The data in ${shown} have schema version ${version}, expected ${schemaVersion}: ${advice}.`,
  );
}
