// Limit keys: at most so many tasks held at once, or so many handed out per sliding window, whatever lane they stand on.
// A permit is taken in the claim's own transaction. A task whose key is exhausted is parked, so it never blocks the ones behind it.

/** A key with what it allows. The newest task to name a key decides what it allows. */
export interface LimitKey {
  readonly key: string;
  /** At most this many held at once. */
  readonly held?: number;
  /** At most `count` hand-outs in any `windowMs`. */
  readonly rate?: { readonly count: number; readonly windowMs: number };
}

interface Usage {
  held: number;
  /** Times of hand-outs within the window, oldest first. */
  recent: number[];
  parked: Set<string>;
}

/** What stands in the way of a hand-out: the key, and when the window next opens (null: when a permit comes back). */
export interface Blocked {
  key: string;
  freeAt: number | null;
}

/** A task that waits for room under a key. */
export interface Parked {
  key: string;
  taskId: string;
}

export class Limits {
  readonly #usage = new Map<string, Usage>();

  /** Null when every key has room; nothing is taken yet. */
  blocked(limits: readonly LimitKey[], now: number): Blocked | null {
    for (const limit of limits) {
      const usage = this.#usage.get(limit.key);
      if (usage === undefined) continue;
      if (limit.held !== undefined && usage.held >= limit.held) return { key: limit.key, freeAt: null };
      if (limit.rate === undefined) continue;
      forget(usage, now - limit.rate.windowMs);
      const oldest = usage.recent[usage.recent.length - limit.rate.count];
      if (oldest !== undefined) return { key: limit.key, freeAt: oldest + limit.rate.windowMs };
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

  /** At start: a hold that lasts. What its windows hold is told by `remember`. */
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

  /** The hold is over. Answers the tasks that were parked on its keys; they may be tried again. */
  giveBack(limits: readonly LimitKey[]): Parked[] {
    const woken: Parked[] = [];
    for (const { key } of limits) {
      const usage = this.#of(key);
      usage.held = Math.max(0, usage.held - 1);
      for (const taskId of usage.parked) woken.push({ key, taskId });
      usage.parked.clear();
      this.#tidy(key, usage);
    }
    return woken;
  }

  /** Undoes a `giveBack` whose transaction failed. */
  takeAgain(limits: readonly LimitKey[], woken: readonly Parked[]): void {
    this.hold(limits);
    for (const { key, taskId } of woken) this.park(key, taskId);
  }

  park(key: string, taskId: string): void {
    this.#of(key).parked.add(taskId);
  }

  unpark(key: string, taskId: string): void {
    const usage = this.#usage.get(key);
    if (usage === undefined) return;
    usage.parked.delete(taskId);
    this.#tidy(key, usage);
  }

  /** For "why is this waiting": how many are held under the key. */
  held(key: string): number {
    return this.#usage.get(key)?.held ?? 0;
  }

  #of(key: string): Usage {
    let usage = this.#usage.get(key);
    if (usage === undefined) {
      usage = { held: 0, recent: [], parked: new Set() };
      this.#usage.set(key, usage);
    }
    return usage;
  }

  /** Keys come and go with tasks; an idle key is not kept. */
  #tidy(key: string, usage: Usage): void {
    if (usage.held === 0 && usage.parked.size === 0 && usage.recent.length === 0) this.#usage.delete(key);
  }
}

/** In order of time whatever the order of the calls: a restart tells of hand-outs in any order, and clocks step back. */
function note(usage: Usage, now: number): void {
  usage.recent.splice(usage.recent.findLastIndex((at) => at <= now) + 1, 0, now);
}

function forget(usage: Usage, before: number): void {
  let expired = 0;
  while (expired < usage.recent.length && (usage.recent[expired] as number) <= before) expired++;
  if (expired > 0) usage.recent.splice(0, expired);
}
