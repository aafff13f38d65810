// Reads a list of the server page by page: a command may ask for more than the server puts into one page.

import type { Page } from "./api.ts";
import type { Client, Query } from "./client.ts";

/** The largest page of the server. */
const pageMax = 1_000;

export interface Listing {
  readonly path: string;
  readonly query?: Query;
  /** The query parameter that continues a list after its `next`. */
  readonly cursor: "after" | "before";
  /** Default: the whole list. */
  readonly limit?: number;
}

/** At most `limit` items, as one page. The list continues at its `next`, which is null at the end of the list. */
export async function readList<Item>(client: Client, { path, query = {}, cursor, limit = Infinity }: Listing): Promise<Page<Item>> {
  const items: Item[] = [];
  let next: string | null = null;
  do {
    const size = Math.min(pageMax, limit - items.length);
    const page: Page<Item> = await client.get(path, { ...query, ...(next === null ? {} : { [cursor]: next }), limit: size });
    items.push(...page.items);
    next = page.next;
    // A page may be short, even empty, and still have a next.
  } while (next !== null && items.length < limit);
  return { items, next };
}
