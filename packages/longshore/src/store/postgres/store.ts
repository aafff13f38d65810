// The store on PostgreSQL: rows and contents of blobs in one schema, for one server at a time.

import { hostname } from "node:os";
import { LongshoreError, toError } from "../../core/errors.ts";
import type { Store } from "../../engine/store.ts";
import { type DatabaseOptions, openDatabase } from "./database.ts";
import { Unsent } from "./link.ts";

export interface PostgresOptions extends Pick<DatabaseOptions, "url" | "leaseMs"> {
  /** The name of this server, for people. */
  readonly node?: string;
}

export async function openPostgres({ url, leaseMs, node = `${hostname()}/${process.pid}` }: PostgresOptions): Promise<Store> {
  try {
    const { rows, blobs, clock, wasServed, close } = await openDatabase({ url, leaseMs, node });
    return { wasServed, rows, contents: blobs, clock, checkRest: () => {}, inWords: (error) => inWords(error, url), close };
  } catch (error) {
    throw inWords(error, url);
  }
}

/** Refused before anything was done: who may connect, which databases there are, which rights a role has. */
const refusals = /^(?:28|3D|42501)/;

/** An error of the start with what to do about it. The password stays out of it. */
function inWords(error: unknown, url: string): unknown {
  if (error instanceof LongshoreError) return error;
  const cause = error instanceof Unsent ? error.cause : error;
  const code = String((cause as { code?: unknown }).code ?? "");
  const { host, pathname } = new URL(url);
  const where = `PostgreSQL at ${host}${pathname}`;
  const { message } = toError(cause);
  if (refusals.test(code)) return new LongshoreError("LONGSHORE_BAD_CONFIG", `${where} refuses this server: ${message}.`, { cause });
  if (/^[0-9A-Z]{5}$/.test(code) && !/^(?:08|53|57)/.test(code)) return error;
  return new LongshoreError(
    "LONGSHORE_STORE_UNAVAILABLE",
    `${where} cannot be reached: ${message}. Start it, or name another with --store.`,
    {
      cause,
    },
  );
}
