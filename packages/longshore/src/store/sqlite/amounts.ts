// Sums over tables that the data file keeps beside them, such as the bytes of all parts: known at the start without reading the tables, and
// written with the rows that change them. Only the difference is written, so changes that are decided in an operation and those that are
// found while rows are written go together in any order.

import type { GroupCommit, Writable } from "./commit.ts";
import type { Database } from "./driver.ts";

export class Amounts implements Writable {
  readonly #commit: GroupCommit;
  readonly #byName = new Map<string, Amount>();
  readonly #changed = new Set<Amount>();
  readonly #read: (name: string) => number;
  readonly #write: (name: string, difference: number) => void;

  constructor(db: Database, commit: GroupCommit) {
    this.#commit = commit;
    const read = db.prepare("SELECT value FROM amount WHERE name = ?");
    this.#read = (name) => Number(read.get(name)?.value ?? 0);
    const write = db.prepare(
      "INSERT INTO amount (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
    );
    this.#write = (name, difference) => write.run(name, difference);
    commit.join(this);
  }

  of(name: string): Amount {
    const known = this.#byName.get(name);
    if (known !== undefined) return known;
    const amount = new Amount(this.#read(name), {
      commit: this.#commit,
      changed: (changed) => this.#changed.add(changed),
      write: (difference) => this.#write(name, difference),
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
    for (const amount of this.#changed) amount.applied();
    this.#changed.clear();
  }
}

interface AmountOptions {
  readonly commit: GroupCommit;
  readonly changed: (amount: Amount) => void;
  readonly write: (difference: number) => void;
}

export class Amount {
  readonly #options: AmountOptions;
  #value: number;
  /** What operations of this batch have changed. */
  #difference = 0;

  constructor(value: number, options: AmountOptions) {
    this.#value = value;
    this.#options = options;
  }

  /** With what the batch at hand has changed so far. */
  get value(): number {
    return this.#value;
  }

  /** Inside an operation. */
  add(difference: number): void {
    if (difference === 0) return;
    this.#value += difference;
    this.#difference += difference;
    this.#options.changed(this);
    this.#options.commit.undo(() => {
      this.#value -= difference;
      this.#difference -= difference;
    });
  }

  /** Inside the transaction, while rows are written or removed. */
  addNow(difference: number): void {
    if (difference === 0) return;
    this.#options.write(difference);
    this.#value += difference;
    this.#options.commit.undo(() => {
      this.#value -= difference;
    });
  }

  get dirty(): boolean {
    return this.#difference !== 0;
  }

  write(): void {
    if (this.#difference !== 0) this.#options.write(this.#difference);
  }

  applied(): void {
    this.#difference = 0;
  }
}
