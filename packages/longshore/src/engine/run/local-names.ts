// Names of definitions in the order in which they were first defined: pages of them stay as they are when more are added.

import type { Scan, TableRows, Value } from "../rows.ts";
import { allRows, type ReadDeps } from "../sliced-reads.ts";
import type { DefinitionName } from "./catalogue.ts";
import { limited, scanMax } from "./list-page.ts";

export interface NamesPage {
  readonly limit: number;
  readonly offset?: number;
  readonly dialect?: string;
}

type NamesDeps = Pick<ReadDeps, "read" | "slices">;

/** Without those that are never started by name. */
export async function* namesInOrder(
  deps: NamesDeps,
  rows: TableRows<DefinitionName>,
  { limit, offset = 0, dialect }: NamesPage,
): AsyncGenerator<string> {
  let passed = -offset;
  for await (const { name, dialect: own } of eachName(deps, rows)) {
    if (dialect !== undefined && own !== dialect) continue;
    if (passed === limited(limit)) return;
    if (passed++ >= 0) yield name;
  }
}

/** The first version of each name. */
export async function* eachName(deps: NamesDeps, rows: TableRows<DefinitionName>): AsyncGenerator<DefinitionName> {
  for (let above: Value[] | undefined; ; ) {
    await deps.slices.turn(scanMax);
    const scan: Scan = { by: ["created_at", "name"], only: { version: 1 }, above, limit: scanMax };
    const some = await allRows(deps, rows, scan);
    for (const each of some) if (!each.name.startsWith(".")) yield each;
    const final = some.at(-1);
    if (final === undefined || some.length < scanMax) return;
    above = [final.createdAt, final.name];
  }
}
