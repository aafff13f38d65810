// Texts that are kept as keys: names, ids and keys of starts. Two texts must not become one when they are written down.

import { LongshoreError } from "./errors.ts";
import { shown } from "./text.ts";

const expected = "valid Unicode without the NUL character";

/** Whether the store keeps the text as it is: see `checkName`. */
export function isName(text: string): boolean {
  return text.isWellFormed() && !text.includes("\u0000");
}

/**
 * Throws LONGSHORE_BAD_INPUT for a text that the store would change: half of a surrogate pair is written as U+FFFD, the first as well as
 * the second, and a text ends at its first NUL when it is read back. Either would make it equal to another one.
 */
export function checkName(name: string, field: string, whose?: string): void {
  if (isName(name)) return;
  const what = whose === undefined ? field : `The ${field} of ${whose}`;
  throw new LongshoreError("LONGSHORE_BAD_INPUT", `${what} is ${shown(name)}, expected ${expected}.`, { detail: { field, expected } });
}
