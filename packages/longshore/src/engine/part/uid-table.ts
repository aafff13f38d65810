// Maps hashes of uids to the numbers of one task's parts, in memory: eight bytes a part and some spare room. A uid whose hash is missing is
// certainly new; otherwise the rows with the found numbers decide.

/** Maximum load: above it, a search for a missing hash takes many steps. */
const loadMax = 0.6;
const slotsMin = 64;
export const hashBytes = 4;
/** Marks a slot whose part was undone. A search must continue after it. No part has this number. */
const takenBack = 0xff_ff_ff_ff;

export class UidTable {
  #hashes = new Uint32Array(slotsMin);
  /** 0 marks a free slot: parts count from 1. */
  #sequences = new Uint32Array(slotsMin);
  #size = 0;

  /** Size in memory. */
  get bytes(): number {
    return this.#hashes.length * 8;
  }

  add(hash: number, sequence: number): void {
    if (this.#size >= this.#hashes.length * loadMax) this.#grow();
    this.#put(hash, sequence);
    this.#size++;
  }

  /** Numbers of parts whose uids have this hash. */
  find(hash: number): number[] {
    const found: number[] = [];
    const mask = this.#hashes.length - 1;
    for (let slot = hash & mask; this.#sequences[slot] !== 0; slot = (slot + 1) & mask)
      if (this.#hashes[slot] === hash && this.#sequences[slot] !== takenBack) found.push(this.#sequences[slot] as number);
    return found;
  }

  /** Undoes an addition. */
  remove(hash: number, sequence: number): void {
    const mask = this.#hashes.length - 1;
    for (let slot = hash & mask; this.#sequences[slot] !== 0; slot = (slot + 1) & mask) {
      if (this.#hashes[slot] !== hash || this.#sequences[slot] !== sequence) continue;
      this.#sequences[slot] = takenBack;
      return;
    }
  }

  #put(hash: number, sequence: number): void {
    const mask = this.#hashes.length - 1;
    let slot = hash & mask;
    while (this.#sequences[slot] !== 0) slot = (slot + 1) & mask;
    this.#hashes[slot] = hash;
    this.#sequences[slot] = sequence;
  }

  #grow(): void {
    const [hashes, sequences] = [this.#hashes, this.#sequences];
    this.#hashes = new Uint32Array(hashes.length * 2);
    this.#sequences = new Uint32Array(hashes.length * 2);
    this.#size = 0;
    for (let slot = 0; slot < hashes.length; slot++) {
      if (sequences[slot] === 0 || sequences[slot] === takenBack) continue;
      this.#put(hashes[slot] as number, sequences[slot] as number);
      this.#size++;
    }
  }
}

/**
 * FNV-1a over the characters, then mixed, because the slot is taken from the low bits. Hashes are stored on disk: the function must never
 * change.
 */
export function hashOf(uid: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < uid.length; at++) hash = Math.imul(hash ^ uid.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
