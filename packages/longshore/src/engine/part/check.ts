// Checks of a put, the same for every store.

import { LongshoreError } from "../../core/errors.ts";
import { checkName } from "../../core/names.ts";
import { type NewPart, partBytesMax, putPartsMax, uidLengthMax } from "./store.ts";

/** Throws LONGSHORE_BAD_INPUT for an invalid uid, and LONGSHORE_LIMIT when one call has too many or too large parts. */
export function checkParts(parts: readonly NewPart[]): void {
  checkCount(parts.length, "parts");
  let bytes = 0;
  parts.forEach(({ uid, value }, at) => {
    checkUid(uid, `parts[${at}].uid`);
    // A character takes at most three bytes, so most texts need not be measured.
    bytes += value.length * 3 > partBytesMax - bytes ? Buffer.byteLength(value) : value.length;
  });
  if (bytes > partBytesMax) throw tooMuch("parts", `${bytes} bytes of values`, `at most ${partBytesMax} bytes`);
}

export function checkUids(uids: readonly string[]): void {
  checkCount(uids.length, "uids");
}

function checkCount(count: number, field: string): void {
  if (count > putPartsMax) throw tooMuch(field, `${count} parts`, `at most ${putPartsMax} parts in one call`);
}

function checkUid(uid: string, field: string): void {
  checkName(uid, field);
  if (uid.length > 0 && uid.length <= uidLengthMax) return;
  const expected = `a text of 1 to ${uidLengthMax} characters`;
  const was = uid.length > uidLengthMax ? `${uid.length} characters long` : JSON.stringify(uid);
  throw new LongshoreError("LONGSHORE_BAD_INPUT", `${field} is ${was}, expected ${expected}.`, { detail: { field, expected } });
}

function tooMuch(field: string, was: string, expected: string): LongshoreError {
  return new LongshoreError("LONGSHORE_LIMIT", `The call has ${was}, expected ${expected}.`, { detail: { field, expected } });
}
