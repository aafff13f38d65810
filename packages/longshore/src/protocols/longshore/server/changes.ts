// Live changes of runs and tasks. The changes of each commit are recorded in one bounded ring. A reader has only a position in that ring,
// so nothing is buffered for a slow reader. When the ring has overwritten that position, the reader learns how many changes it missed.
//
// Nothing is recorded without a reader. Recording continues for a while after the last reader left, so that it can resume. Changes are
// hints for views: a task that changed twice within one commit is reported once.

import type { Clock } from "../../../core/clock.ts";
import type { TaskRow } from "../../../engine/board/task.ts";
import { type Change, runChange, taskChange } from "../../../engine/run/change.ts";
import type { Run } from "../../../engine/run/run.ts";
import type { ProtocolEngine, TaskOrigin } from "../../server-half.ts";

/** The result of a read. At least `missed` changes before `changes` are lost. */
export interface Look {
  readonly missed: number;
  readonly changes: readonly Noted[];
}

/** A change with its position. Its text is made once for all readers. */
export interface Noted {
  readonly number: number;
  readonly change: Change;
  data?: string;
}

/** The JSON text of a change that readers receive. */
export function dataOf(noted: Noted): string {
  if (noted.data === undefined) {
    const { kind: _, ...data } = noted.change;
    noted.data = JSON.stringify(data);
  }
  return noted.data;
}

export interface ChangesOptions {
  clock: Clock;
  /** Returns the fields that the task's row does not contain. Hidden tasks are not reported. */
  originOf: (task: TaskRow) => TaskOrigin | Promise<TaskOrigin>;
  /** Distinguishes these ids from those of any other process. */
  epoch: string;
  /** Maximum number of changes kept. A reader that is further behind has missed some. */
  keptMax?: number;
}

/** About 2 MB. */
const keptMaxDefault = 8_192;
/** Maximum number of changes in one read, so that one reader does not delay the others. */
const lookMax = 500;
/** How long changes are still recorded after the last reader has left. */
const lingerMs = 60_000;

type ChangesDeps = Pick<ProtocolEngine, "clock" | "makeId" | "originOf" | "listen">;

export class Changes {
  readonly #options: ChangesOptions;
  readonly #keptMax: number;
  readonly #ring: Noted[] = [];
  readonly #readers = new Set<() => void>();
  /** Numbers of the newest change and of the oldest that is kept; they count from 1. */
  #last = 0;
  #first = 1;
  #noting = false;
  /** Resolves when all changes so far are recorded; null when they are. */
  #waiting: Promise<void> | null = null;
  #wakeScheduled = false;
  #cancelLinger: (() => void) | null = null;

  constructor(options: ChangesOptions) {
    this.#options = options;
    this.#keptMax = options.keptMax ?? keptMaxDefault;
  }

  /** The position of a reader that starts now. */
  get now(): number {
    return this.#last;
  }

  get readers(): number {
    return this.#readers.size;
  }

  run(run: Run): void {
    if (!this.#noting) return;
    this.#inOrder(runChange(run));
  }

  task(task: TaskRow): void {
    if (!this.#noting) return;
    const now = this.#options.clock.now();
    const changeOf = ({ workflow, isHidden }: TaskOrigin): Change | null => (isHidden ? null : taskChange(task, workflow, now));
    const origin = this.#options.originOf(task);
    // Without this change, a view is outdated until the next change. This is no reason to stop.
    this.#inOrder(origin instanceof Promise ? origin.then(changeOf, () => null) : changeOf(origin));
  }

  /**
   * Starts to read. `wake` is called, once per turn of the event loop, when there may be something new. The returned function ends the
   * read.
   */
  read(wake: () => void): () => void {
    this.#noting = true;
    this.#cancelLinger?.();
    this.#cancelLinger = null;
    this.#readers.add(wake);
    return () => {
      if (!this.#readers.delete(wake) || this.#readers.size > 0) return;
      const { clock } = this.#options;
      this.#cancelLinger = clock.at(clock.now() + lingerMs, () => this.#forget());
    };
  }

  /** The changes after a number, the oldest first, up to a limit. */
  after(number: number): Look {
    const first = Math.max(number + 1, this.#first);
    const changes: Noted[] = [];
    for (let at = first; at <= this.#last && changes.length < lookMax; at++) {
      changes.push(this.#ring[at % this.#keptMax] as Noted);
    }
    return { missed: first - number - 1, changes };
  }

  idOf(number: number): string {
    return `${this.#options.epoch}-${number}`;
  }

  /** The number in an id; undefined for an id of another process, or an unknown one. */
  numberOf(id: string): number | undefined {
    const dash = id.lastIndexOf("-");
    if (id.slice(0, dash) !== this.#options.epoch || !/^\d{1,15}$/.test(id.slice(dash + 1))) return undefined;
    const number = Number(id.slice(dash + 1));
    return number <= this.#last ? number : undefined;
  }

  close(): void {
    this.#cancelLinger?.();
  }

  /** Keeps the order: a change that needs a read delays the ones after it. */
  #inOrder(change: Change | null | Promise<Change | null>): void {
    if (this.#waiting === null && !(change instanceof Promise)) return this.#note(change);
    const noted: Promise<void> = Promise.all([change, this.#waiting]).then(([found]) => {
      if (this.#waiting === noted) this.#waiting = null;
      if (this.#noting) this.#note(found);
    });
    this.#waiting = noted;
  }

  #note(change: Change | null): void {
    if (change === null) return;
    this.#last++;
    this.#ring[this.#last % this.#keptMax] = { number: this.#last, change };
    this.#first = Math.max(this.#first, this.#last - this.#keptMax + 1);
    if (this.#wakeScheduled || this.#readers.size === 0) return;
    this.#wakeScheduled = true;
    setImmediate(() => {
      this.#wakeScheduled = false;
      for (const wake of [...this.#readers]) wake();
    });
  }

  /** Changes from now on are not recorded. So an id from before must not count as a position among later changes. */
  #forget(): void {
    this.#noting = false;
    this.#ring.length = 0;
    this.#last++;
    this.#first = this.#last + 1;
  }
}

/** The changes of an engine from now on. */
export function changesOf({ clock, makeId, originOf, listen }: ChangesDeps): Changes {
  const changes = new Changes({ clock, epoch: makeId(clock.now()), originOf });
  listen(changes);
  return changes;
}
