// Writes a page of a list as JSON, in slices, because a page may have a thousand items of several kilobytes. Every list of this API is
// written here. The body of an item is made when its turn has come, so no two slices of a page are in one turn of the event loop.

import { writeExact } from "../../../core/json/json-exact.ts";
import { type Growth, shortBytes } from "../../../core/list-text.ts";
import type { Reader } from "../../../engine/run/reader.ts";
import type { HttpReply } from "../../../net/http/http.ts";

/** Items that are written without a pause: one to two milliseconds. */
const itemsAtOnce = 50;
/** The work for one item in a turn of the event loop, in rows: the item is copied, written and counted. */
const itemRows = 4;

/** The readers of this API, which take turns. */
export type PageReader = Pick<Reader, "longBody" | "turn">;

/** `bodyOf` returns undefined for an item that is left out. */
export type BodyOf<Item> = (item: Item) => unknown;

export async function jsonPage<Item>(
  reader: PageReader,
  { items, next, ...more }: { readonly items: readonly Item[]; readonly next: string | null },
  bodyOf: BodyOf<Item> = (item) => item,
): Promise<HttpReply> {
  return longReply(reader, async (growth) => {
    const pieces = await listPieces({ reader, growth }, items, bodyOf);
    return ['{"items":[', ...pieces, `],${writeExact({ next, ...more }).slice(1)}`];
  });
}

/** A response whose text is made of the pieces that `make` returns. */
export async function longReply(reader: PageReader, make: (growth: Growth) => Promise<readonly string[]>): Promise<HttpReply> {
  return { status: 200, headers: { "content-type": "application/json" }, body: await reader.longBody(make) };
}

/** The items of a JSON list, with commas between them. */
export async function listPieces<Item>(
  { reader, growth }: { readonly reader: PageReader; readonly growth: Growth },
  items: readonly Item[],
  bodyOf: BodyOf<Item>,
): Promise<string[]> {
  const pieces: string[] = [];
  for (let at = 0; at < items.length; ) {
    await reader.turn(itemsAtOnce * itemRows);
    const end = Math.min(at + itemsAtOnce, items.length);
    const texts: string[] = [];
    // Values of many kilobytes fill a slice with fewer items.
    for (let chars = 0; at < end && chars < shortBytes; at++) {
      const made = await bodyOf(items[at] as Item);
      if (made === undefined) continue;
      const text = writeExact(made);
      chars += text.length;
      texts.push(text);
    }
    if (texts.length === 0) continue;
    const piece = `${pieces.length === 0 ? "" : ","}${texts.join(",")}`;
    growth.count(piece.length);
    pieces.push(piece);
    await growth.turn();
  }
  return pieces;
}
