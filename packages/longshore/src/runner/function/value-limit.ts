// The size limit of the values of a command of a durable function, if the transport has one.

import type { Json } from "../../core/json/json.ts";
import { sizeOf } from "../../core/text-size.ts";

/** Maximum size of one value of a command. */
export interface ValueLimit {
  /** The bytes of its JSON text in UTF-8. */
  readonly bytes: number;
  /** Values and names of members. */
  readonly values: number;
}

/** One character of a value takes at most six bytes of JSON. */
const charBytesMax = 6;

/** Why `what`, such as `the input of step price`, is too large for a command; undefined when it is not. */
export function tooLarge(what: string, value: Json, limit: ValueLimit | undefined): string | undefined {
  if (limit === undefined) return undefined;
  const { chars, values } = sizeOf(value, { chars: limit.bytes, values: limit.values });
  if (values > limit.values) return refusal(what, `more than ${limit.values} values`, `${limit.values} values`);
  if (chars * charBytesMax <= limit.bytes) return undefined;
  const bytes = chars > limit.bytes ? chars : Buffer.byteLength(JSON.stringify(value));
  if (bytes <= limit.bytes) return undefined;
  return refusal(what, chars > limit.bytes ? `more than ${limit.bytes} bytes` : `${bytes} bytes`, `${limit.bytes} bytes`);
}

function refusal(what: string, size: string, most: string): string {
  return `${what} has ${size} as JSON, over this transport at most ${most}: store it elsewhere, and pass on where.`;
}
