// Texts that are stored as keys: names, ids and start keys. Two different texts must stay different when they are stored.

import { LongshoreError } from "./errors.ts";
import { shown } from "./text.ts";

const expected = "valid Unicode without the NUL character";

/** Returns whether the store keeps the text unchanged: see `checkName`. */
export function isName(text: string): boolean {
  return text.isWellFormed() && !text.includes("\u0000");
}

/**
 * Throws LONGSHORE_BAD_INPUT for a text that the store would change. It writes half of a surrogate pair as U+FFFD, and a text that is read
 * back ends at its first NUL. So two different texts could become equal.
 */
export function checkName(name: string, field: string, whose?: string): void {
  if (isName(name)) return;
  const what = whose === undefined ? field : `The ${field} of ${whose}`;
  throw new LongshoreError("LONGSHORE_BAD_INPUT", `${what} is ${shown(name)}, expected ${expected}.`, { detail: { field, expected } });
}
