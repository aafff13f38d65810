// The uids of recent puts, by task. With them a repeated put is recognised without reading the disk, even if it arrives over another
// transport. A uid that is missing here may still be stored.

import type { TaskRow } from "../board/task.ts";

/**
 * Half the number of uids that are kept for one task; it is as many as may be on their way in a broker. When the newer half is full, the
 * older half is dropped.
 */
const halfMax = 8_000;
/** Maximum number of tasks: about 20 MB in all, with uids as long as hashes. */
const tasksMax = 16;

interface Recent {
  readonly grant: number;
  newer: Set<string>;
  older: Set<string>;
}

export class RecentParts {
  /** By life; the least recently used is dropped first. */
  readonly #lives = new Map<string, Recent>();

  /** Records that parts of this hand-out are durable. */
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

  /** Drops the uids of removed tasks. */
  forget(isRemoved: (taskId: string) => boolean): void {
    for (const key of this.#lives.keys()) if (isRemoved(taskOf(key))) this.#lives.delete(key);
  }

  /** Returns a function that checks whether this hand-out has recently put a uid. */
  of(task: TaskRow): (uid: string) => boolean {
    const recent = this.#lives.get(keyOf(task));
    if (recent === undefined || recent.grant !== task.grant) return () => false;
    return (uid) => recent.newer.has(uid) || recent.older.has(uid);
  }
}

function taskOf(key: string): string {
  return key.slice(0, key.lastIndexOf("/"));
}

/** A life is identified by its first attempt. */
function keyOf({ id, firstAttempt }: TaskRow): string {
  return `${id}/${firstAttempt}`;
}
