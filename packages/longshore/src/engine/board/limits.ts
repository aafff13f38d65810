// Limit keys: at most a number of tasks held at once, or handed out per sliding window, on all lanes together. A permit is taken in the
// transaction of the claim. A task whose key is exhausted is parked, so it never blocks later tasks.

import { laneKey, type Place } from "./lanes.ts";
import type { LimitChange, LimitView } from "./limit-changes.ts";
import { ParkedTasks } from "./parked-tasks.ts";
import type { Lane } from "./task.ts";

/** A key and its limits. A hand-out is checked against the limits of its own task, but counts all tasks with the key. */
export interface LimitKey {
  readonly key: string;
  /** At most this many held at once. */
  readonly held?: number;
  /** At most `count` hand-outs in any `windowMs`. */
  readonly rate?: { readonly count: number; readonly windowMs: number };
  /** The time limit for being claimed does not run while a task waits for room under this key; it starts when there is room. */
  readonly pausesClaim?: boolean;
}

interface Usage {
  /** The limit of the task with this key that was handed out last: lists show it. */
  limit: LimitKey | null;
  held: number;
  /** Times of hand-outs within the window, oldest first. */
  recent: number[];
  /** Grouped by lane and required room. */
  parked: Map<string, ParkedTasks>;
}

/** The limit that blocks a hand-out, and when its window next opens (null: when a permit is returned). */
export interface Blocked {
  /** The limit of the task; a change may replace its numbers. */
  limit: LimitKey;
  freeAt: number | null;
}

/** Identifies a group of tasks on one lane that wait for the same room under a key. */
export interface ParkingKey {
  readonly key: string;
  readonly group: string;
}

export function parkingKey(limit: LimitKey, lane: Lane): ParkingKey {
  return { key: limit.key, group: `${limit.held ?? ""}\u0000${laneKey(lane)}` };
}

export class Limits {
  readonly #usage = new Map<string, Usage>();
  readonly #changes = new Map<string, LimitChange>();

  /** Returns null when every key has room. Takes no permit. */
  blocked(limits: readonly LimitKey[], now: number): Blocked | null {
    for (const limit of limits) {
      const usage = this.#usage.get(limit.key);
      const applied = this.#applied(limit);
      // A key that no task has used yet has room, except when at most 0 tasks may be held.
      if (usage === undefined && applied.held !== 0) continue;
      if (applied.held !== undefined && (usage?.held ?? 0) >= applied.held) return { limit, freeAt: null };
      if (usage === undefined || applied.rate === undefined) continue;
      const freeAt = freeAtOf(usage, applied.rate, now);
      if (freeAt !== null) return { limit, freeAt };
    }
    return null;
  }

  /** The limits that apply to these tasks. */
  appliedTo(limits: readonly LimitKey[]): readonly LimitKey[] {
    return this.#changes.size === 0 ? limits : limits.map((limit) => this.#applied(limit));
  }

