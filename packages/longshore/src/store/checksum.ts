// A checksum over the rows of a table. It does not depend on their order, because each database returns rows in its own order.

import { createHash } from "node:crypto";
import type { MovedRow } from "./move-side.ts";

export interface TableSum {
  readonly rows: number;
  readonly sum: string;
}

const modulus = 2n ** 128n;

export class Checksum {
  #rows = 0;
  #sum = 0n;

  add(row: MovedRow): void {
    const hash = createHash("sha256");
    for (const value of row) {
      // The kind and the length come before the bytes, so no two rows have the same text.
      if (value === null) hash.update("n;");
      else if (typeof value === "number") hash.update(`i${value};`);
      else if (typeof value === "string") hash.update(`t${Buffer.byteLength(value)};`).update(value);
      else hash.update(`b${value.byteLength};`).update(value);
    }
    const digest = hash.digest();
    this.#rows++;
    this.#sum = (this.#sum + (digest.readBigUInt64BE(0) << 64n) + digest.readBigUInt64BE(8)) % modulus;
  }

  get(): TableSum {
    return { rows: this.#rows, sum: this.#sum.toString(16) };
  }
}
