// Collects the entries of an answer in one message, bounded before they are in memory. REST answers are sent in pieces instead.

import { LongshoreError } from "../../../../core/errors.ts";
import { payloadRequestBytes } from "../../../../core/payload-size.ts";

/** Characters of outputs: as many as a gRPC message may have. */
const charsMax = payloadRequestBytes;

/** `each` counts the characters of an entry before it makes it. Rejects with LONGSHORE_LIMIT. */
export async function gathered<Entry>(each: (count: (chars: number) => void) => AsyncIterable<Entry>): Promise<Entry[]> {
  const entries: Entry[] = [];
  let chars = 0;
  const count = (more: number) => {
    chars += more;
    if (chars > charsMax) throw tooMuch();
  };
  for await (const entry of each(count)) entries.push(entry);
  return entries;
}

function tooMuch(): LongshoreError {
  const message = `The outputs have more than ${charsMax} characters together, which is the limit: read them one by one, or over REST.`;
  return new LongshoreError("LONGSHORE_LIMIT", message, { detail: { field: "answer", expected: `at most ${charsMax} characters` } });
}
