// Reads lists of definitions from rows.

import type { Slices } from "../../core/slices/slices.ts";
import type { RowStore, Scan, TableRows } from "../rows.ts";
import { definitionHeadTable, definitionNameTable } from "../tables/definition.ts";
import type { ReadRows } from "../tx.ts";
import type { Catalogue, DefinitionHead, DefinitionName } from "./catalogue.ts";
import { limited } from "./list-page.ts";
import { eachName } from "./local-names.ts";

interface CatalogueDeps {
  readonly store: RowStore;
  readonly read: ReadRows;
  readonly slices: Slices;
}

export class LocalCatalogue implements Catalogue {
  readonly #deps: CatalogueDeps;
  readonly #names: TableRows<DefinitionName>;
  readonly #heads: TableRows<DefinitionHead>;

  constructor(deps: CatalogueDeps) {
    this.#deps = deps;
    this.#names = deps.store.table(definitionNameTable);
    this.#heads = deps.store.table(definitionHeadTable);
  }

  names(): AsyncIterable<DefinitionName> {
    return eachName(this.#deps, this.#names);
  }

  async versions(name: string, { limit, before }: { limit: number; before?: number | undefined }): Promise<DefinitionHead[]> {
    await this.#deps.slices.turn(limited(limit));
    const below = before === undefined ? undefined : [before];
    const scan: Scan = { by: ["name", "version"], equal: [name], below, backwards: true, limit: limited(limit) };
    return this.#deps.read((tx) => [...this.#heads.scan(tx, scan)]);
  }
}
