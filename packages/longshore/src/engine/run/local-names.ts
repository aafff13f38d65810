// Names of definitions in the order in which they were first defined: pages of them stay as they are when more are added.

import type { Slices } from "../../core/slices/slices.ts";
import type { Scan, TableRows, Value } from "../rows.ts";
import type { DefinitionName } from "../tables/definition.ts";
import type { ReadRows } from "../tx.ts";
import { limited, scanMax } from "./list-page.ts";

export interface NamesPage {
  readonly limit: number;
  readonly offset?: number;
  readonly dialect?: string;
}

/** Without those that are never started by name. */
export async function* namesInOrder(
  { read, slices }: { readonly read: ReadRows; readonly slices: Slices },
  rows: TableRows<DefinitionName>,
  { limit, offset = 0, dialect }: NamesPage,
): AsyncGenerator<string> {
  let passed = -offset;
  for (let above: Value[] | undefined; ; ) {
    await slices.turn(scanMax);
    const scan: Scan = { by: ["created_at", "name"], only: { version: 1 }, above, limit: scanMax };
    const some = await read((tx) => [...rows.scan(tx, scan)]);
    for (const { name, dialect: own } of some) {
      if (name.startsWith(".") || (dialect !== undefined && own !== dialect)) continue;
      if (passed === limited(limit)) return;
      if (passed++ >= 0) yield name;
    }
    const final = some.at(-1);
    if (final === undefined || some.length < scanMax) return;
    above = [final.createdAt, final.name];
  }
}
