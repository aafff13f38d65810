// Explains why a server could not start on PostgreSQL, and what to do. The message never contains the password.

import { LongshoreError, toError } from "../../core/errors.ts";
import type { PostgresAddress } from "./address.ts";
import { textOf } from "./connect.ts";
import { Unsent } from "./link.ts";

/** Codes of refusals: the role may not connect, the database does not exist, or a right is missing. */
const refusals = /^(?:28|3D|42501)/;
/** The library's error for a missing password has no code, so it is recognised by its text. */
const noPassword = /SASL|client password must be a string/;
/** A pooler does not accept settings of sessions. */
const pooler = /unsupported startup parameter/;
/** Codes of PostgreSQL that mean that it is not reachable or busy. */
const away = /^(?:08|25006|53|57)/;
const sqlState = /^[0-9A-Z]{5}$/;
/** Codes of the operating system, such as EPIPE, have no digit. */
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
