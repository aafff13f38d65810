// Checks of calls with parts, the same for every store.

import { LongshoreError } from "../../../../core/errors.ts";
import { isName } from "../../../../core/names.ts";
import { partsMax } from "./artifacts.ts";

/** Characters of a uid: it is a key in every store. Hashes and paths are far shorter. */
const uidCharsMax = 512;

export function checkParts(parts: readonly { readonly uid: string }[]): void {
  if (parts.length > partsMax) {
    const expected = `at most ${partsMax} parts in one call`;
    throw new LongshoreError("LONGSHORE_LIMIT", `The call has ${parts.length} parts, expected ${expected}.`, {
      detail: { field: "parts", expected },
    });
  }
  parts.forEach(({ uid }, at) => {
    if (uid.length > 0 && uid.length <= uidCharsMax && isName(uid)) return;
    const field = `parts[${at}].uid`;
    const expected = `a text of 1 to ${uidCharsMax} characters of valid Unicode without NUL`;
    const was = uid.length > uidCharsMax ? `${uid.length} characters long` : JSON.stringify(uid);
    throw new LongshoreError("LONGSHORE_BAD_INPUT", `${field} is ${was}, expected ${expected}.`, { detail: { field, expected } });
  });
}
