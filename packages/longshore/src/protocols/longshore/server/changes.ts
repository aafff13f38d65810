// Live changes of runs and tasks. What a commit changed is recorded in one bounded ring; a reader is a position in that ring, so nothing is
// buffered for a slow one: it continues from its position, and is notified how much it missed when the ring has moved past it.
//
// Nothing is recorded without a reader; recording continues for a while after the last reader left, so that it can resume.
// Changes are hints for views: a task that moved twice within one commit is reported once.

import type { Clock } from "../../../core/clock.ts";
import { cutMiddle } from "../../../core/text.ts";
import type { TaskRow } from "../../../engine/board/task.ts";
import type { Run, RunState } from "../../../engine/run/run.ts";
import type { ProtocolEngine, TaskOrigin } from "../../server-half.ts";

export interface RunChange {
  readonly kind: "run";
  readonly id: string;
  readonly workflow: string;
  readonly state: RunState;
  readonly left: number;
  readonly failed: number;
  readonly error: string | null;
  readonly createdAt: number;
  readonly endedAt: number | null;
}

export interface TaskChange {
  readonly kind: "task";
  readonly id: string;
  readonly runId: string | null;
  /** Null for a task without a run. */
  readonly workflow: string | null;
  readonly step: string;
  readonly state: TaskRow["state"];
  /** From 1. */
  readonly attempt: number;
  readonly holder: string | null;
  readonly error: string | null;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
}

export type Change = RunChange | TaskChange;

/** What a look brings. At least `missed` changes came before `changes` and are gone. */
export interface Look {
  readonly missed: number;
  readonly changes: readonly Noted[];
}

/** A change with its place. Its text is made once for all readers. */
export interface Noted {
  readonly number: number;
  readonly change: Change;
  data?: string;
}

/** What readers are sent of it, as JSON. */
export function dataOf(noted: Noted): string {
  if (noted.data === undefined) {
    const { kind: _, ...data } = noted.change;
    noted.data = JSON.stringify(data);
  }
  return noted.data;
}

export interface ChangesOptions {
  clock: Clock;
  /** What is not known with a task itself. Hidden ones are not reported. */
  originOf: (task: TaskRow) => TaskOrigin | Promise<TaskOrigin>;
  /** Sets these ids apart from those of any other process. */
  epoch: string;
  /** Changes kept. A reader that is further behind has missed some. */
  keptMax?: number;
}

/** Of an error; the whole of it is with the run or the task. A worker may report one of megabytes, and each reader is sent each change. */
const errorCharsMax = 2_000;

function shortened(error: string | null): string | null {
  if (error === null || error.length <= errorCharsMax) return error;
  // Copied: a part of a text keeps the whole of it in memory.
  return Buffer.from(cutMiddle(error, errorCharsMax)).toString();
}

/** About 2 MB. */
const keptMaxDefault = 8_192;
/** Changes that one look brings, so that one reader does not keep the others waiting. */
const lookMax = 500;
/** How long after the last reader left changes are still noted. */
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
  /** Resolves when all changes so far are noted; null when they are. */
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
    const { id, workflow, state, left, failed, error, createdAt, endedAt } = run;
    this.#inOrder({ kind: "run", id, workflow, state, left, failed, error: shortened(error), createdAt, endedAt });
  }

  task(task: TaskRow): void {
    if (!this.#noting) return;
    const { id, runId, step, state, holder, startedAt, endedAt } = task;
    const attempt = task.attempt + 1;
    const error = shortened(task.error);
    const changeOf = ({ workflow, isHidden }: TaskOrigin): TaskChange | null =>
      isHidden ? null : { kind: "task", id, runId, workflow, step, state, attempt, holder, error, startedAt, endedAt };
    const origin = this.#options.originOf(task);
    // A view without this change is out of date until the next one: no reason to stop.
    this.#inOrder(origin instanceof Promise ? origin.then(changeOf, () => null) : changeOf(origin));
  }

  /** Begins to read. `wake` is called, once per turn of the event loop, when there may be something new. Ends with what is returned. */
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

  /** What came after a number, the oldest first; never more than a bounded number of changes. */
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

  /** The number in an id; undefined for an id of another process, or one that was never given out. */
  numberOf(id: string): number | undefined {
    const dash = id.lastIndexOf("-");
    if (id.slice(0, dash) !== this.#options.epoch || !/^\d{1,15}$/.test(id.slice(dash + 1))) return undefined;
    const number = Number(id.slice(dash + 1));
    return number <= this.#last ? number : undefined;
  }

  close(): void {
    this.#cancelLinger?.();
  }

  /** What has to be read first holds up what comes after it. */
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

  /** Changes from now on are not noted, so an id of before must not be taken for a place among them. */
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
