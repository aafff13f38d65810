// Lists of the API that are read page by page.

import type { Query, Requests } from "./requests.ts";

interface Page<Item> {
  readonly items: readonly Item[];
  readonly next: string | null;
}

interface Listing {
  readonly query: Query;
  /** The parameter that names the place to read on from. */
  readonly cursor: "before" | "after";
  readonly signal?: AbortSignal | undefined;
}

/** Few requests for a long list, and short replies. */
const pageItems = 200;

export async function* pagesOf<Item>(
  requests: Requests,
  path: string,
  { query, cursor, signal }: Listing,
): AsyncGenerator<Item, void, void> {
  for (let next: string | null | undefined; next !== null; ) {
    const page: Page<Item> = await requests.get(path, { query: { ...query, limit: pageItems, [cursor]: next }, signal });
    yield* page.items;
    next = page.next;
  }
}
