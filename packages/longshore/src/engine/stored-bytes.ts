// The room that each kind of what callers store takes, and the quota that all of a kind have together. What a table holds is counted
// with the rows that change it (amounts.ts); content that is still arriving counts from its first byte on, so that uploads side by side
// cannot pass the quota together.

import { byteQuotas, type Quotas, quotaDefaults, quotaReached, type StoredKind, storedKinds } from "../core/quotas.ts";
import { type Amount, Amounts } from "./amounts.ts";
import type { GroupCommit } from "./commit.ts";
import type { RowStore } from "./rows.ts";
import type { Tx } from "./tx.ts";

/** Counted for each row besides its texts, so that a flood of empty ones is bounded as well. */
export const rowBytes = 64;

export class StoredBytes {
  /** How many there are of what is counted in numbers, by name. */
  readonly amounts: Amounts;
  readonly #byKind: ReadonlyMap<StoredKind, Room>;

  constructor(store: RowStore, commit: GroupCommit, quotas: Partial<Quotas> = {}) {
    this.amounts = new Amounts(store, commit);
    const room = (kind: StoredKind): [StoredKind, Room] => {
      const { quota } = byteQuotas[kind];
      return [kind, new Room(kind, this.amounts.of(`bytes of ${kind}`), quotas[quota] ?? quotaDefaults[quota])];
    };
    this.#byKind = new Map(storedKinds.map(room));
  }

  recover(): Promise<void> {
    return this.amounts.recover();
  }

  of(kind: StoredKind): Room {
    return this.#byKind.get(kind) as Room;
  }

  /** All kinds, for metrics. */
  all(): Iterable<Room> {
    return this.#byKind.values();
  }
}

export class Room {
  readonly kind: StoredKind;
  readonly max: number;
  readonly #kept: Amount;
  #arriving = 0;
  /** How often something found no room since the start. */
  refused = 0;

  constructor(kind: StoredKind, kept: Amount, max: number) {
    this.kind = kind;
    this.max = max;
    this.#kept = kept;
  }

  get used(): number {
    return this.#kept.value + this.#arriving;
  }

  /** How many bytes more are taken; none or fewer when it is full. */
  get left(): number {
    return this.max - this.used;
  }

  /** Throws LONGSHORE_LIMIT when there is no room for so many bytes more. */
  take(tx: Tx, bytes: number): void {
    this.#admit(bytes);
    this.#kept.add(tx, bytes);
  }

  /** Gives room back, or takes it for what cannot be refused. */
  add(tx: Tx, bytes: number): void {
    this.#kept.add(tx, bytes);
  }

  /** A place for content that arrives. */
  open(): Place {
    let taken = 0;
    return {
      take: (bytes) => {
        this.#admit(bytes);
        this.#arriving += bytes;
        taken += bytes;
      },
      keep: (tx) => {
        const bytes = taken;
        this.#kept.add(tx, bytes);
        this.#arriving -= bytes;
        taken = 0;
        tx.undo(() => {
          this.#arriving += bytes;
          taken = bytes;
        });
      },
      close: () => {
        this.#arriving -= taken;
        taken = 0;
      },
    };
  }

  #admit(bytes: number): void {
    if (bytes <= this.left) return;
    this.refused++;
    throw quotaReached(this.kind, this.max);
  }
}

export interface Place {
  /** Throws LONGSHORE_LIMIT when there is no room for so many bytes more. */
  take(bytes: number): void;
  /** The content is kept, and not a second copy. Its room stays taken. */
  keep(tx: Tx): void;
  /** Gives back what was not kept. */
  close(): void;
}