  #applied(limit: LimitKey): LimitKey {
    const change = this.#changes.size === 0 ? undefined : this.#changes.get(limit.key);
    return change === undefined ? limit : changed(limit, change);
  }

  /** Replaces the limits of a key; null: they are those of the tasks. */
  change(key: string, change: LimitChange | null): void {
    if (change === null) this.#changes.delete(key);
    else this.#changes.set(key, change);
  }

  changeOf(key: string): LimitChange | undefined {
    return this.#changes.get(key);
  }

  get changes(): number {
    return this.#changes.size;
  }

  views(now: number): LimitView[] {
    const keys = new Set([...this.#usage.keys(), ...this.#changes.keys()]);
    return [...keys].flatMap((key) => this.view(key, now) ?? []);
  }

  view(key: string, now: number): LimitView | undefined {
    const usage = this.#usage.get(key);
    const change = this.#changes.get(key) ?? null;
    if (usage === undefined && change === null) return undefined;
    const { held, rate } = this.#applied(usage?.limit ?? { key });
    const freeAt = usage === undefined || rate === undefined ? null : freeAtOf(usage, rate, now);
    const waiting = new Map<string, number>();
    for (const [group, tasks] of usage?.parked ?? []) {
      const lane = group.slice(group.indexOf("\u0000") + 1);
      waiting.set(lane, (waiting.get(lane) ?? 0) + tasks.size);
    }
    return {
      ...{ key, held: usage?.held ?? 0, max: held ?? null, waiting, freeAt, change },
      rate: rate === undefined ? null : { ...rate, used: usage?.recent.length ?? 0 },
    };
  }

  take(limits: readonly LimitKey[], now: number): void {
    for (const limit of limits) {
      const usage = this.#of(limit.key);
      usage.held++;
      usage.limit = limit;
      if (this.#applied(limit).rate) note(usage, now);
    }
  }

  /** Counts a hold that already exists: at start, or when the end of the hold was undone. `remember` restores the windows. */
  hold(limits: readonly LimitKey[]): void {
    for (const limit of limits) {
      const usage = this.#of(limit.key);
      usage.held++;
      usage.limit = limit;
    }
  }

  /** Called at start: records an earlier hand-out, also when its task has ended. */
  remember(key: string, at: number): void {
    note(this.#of(key), at);
  }

  /** Undoes a `take` at `now` whose transaction failed. */
  untake(limits: readonly LimitKey[], now: number): void {
    for (const limit of limits) {
      const usage = this.#of(limit.key);
      usage.held--;
      const at = usage.recent.lastIndexOf(now);
      if (at >= 0) usage.recent.splice(at, 1);
    }
  }

  /** Returns the permits of a hold that has ended. The first task of each group that waits for these keys may try again. */
  giveBack(limits: readonly LimitKey[]): void {
    for (const { key } of limits) {
      const usage = this.#of(key);
      usage.held = Math.max(0, usage.held - 1);
      this.#tidy(key, usage);
    }
  }

  /** Whether one more task may be held under this key, without regard to windows. */
  hasRoom(limit: LimitKey): boolean {
    const { key, held } = this.#applied(limit);
    return held === undefined || (this.#usage.get(key)?.held ?? 0) < held;
  }

  park({ key, group }: ParkingKey, place: Place): void {
    const { parked } = this.#of(key);
    let tasks = parked.get(group);
    if (tasks === undefined) {
      tasks = new ParkedTasks();
      parked.set(group, tasks);
    }
    tasks.add(place);
  }

  unpark({ key, group }: ParkingKey, place: Place): void {
    this.#change(key, group, (tasks) => tasks.remove(place));
  }

  isParked({ key, group }: ParkingKey, place: Place): boolean {
    return this.#usage.get(key)?.parked.get(group)?.has(place) ?? false;
  }

  /** Returns all groups that wait for room under a key. */
  parked(key: string): ParkingKey[] {
    return Array.from(this.#usage.get(key)?.parked.keys() ?? [], (group) => ({ key, group }));
  }

  /** Removes the first task of a group. */
  nextParked({ key, group }: ParkingKey): Place | undefined {
    return this.#change(key, group, (tasks) => tasks.next());
  }

  /** The number of tasks held under the key, to explain why a task waits. */
  held(key: string): number {
    return this.#usage.get(key)?.held ?? 0;
  }

  #of(key: string): Usage {
    let usage = this.#usage.get(key);
    if (usage === undefined) {
      usage = { limit: null, held: 0, recent: [], parked: new Map() };
      this.#usage.set(key, usage);
    }
    return usage;
  }

  #change<Result>(key: string, group: string, change: (tasks: ParkedTasks) => Result): Result | undefined {
    const usage = this.#usage.get(key);
    const tasks = usage?.parked.get(group);
    if (usage === undefined || tasks === undefined) return undefined;
    const result = change(tasks);
    if (tasks.size === 0) usage.parked.delete(group);
    this.#tidy(key, usage);
    return result;
  }

  /** Removes a key that is idle: keys are created and removed with their tasks. */
  #tidy(key: string, usage: Usage): void {
    if (usage.held === 0 && usage.parked.size === 0 && usage.recent.length === 0) this.#usage.delete(key);
  }
}

/** An absent field of the change leaves the limit of the task; null removes it. */
function changed({ held, rate, ...limit }: LimitKey, change: LimitChange): LimitKey {
  const applied = {
    held: change.held === undefined ? held : (change.held ?? undefined),
    rate: change.rate === undefined ? rate : change.rate,
  };
  return {
    ...limit,
    ...(applied.held === undefined ? {} : { held: applied.held }),
    ...(applied.rate == null ? {} : { rate: applied.rate }),
  };
}

/** When the window has room; null when it has room now. */
function freeAtOf(usage: Usage, { count, windowMs }: NonNullable<LimitKey["rate"]>, now: number): number | null {
  forget(usage, now - windowMs);
  const oldest = usage.recent[usage.recent.length - count];
  return oldest === undefined ? null : oldest + windowMs;
}

/** Keeps the times sorted, in whatever order they are added: a restart adds hand-outs in any order, and clocks are set back. */
function note(usage: Usage, now: number): void {
  usage.recent.splice(usage.recent.findLastIndex((at) => at <= now) + 1, 0, now);
}

function forget(usage: Usage, before: number): void {
  let expired = 0;
  while (expired < usage.recent.length && (usage.recent[expired] as number) <= before) expired++;
  if (expired > 0) usage.recent.splice(0, expired);
}
