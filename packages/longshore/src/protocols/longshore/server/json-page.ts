// Writes a page of a list as JSON, in slices, because a page may have a thousand items of several kilobytes.

import { writeExact } from "../../../core/json/json-exact.ts";
import type { Reader } from "../../../engine/run/reader.ts";
import type { HttpReply } from "../../../net/http/http.ts";

/** Items that are written without a pause: one to two milliseconds. */
const itemsAtOnce = 50;
/** The work for one item in a turn of the event loop, in rows: the item is copied, written and counted. */
const itemRows = 4;

export async function jsonPage<Item>(
  reader: Pick<Reader, "longBody" | "turn">,
  { items, next, ...more }: { readonly items: readonly Item[]; readonly next: string | null },
  bodyOf: (item: Item) => unknown = (item) => item,
): Promise<HttpReply> {
  const body = await reader.longBody(async (growth) => {
    const texts = ['{"items":['];
    for (let from = 0; from < items.length; from += itemsAtOnce) {
      await reader.turn(itemsAtOnce * itemRows);
      const text = writeExact(items.slice(from, from + itemsAtOnce).map(bodyOf)).slice(1, -1);
      growth.count(text.length);
      texts.push(from === 0 ? text : `,${text}`);
      await growth.turn();
    }
    texts.push(`],${writeExact({ next, ...more }).slice(1)}`);
    return texts;
  });
  return { status: 200, headers: { "content-type": "application/json" }, body };
}
