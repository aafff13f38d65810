// Time-ordered ids: 26 characters of Crockford's base 32, 48 bits of milliseconds and 80 more bits (the ULID layout). Within one
// millisecond, ids count upwards, so ids of one generator sort in the order of their creation. Six of the bits mark a UUID of version 7, so
// each id is also a UUID in another spelling; protocols whose clients expect UUIDs use that spelling.

import { createHash, randomFillSync } from "node:crypto";

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

export type MakeId = (nowMs: number) => string;

/** Random bytes are fetched in blocks of this size: a call for 16 bytes takes four times as long as the rest of making an id. */
const fetchedBytes = 4_096;

/** One generator per store. Simulations replace `randomBytes`. */
export function idMaker(randomBytes: (into: Uint8Array) => void = fetchAhead()): MakeId {
  // Sixteen digits of five bits; counted upwards within a millisecond.
  const digits = new Uint8Array(16);
  let lastMs = -1;
  let prefix = "";
  return (nowMs) => {
    // When the clock goes back, ids must not.
    const ms = Math.max(nowMs, lastMs);
    if (ms === lastMs && increment(digits)) return prefix + tail(digits);
    const fresh = ms === lastMs ? ms + 1 : ms;
    randomBytes(digits);
    for (let at = 0; at < 16; at++) digits[at] = (digits[at] as number) & 31;
    // Sets the version and variant bits of a UUID. Counting upwards within a millisecond does not change these bits: at least sixty bits
    // are below them.
    digits[0] = ((digits[0] as number) & 0b00001) | 0b01110;
    digits[3] = ((digits[3] as number) & 0b10011) | 0b01000;
    lastMs = fresh;
    prefix = digitsOf(fresh, 10);
    return prefix + tail(digits);
  };
}

/**
 * An id made from a text instead of random bytes. The same text at the same time gives the same id, so a repeated request with this id
 * starts nothing twice.
 */
export function idFrom(text: string, atMs: number): string {
  const hash = createHash("sha256").update(text).digest();
  return idMaker((into) => into.set(hash.subarray(0, into.length)))(atMs);
}

/** When the id was made. */
export function msOf(id: string): number {
  return valueAt(id, 0, 10);
}

/** Smaller than every id that was made at this time or later, and larger than every earlier id. */
export function idBound(ms: number): string {
  return digitsOf(Math.max(0, ms), 10);
}

/**
 * The id as a UUID; undefined for a text that is not one of our ids. After the first two digits of each spelling, four digits of an id are
 * five digits of a UUID.
 */
export function uuidOf(id: string): string | undefined {
  if (!idShape.test(id)) return undefined;
  let hex = (0x100 + valueAt(id, 0, 2)).toString(16).slice(1);
  for (let at = 2; at < 26; at += 4) hex += (0x100000 + valueAt(id, at, at + 4)).toString(16).slice(1);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** The id of a UUID; undefined for a text that is not a UUID. */
export function idOfUuid(text: string): string | undefined {
  if (!uuidShape.test(text)) return undefined;
  const hex = text.replaceAll("-", "");
  let id = digitsOf(Number.parseInt(hex.slice(0, 2), 16), 2);
  for (let at = 2; at < 32; at += 5) id += digitsOf(Number.parseInt(hex.slice(at, at + 5), 16), 4);
  return id;
}

function valueAt(id: string, from: number, to: number): number {
  let value = 0;
  for (let at = from; at < to; at++) value = value * 32 + alphabet.indexOf(id[at] as string);
  return value;
}

function digitsOf(value: number, count: number): string {
  let text = "";
  let rest = value;
  for (let at = 0; at < count; at++) {
    text = alphabet[rest % 32] + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}

/** The first digit carries three bits only: 26 digits have room for 130 bits, an id has 128. */
const idShape = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
const uuidShape = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

function fetchAhead(): (into: Uint8Array) => void {
  const fetched = new Uint8Array(fetchedBytes);
  let used = fetchedBytes;
  return (into) => {
    if (used + into.length > fetchedBytes) {
      randomFillSync(fetched);
      used = 0;
    }
    into.set(fetched.subarray(used, used + into.length));
    used += into.length;
  };
}

function increment(digits: Uint8Array): boolean {
  for (let at = 15; at >= 0; at--) {
    if ((digits[at] as number) < 31) {
      digits[at] = (digits[at] as number) + 1;
      return true;
    }
    digits[at] = 0;
  }
  return false;
}

function tail(digits: Uint8Array): string {
  let text = "";
  for (let at = 0; at < 16; at++) text += alphabet[digits[at] as number];
  return text;
}
