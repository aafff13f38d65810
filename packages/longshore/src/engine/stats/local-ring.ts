// The samples of the coarsest ring as rows, so that seven days are not forgotten with a restart. A sample is one row; only the samples that
// have changed are written, at most once a minute.

import { Additions, eachRow } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import { lastText, type RowStore, type TableRows } from "../rows.ts";
import { type Property, propertyTable } from "../tables/endings.ts";
import type { Sample } from "./series.ts";

const prefix = "stats ";

export interface LocalRingDeps {
  readonly store: RowStore;
  readonly commit: GroupCommit;
  /** The number of samples of the ring: a row has the place of its sample in it. */
  readonly samples: number;
}

export class LocalRing {
  readonly #deps: LocalRingDeps;
  readonly #rows: TableRows<Property>;
  readonly #changes: Additions<Sample>;

  constructor(deps: LocalRingDeps) {
    this.#deps = deps;
    this.#rows = deps.store.table(propertyTable);
    this.#changes = new Additions(deps.commit, (sample) => {
      this.#rows.write({ name: `${prefix}${sample.number % deps.samples}`, value: JSON.stringify(sample) });
    });
  }

  async read(): Promise<Sample[]> {
    const found: Sample[] = [];
    await eachRow(
      this.#deps.commit,
      this.#rows,
      { by: ["name"], below: [`${prefix}${lastText}`] },
      { from: [prefix], at: ({ name }) => [name], take: ({ value }) => found.push(JSON.parse(value) as Sample) },
    );
    return found;
  }

  /** No one waits for it: without the disk, only figures are lost. */
  keep(samples: readonly Sample[]): void {
    const writing = this.#deps.commit.run((tx) => {
      for (const sample of samples) this.#changes.add(tx, sample);
    });
    writing.catch(() => {});
  }
}
