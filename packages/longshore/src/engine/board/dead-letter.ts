// Dead letters: parts of a task's input that were put aside after too many tries, or that made the task fail. Only the protocol that handed
// out the work knows them. With this interface, all protocols report them in one form.

import type { TaskRow } from "./task.ts";

export interface DeadLetter {
  /** The name of the part within the task's input. */
  readonly uid: string;
  /** The reason as a code for programs. */
  readonly reason: string;
  readonly error: string | null;
  readonly tries: number;
}

/** A protocol that knows the dead letters of the tasks that it handed out. */
export interface DeadLetterSource {
  /** The dialect of the runs whose tasks may have dead letters. */
  readonly dialect: string;
  /** Oldest first; empty for a task of another protocol. Cheap for a task without dead letters. */
  deadLetters(task: TaskRow): Promise<readonly DeadLetter[]>;
}
