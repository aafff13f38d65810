// The store on PostgreSQL: rows and contents of blobs in one schema, for one server at a time.

import { hostname } from "node:os";
import type { Store } from "../../engine/store.ts";
import { readAddress } from "./address.ts";
import { type DatabaseOptions, openDatabase } from "./database.ts";
import { startError } from "./start-error.ts";

export interface PostgresOptions extends Pick<DatabaseOptions, "url" | "leaseMs"> {
  /** The name of this server, for people. */
  readonly node?: string;
  /** Receives what an operator should know. */
  readonly warn?: (message: string) => void;
}

/** All tables of the schema with their indexes and long values, blobs included. */
const tableBytes =
  "SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'";

const bytesByTable =
  "SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' ORDER BY 2 DESC";

export async function openPostgres({ url, leaseMs, node = nodeName(), warn = () => {} }: PostgresOptions): Promise<Store> {
  const address = readAddress(url);
  try {
    const { rows, blobs, clock, lease, wasServed, weaknesses, query, close } = await openDatabase({ url, leaseMs, node });
    for (const weakness of weaknesses) warn(`PostgreSQL at ${address.shown}: ${weakness}`);
    const inWords = (error: unknown) => startError(error, address);
    const size = async () => [{ name: "tables", bytes: Number((await query(tableBytes))[0]?.[0] ?? 0) }];
    const tableSizes = async () => (await query(bytesByTable)).map(([name, bytes]) => ({ name: String(name), bytes: Number(bytes) }));
    const sizes = { size, tableSizes };
    return { shown: "PostgreSQL", wasServed, rows, contents: blobs, clock, lease, checkRest: () => {}, ...sizes, inWords, close };
  } catch (error) {
    throw startError(error, address);
  }
}

export function nodeName(): string {
  return `${hostname()}/${process.pid}`;
}
