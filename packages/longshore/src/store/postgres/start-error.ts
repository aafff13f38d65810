// An error of the start, with what to do about it. The password stays out of it.

import { LongshoreError, toError } from "../../core/errors.ts";
import type { PostgresAddress } from "./address.ts";
import { textOf } from "./connect.ts";
import { Unsent } from "./link.ts";

/** Refused before anything was done: who may connect, which databases there are, which rights a role has. */
const refusals = /^(?:28|3D|42501)/;
/** What a password is missing for has no code. */
const noPassword = /SASL|client password must be a string/;
/** A pooler takes no settings of sessions. */
const pooler = /unsupported startup parameter/;
/** Codes of PostgreSQL that mean that it is away or busy. */
const away = /^(?:08|25006|53|57)/;
const sqlState = /^[0-9A-Z]{5}$/;
/** Codes of the machine, such as EPIPE, have none. */
const digit = /\d/;

export function startError(error: unknown, { shown }: Pick<PostgresAddress, "shown">): unknown {
  if (error instanceof LongshoreError) return error;
  const cause = error instanceof Unsent ? error.cause : error;
  const code = String((cause as { code?: unknown }).code ?? "");
  const message = textOf(toError(cause));
  const refused = (why: string) => new LongshoreError("LONGSHORE_BAD_CONFIG", `PostgreSQL at ${shown} ${why}`, { cause });
  if (noPassword.test(message))
    return refused("asks for a password. Give it in PGPASSWORD, in the file ~/.pgpass, or in the address of the store.");
  if (pooler.test(message))
    return refused(`is behind a connection pooler (${message}). Name PostgreSQL itself: Longshore needs whole sessions.`);
  if (refusals.test(code)) return refused(`refuses this server: ${message}.`);
  if (sqlState.test(code) && digit.test(code) && !away.test(code)) return error;
  return new LongshoreError(
    "LONGSHORE_STORE_UNAVAILABLE",
    `PostgreSQL at ${shown} cannot be used: ${message}. Start it, or name another with --store.`,
    { cause },
  );
}
