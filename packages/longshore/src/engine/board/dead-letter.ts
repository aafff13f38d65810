// What a task was given and could not do: put aside after too many tries, or the reason for which the task failed. Which these are is known
// to the protocol that handed the work out; here all of them can be read in one place.

import type { TaskRow } from "./task.ts";

export interface DeadLetter {
  /** Its name within the task's input. */
  readonly uid: string;
  /** A word for programs. */
  readonly reason: string;
  readonly error: string | null;
  /** How often it was tried. */
  readonly tries: number;
}

/** Knows the dead letters of the tasks that it handed out. */
export interface DeadLetterSource {
  /** Oldest first; empty for a task of another protocol. Cheap for a task that has none. */
  deadLetters(task: TaskRow): Promise<readonly DeadLetter[]>;
}
