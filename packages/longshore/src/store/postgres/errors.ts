// Converts errors of PostgreSQL to errors of the engine.

import { LongshoreError, toError } from "../../core/errors.ts";
import { Taken, Unavailable } from "../../engine/rows.ts";
import { Lost, Unsent } from "./link.ts";

/** Classes of errors that do not depend on the rows and may disappear, such as a lost connection or a read-only server. */
const passing = /^(?:08|53|57|58|40|25006|55P03)/;
const uniqueViolation = "23505";
const divisionByZero = "22012";
const lockNotAvailable = "55P03";
const unknownCharacter = "22021";

function codeOf(error: unknown): string {
  return String((error as { code?: unknown }).code ?? "");
}

/** The error for a commit or a read that was not carried out. */
export function inWords(error: unknown): Error {
  const code = codeOf(error);
  if (code === uniqueViolation) return new Taken(toError(error));
  const isAway = error instanceof Lost || error instanceof Unsent;
  return isAway || passing.test(code) ? unavailable(error) : toError(error);
}

export function unavailable(error: unknown): Unavailable {
  return new Unavailable(toError(error), "PostgreSQL cannot be reached, or cannot be written now", "Look at its log and at the network");
}

/**
 * True when a text has a NUL character. Texts are not checked before they are written: that would slow down all commits, and this is rare.
 */
export function hasUnstorableText(error: unknown): boolean {
  return codeOf(error) === unknownCharacter;
}

/** True when the fence, the first statement of each transaction, found that another server owns the data. */
export function isFenced(error: unknown): boolean {
  return codeOf(error) === divisionByZero;
}

/** True when the session has waited for a lock up to its limit. */
export function isLockTimeout(error: unknown): boolean {
  return codeOf(error) === lockNotAvailable;
}

export function deposed(): LongshoreError {
  return new LongshoreError(
    "LONGSHORE_STORE_UNAVAILABLE",
    "Another Longshore server has taken over this data, because this server did not renew its lease in time. This server writes nothing more.",
  );
}
