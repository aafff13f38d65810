// The space that each kind of stored data takes, and its quota. The bytes of a table are counted with the rows that change it (amounts.ts).
// Content that is still arriving counts from its first byte on, so that parallel uploads cannot exceed the quota together. When there is no
// room for all of them, those that began first get it: a later one loses its place. Otherwise all could be refused although some fit.

import { byteQuotas, type Quotas, quotaDefaults, quotaReached, type StoredKind, storedKinds } from "../core/quotas.ts";
import { type Amount, Amounts } from "./amounts.ts";
import type { GroupCommit } from "./commit.ts";
import type { RowStore } from "./rows.ts";
import type { Tx } from "./tx.ts";

/** Counted for each row in addition to its texts, so that a flood of empty rows is limited as well. */
export const rowBytes = 64;

export class StoredBytes {
  /** Amounts by name: the bytes of each kind of data, and other counts, such as the number of documents. */
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
  /** Places of content that is still arriving, in the order in which it began. */
  readonly #open = new Set<OpenPlace>();
  /** How often data was refused for lack of room since the start. */
  refused = 0;

  constructor(kind: StoredKind, kept: Amount, max: number) {
    this.kind = kind;
    this.max = max;
    this.#kept = kept;
  }

  get used(): number {
    return this.#kept.value + this.#arriving;
  }

  /** The number of bytes that are free; 0 or less when it is full. */
  get left(): number {
    return this.max - this.used;
  }

  /** Throws LONGSHORE_LIMIT when there is no room for so many bytes more. */
  take(tx: Tx, bytes: number): void {
    this.#admit(bytes);
    this.#kept.add(tx, bytes);
  }

  /** Gives room back, or takes room for data that cannot be refused. */
  add(tx: Tx, bytes: number): void {
    this.#kept.add(tx, bytes);
  }

  /** Reserves room for content that is arriving. */
  open(): Place {
    const place: OpenPlace = { taken: 0, isLost: false };
    this.#open.add(place);
    return {
      take: (bytes) => {
        if (place.isLost) throw quotaReached(this.kind, this.max);
        if (bytes > this.left) this.#makeRoom(place, bytes);
        this.#admit(bytes);
        this.#arriving += bytes;
        place.taken += bytes;
      },
      arrived: () => {
        if (place.isLost) throw quotaReached(this.kind, this.max);
        this.#open.delete(place);
      },
      keep: (tx) => {
        const bytes = place.taken;
        this.#kept.add(tx, bytes);
        this.#arriving -= bytes;
        place.taken = 0;
        tx.undo(() => {
          this.#arriving += bytes;
          place.taken = bytes;
        });
      },
      close: () => this.#giveBack(place),
    };
  }

  /** Takes the places of content that began to arrive later, last first. Takes none when that would not be enough. */
  #makeRoom(place: OpenPlace, bytes: number): void {
    const open = [...this.#open];
    const later = open.slice(open.indexOf(place) + 1);
    if (later.reduce((sum, { taken }) => sum + taken, this.left) < bytes) return;
    while (this.left < bytes) {
      const last = later.pop() as OpenPlace;
      last.isLost = true;
      this.refused++;
      this.#giveBack(last);
    }
  }

  #giveBack(place: OpenPlace): void {
    this.#open.delete(place);
    this.#arriving -= place.taken;
    place.taken = 0;
  }

  #admit(bytes: number): void {
    if (bytes <= this.left) return;
    this.refused++;
    throw quotaReached(this.kind, this.max);
  }
}

interface OpenPlace {
  taken: number;
  /** Earlier content has got its room. */
  isLost: boolean;
}

export interface Place {
  /** Throws LONGSHORE_LIMIT when there is no room for so many bytes more, or when earlier content has got the room of this. */
  take(bytes: number): void;
  /** The content has arrived completely: it cannot lose its room any more. Throws LONGSHORE_LIMIT when it has lost it already. */
  arrived(): void;
  /** The content is stored for the first time: its room stays taken. */
  keep(tx: Tx): void;
  /** Gives back the room of content that was not kept. */
  close(): void;
}
