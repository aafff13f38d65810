// Time-ordered ids: 26 characters of Crockford's base 32, 48 bits of milliseconds and 80 of randomness (the ULID layout).
// Ids made within one millisecond count upwards, so ids of one maker sort in the order they were made.

import { randomFillSync } from "node:crypto";

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

export type MakeId = (nowMs: number) => string;

/** Random bytes fetched at a time: a call for 16 of them takes four times as long as the rest of making an id. */
const fetchedBytes = 4_096;

/** One maker per store. `randomBytes` is replaced in simulations. */
export function idMaker(randomBytes: (into: Uint8Array) => void = fetchAhead()): MakeId {
  // Sixteen digits of five bits; counted upwards within a millisecond.
  const digits = new Uint8Array(16);
  let lastMs = -1;
  let prefix = "";
  return (nowMs) => {
    // A clock that steps back must not make ids step back.
    const ms = Math.max(nowMs, lastMs);
    if (ms === lastMs && increment(digits)) return prefix + tail(digits);
    const fresh = ms === lastMs ? ms + 1 : ms;
    randomBytes(digits);
    for (let at = 0; at < 16; at++) digits[at] = (digits[at] as number) & 31;
    // Leaves room to count upwards: overflow within a millisecond is then out of reach.
    digits[0] = (digits[0] as number) & 15;
    lastMs = fresh;
    prefix = time(fresh);
    return prefix + tail(digits);
  };
}

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

function time(ms: number): string {
  let text = "";
  let rest = ms;
  for (let at = 0; at < 10; at++) {
    text = alphabet[rest % 32] + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}

function tail(digits: Uint8Array): string {
  let text = "";
  for (let at = 0; at < 16; at++) text += alphabet[digits[at] as number];
  return text;
}
