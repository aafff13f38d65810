// What a durable function shows to clients.

import { LongshoreError } from "../../core/errors.ts";
import type { Json } from "../../core/json/json.ts";
import { sizeOf } from "../../core/text-size.ts";
import { shownValuesMax } from "../../core/turn.ts";

/** Throws LONGSHORE_BAD_OUTPUT when all that a function shows is too large together. */
export function refuseLarge(shown: Json): void {
  const { chars, values } = shownValuesMax;
  const size = sizeOf(shown, shownValuesMax);
  if (size.chars <= chars && size.values <= values) return;
  const expected = `at most ${chars} characters and ${values} values for all that it shows together`;
  const message = `set of a turn makes what the function shows too large, expected ${expected}. Show less, or store it elsewhere and show where.`;
  throw new LongshoreError("LONGSHORE_BAD_OUTPUT", message, { detail: { field: "set", expected } });
}
