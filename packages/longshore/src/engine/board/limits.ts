// Limit keys: at most so many tasks held at once, or so many handed out per sliding window, whatever lane they are on.
// A permit is taken in the claim's own transaction. A task whose key is exhausted is parked, so it never blocks the ones behind it.

import { laneKey, type Place } from "./lanes.ts";
import { Parking } from "./parking.ts";
import type { Lane } from "./task.ts";

/** A key with what it allows. The newest task to name a key decides what it allows. */
export interface LimitKey {
  readonly key: string;
  /** At most this many held at once. */
  readonly held?: number;
  /** At most `count` hand-outs in any `windowMs`. */
  readonly rate?: { readonly count: number; readonly windowMs: number };
  /** Waiting for room under it is not waiting to be taken: the time for that begins when there is room. */
  readonly pausesClaim?: boolean;
}

interface Usage {
  held: number;
  /** Times of hand-outs within the window, oldest first. */
  recent: number[];
  /** By lane and by how much room they need. */
  parked: Map<string, Parking>;
}

/** What blocks a hand-out, and when the window next opens (null: when a permit comes back). */
export interface Blocked {
  limit: LimitKey;
  freeAt: number | null;
}

/** Who is alike among those that wait for room under a key. */
export interface ParkingKey {
  readonly key: string;
  readonly group: string;
}

export function parkingKey(limit: LimitKey, lane: Lane): ParkingKey {
  return { key: limit.key, group: `${limit.held ?? ""}\u0000${laneKey(lane)}` };
}

export class Limits {
  readonly #usage = new Map<string, Usage>();

  /** Null when every key has room; nothing is taken yet. */
  blocked(limits: readonly LimitKey[], now: number): Blocked | null {
    for (const limit of limits) {
      const usage = this.#usage.get(limit.key);
      if (usage === undefined) continue;
      if (limit.held !== undefined && usage.held >= limit.held) return { limit, freeAt: null };
      if (limit.rate === undefined) continue;
      forget(usage, now - limit.rate.windowMs);
      const oldest = usage.recent[usage.recent.length - limit.rate.count];
      if (oldest !== undefined) return { limit, freeAt: oldest + limit.rate.windowMs };
    }
    return null;
  }

  take(limits: readonly LimitKey[], now: number): void {
    for (const limit of limits) {
      const usage = this.#of(limit.key);
      usage.held++;
      if (limit.rate) note(usage, now);
    }
  }

  /** A hold that lasts: at start, or one that was undone and is kept. What its windows hold is restored by `remember`. */
  hold(limits: readonly LimitKey[]): void {
    for (const limit of limits) this.#of(limit.key).held++;
  }

  /** At start: a hand-out of before, whatever has become of its task. */
  remember(key: string, at: number): void {
    note(this.#of(key), at);
  }

  /** Undoes a `take` at `now` whose transaction failed. */
  untake(limits: readonly LimitKey[], now: number): void {
    for (const limit of limits) {
      const usage = this.#of(limit.key);
      usage.held--;
      if (limit.rate) usage.recent.splice(usage.recent.lastIndexOf(now), 1);
    }
  }

  /** The hold has ended. Tasks that wait for its keys may try again: the first of each group. */
  giveBack(limits: readonly LimitKey[]): void {
    for (const { key } of limits) {
      const usage = this.#of(key);
      usage.held = Math.max(0, usage.held - 1);
      this.#tidy(key, usage);
    }
  }

  /** Whether one more may be held, windows aside. */
  hasRoom({ key, held }: LimitKey): boolean {
    return held === undefined || (this.#usage.get(key)?.held ?? 0) < held;
  }

  park({ key, group }: ParkingKey, place: Place): void {
    const { parked } = this.#of(key);
    let parking = parked.get(group);
    if (parking === undefined) {
      parking = new Parking();
      parked.set(group, parking);
    }
    parking.add(place);
  }

  unpark({ key, group }: ParkingKey, place: Place): void {
    this.#change(key, group, (parking) => parking.remove(place));
  }

  isParked({ key, group }: ParkingKey, place: Place): boolean {
    return this.#usage.get(key)?.parked.get(group)?.has(place) ?? false;
  }

  /** All tasks that wait for room under a key. */
  parked(key: string): ParkingKey[] {
    return Array.from(this.#usage.get(key)?.parked.keys() ?? [], (group) => ({ key, group }));
  }

  /** Takes out the first of those that are alike. */
  nextParked({ key, group }: ParkingKey): Place | undefined {
    return this.#change(key, group, (parking) => parking.next());
  }

  /** For "why is this waiting": how many are held under the key. */
  held(key: string): number {
    return this.#usage.get(key)?.held ?? 0;
  }

  #of(key: string): Usage {
    let usage = this.#usage.get(key);
    if (usage === undefined) {
      usage = { held: 0, recent: [], parked: new Map() };
      this.#usage.set(key, usage);
    }
    return usage;
  }

  #change<Result>(key: string, group: string, change: (parking: Parking) => Result): Result | undefined {
    const usage = this.#usage.get(key);
    const parking = usage?.parked.get(group);
    if (usage === undefined || parking === undefined) return undefined;
    const result = change(parking);
    if (parking.size === 0) usage.parked.delete(group);
    this.#tidy(key, usage);
    return result;
  }

  /** Keys come and go with tasks; an idle key is not kept. */
  #tidy(key: string, usage: Usage): void {
    if (usage.held === 0 && usage.parked.size === 0 && usage.recent.length === 0) this.#usage.delete(key);
  }
}

/** In order of time whatever the order of the calls: a restart adds hand-outs in any order, and clocks step back. */
function note(usage: Usage, now: number): void {
  usage.recent.splice(usage.recent.findLastIndex((at) => at <= now) + 1, 0, now);
}

function forget(usage: Usage, before: number): void {
  let expired = 0;
  while (expired < usage.recent.length && (usage.recent[expired] as number) <= before) expired++;
  if (expired > 0) usage.recent.splice(0, expired);
}
