// Reads lists of definitions from rows.

import { triggerKinds } from "../event/store.ts";
import type { Scan, TableRows } from "../rows.ts";
import { allRows, type ReadDeps } from "../sliced-reads.ts";
import { definitionHeadTable, definitionNameTable } from "../tables/definition.ts";
import { documentTable } from "../tables/document.ts";
import type { Catalogue, DefinitionHead, DefinitionName } from "./catalogue.ts";
import type { Document } from "./documents.ts";
import { limited } from "./list-page.ts";
import { eachName } from "./local-names.ts";

export class LocalCatalogue implements Catalogue {
  readonly #deps: ReadDeps;
  readonly #names: TableRows<DefinitionName>;
  readonly #heads: TableRows<DefinitionHead>;
  readonly #documents: TableRows<Document>;

  constructor(deps: ReadDeps) {
    this.#deps = deps;
    this.#names = deps.store.table(definitionNameTable);
    this.#heads = deps.store.table(definitionHeadTable);
    this.#documents = deps.store.table(documentTable);
  }

  names(): AsyncIterable<DefinitionName> {
    return eachName(this.#deps, this.#names);
  }

  async events(workflow: string): Promise<readonly string[]> {
    const document = await this.#deps.read((tx) => this.#documents.get(tx, triggerKinds.workflow, workflow, 0));
    return document === null ? [] : (JSON.parse(document.body) as string[]);
  }

  async versions(name: string, { limit, before }: { limit: number; before?: number | undefined }): Promise<DefinitionHead[]> {
    await this.#deps.slices.turn(limited(limit));
    const below = before === undefined ? undefined : [before];
    const scan: Scan = { by: ["name", "version"], equal: [name], below, backwards: true, limit: limited(limit) };
    return allRows(this.#deps, this.#heads, scan);
  }
}
