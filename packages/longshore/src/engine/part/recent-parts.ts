// The uids that were put last, of the tasks that are put to now: a repeated put, also by another way, is recognised
// without a look at the disk. A uid that is not in here may be stored nevertheless.

import type { TaskRow } from "../board/task.ts";

/**
 * Of one task: as many as may be on their way by another route, such as events in a broker. The older half is dropped when the newer one is
 * full.
 */
const halfMax = 8_000;
/** Tasks at most: with uids like hashes, about 20 MB in all. */
const tasksMax = 16;

interface Recent {
  readonly grant: number;
  newer: Set<string>;
  older: Set<string>;
}

export class RecentParts {
  /** By life; the longest unused is dropped first. */
  readonly #lives = new Map<string, Recent>();

  /** Parts of this hand-out have become durable. */
  add(task: TaskRow, uids: Iterable<string>): void {
    const key = keyOf(task);
    const known = this.#lives.get(key);
    const recent = known?.grant === task.grant ? known : { grant: task.grant, newer: new Set<string>(), older: new Set<string>() };
    this.#lives.delete(key);
    this.#lives.set(key, recent);
    for (const uid of uids) {
      if (recent.newer.size >= halfMax) {
        recent.older = recent.newer;
        recent.newer = new Set();
      }
      recent.newer.add(uid);
    }
    for (const oldest of this.#lives.keys()) {
      if (this.#lives.size <= tasksMax) break;
      this.#lives.delete(oldest);
    }
  }

  /** Which of a task's parts this hand-out has put lately. */
  of(task: TaskRow): (uid: string) => boolean {
    const recent = this.#lives.get(keyOf(task));
    if (recent === undefined || recent.grant !== task.grant) return () => false;
    return (uid) => recent.newer.has(uid) || recent.older.has(uid);
  }
}

/** A life is named by its first attempt. */
function keyOf({ id, firstAttempt }: TaskRow): string {
  return `${id}/${firstAttempt}`;
}
