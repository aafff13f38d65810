// Sums over tables, such as the bytes of all parts. They are stored too, so they are known at start without reading the tables. Each is
// written in the same transaction as the rows that change it.

import type { GroupCommit } from "./commit.ts";
import type { RowStore, TableRows, TableSpec } from "./rows.ts";
import type { Tx } from "./tx.ts";
import type { Writable } from "./writables.ts";

interface AmountRow {
  readonly name: string;
  readonly value: number;
}

const amountTable: TableSpec<AmountRow> = {
  name: "amount",
  key: ["name"],
  columns: [
    ["name", ({ name }) => name],
    ["value", ({ value }) => value],
  ],
  of: (row) => ({ name: row.name as string, value: Number(row.value) }),
};

export class Amounts implements Writable {
  readonly #commit: GroupCommit;
  readonly #rows: TableRows<AmountRow>;
  readonly #byName = new Map<string, Amount>();
  readonly #changed = new Set<Amount>();

  constructor(store: RowStore, commit: GroupCommit) {
    this.#commit = commit;
    this.#rows = store.table(amountTable);
    commit.join(this);
  }

  /** Reads the stored values; before this call all amounts are 0. */
  async recover(): Promise<void> {
    const stored = await this.#commit.read((tx) => [...this.#rows.scan(tx, { by: ["name"] })]);
    for (const { name, value } of stored) this.of(name).restore(value);
  }

  of(name: string): Amount {
    const known = this.#byName.get(name);
    if (known !== undefined) return known;
    const amount = new Amount({
      changed: (changed) => this.#changed.add(changed),
      write: (value) => this.#rows.write({ name, value }),
    });
    this.#byName.set(name, amount);
    return amount;
  }

  get dirty(): boolean {
    for (const amount of this.#changed) if (amount.dirty) return true;
    return false;
  }

  write(): void {
    for (const amount of this.#changed) amount.write();
  }

  applied(): void {
    if (this.#changed.size === 0) return;
    for (const amount of this.#changed) amount.applied();
    this.#changed.clear();
  }
}

interface AmountOptions {
  readonly changed: (amount: Amount) => void;
  readonly write: (value: number) => void;
}

export class Amount {
  readonly #options: AmountOptions;
  #value = 0;
  /** The sum of the changes in this batch. */
  #difference = 0;

  constructor(options: AmountOptions) {
    this.#options = options;
  }

  /** Sets the value that the data file has; called before any change. */
  restore(value: number): void {
    this.#value = value;
  }

  /** The value, including the changes of the current batch. */
  get value(): number {
    return this.#value;
  }

  add(tx: Tx, difference: number): void {
    if (difference === 0) return;
    this.#value += difference;
    this.#difference += difference;
    this.#options.changed(this);
    tx.undo(() => {
      this.#value -= difference;
      this.#difference -= difference;
    });
  }

  get dirty(): boolean {
    return this.#difference !== 0;
  }

  write(): void {
    if (this.#difference !== 0) this.#options.write(this.#value);
  }

  applied(): void {
    this.#difference = 0;
  }
}
