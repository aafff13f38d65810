// Prints a list of the server: as JSON, as a table, or a sentence when it is empty.

import type { Page } from "./api.ts";
import { connect, type Query } from "./client.ts";
import type { ConnectionOptions } from "./options.ts";
import { readList } from "./pages.ts";
import { printJson } from "./print-json.ts";
import { columnsOf, type Paint, painter, table } from "./terminal.ts";

export interface PrintedList<Item> {
  /** The path of the API. */
  readonly path: string;
  readonly query?: Query;
  /** The maximum number of items. Default: all. */
  readonly limit?: number;
  /** True for a list that the server returns in one piece. */
  readonly isWhole?: true;
  readonly empty: string;
  readonly columns: readonly string[];
  /** Items that the table leaves out; JSON has them. */
  readonly isHidden?: (item: Item) => boolean;
  /** The cells of an item. */
  readonly row: (item: Item, paint: Paint) => readonly string[];
}

export async function printList<Item>(flags: ConnectionOptions & { json?: boolean }, list: PrintedList<Item>): Promise<void> {
  const client = connect(flags);
  const { path, query = {}, limit, isWhole = false } = list;
  const page = isWhole ? await client.get<Page<Item>>(path) : await readList<Item>(client, { path, query, cursor: "after", limit });
  if (flags.json) {
    printJson(page);
    return;
  }
  const items = page.items.filter((item) => list.isHidden?.(item) !== true);
  if (items.length === 0) {
    process.stdout.write(`${list.empty}\n`);
    return;
  }
  const paint = painter(process.stdout);
  const rows = items.map((item) => list.row(item, paint));
  process.stdout.write(`${table(list.columns, rows, paint, columnsOf(process.stdout)).join("\n")}\n`);
}
