// What a store contains about one run, as data for the checker of `longshore verify`: tasks with all attempts, child runs, and messages
// that are not delivered. The rules are in verify/; this file has only the types and the port.

import type { TaskState, Verb } from "../board/task.ts";
import type { Keep } from "./retention.ts";
import type { Message, RunState } from "./run.ts";

/** One attempt that has ended, or the current one. */
export interface AttemptHistory {
  readonly attempt: number;
  readonly grant: number;
  readonly holder: string | null;
  /** When its last hold started; null when no worker took it. */
  readonly claimedAt: number | null;
  readonly endedAt: number | null;
  readonly closedBy: Verb | null;
  /** The task's state at the end of the attempt, or now. Null when it was not stored. */
  readonly state: TaskState | null;
}

export interface TaskHistory {
  readonly id: string;
  readonly runId: string | null;
  readonly step: string;
  readonly state: TaskState;
  /** False for a record that no worker claims: a wait, a child run, a skipped step. */
  readonly onLane: boolean;
  /** True for the record of a child run. */
  readonly startsRun: boolean;
  /** True for the record of a step that waits for all of certain other steps of its run. Servers of earlier versions do not report it. */
  readonly joins?: boolean;
  /**
   * For the task of a durable function: `function`. For one of its commands: how many results it had received by then, and the command,
   * such as `3 step price`. Null for other tasks. Servers of earlier versions do not report it.
   */
  readonly command?: string | null;
  /** Of such a command: the number of its result; 0 without one. */
  readonly place?: number;
  readonly firstAttempt: number;
  /** The newest grant, and the newest that was closed. */
  readonly grant: number;
  readonly closedGrant: number;
  readonly endedAt: number | null;
  readonly hasOutput: boolean;
  /** Oldest first; the last is the current one, except when its life has ended and the next has not started (`forgotten`). */
  readonly attempts: readonly AttemptHistory[];
  /** Stretches of parts, one for each life of the task that produced some. */
  readonly parts: readonly PartsHistory[];
}

export interface PartsHistory {
  readonly life: number;
  readonly count: number;
  readonly first: number;
  readonly last: number;
  /** The highest grant that produced a part. */
  readonly grantMax: number;
}

/** What a run of a durable function counts of its journal. */
export interface JournalCounts {
  /** The highest number of a command. */
  readonly commands: number;
  /** The number of the newest result, and of the newest one that was sent to the function. */
  readonly place: number;
  readonly sent: number;
  /** Whether the function waits: no turn is queued or in progress. */
  readonly waits: boolean;
}

export interface ChildHistory {
  readonly taskId: string;
  readonly attempt: number;
  readonly runId: string;
  readonly state: RunState;
}

export interface RunHistory {
  readonly id: string;
  readonly workflow: string;
  readonly state: RunState;
  readonly endedAt: number | null;
  /** When a run that was started with a delay begins; null once it has begun. Servers of earlier versions do not report it. */
  readonly startAt?: number | null;
  /** The run's place among the runs that wait for their turn. */
  readonly turn?: number | null;
  /** Nodes that have started and not settled, as counted by the store. */
  readonly active: number;
  /**
   * How many decisions wait: the rest of a large decision, or a step that ended while the run was paused. Each counts as active. Servers of
   * version 0.1 do not report it.
   */
  readonly left?: number;
  readonly retries: number;
  /** Of a durable function. Servers of earlier versions do not report it. */
  readonly journal?: JournalCounts | null;
  readonly hasDefinition: boolean;
  readonly parentTaskId: string | null;
  readonly tasks: readonly TaskHistory[];
  /** Child runs of these tasks, of every attempt. */
  readonly children: readonly ChildHistory[];
  /** Messages from or to this run that wait to be delivered. */
  readonly messages: readonly Message[];
}

export interface NextPage {
  /** The `after` of the next page; null when there is none. A page may be short, even empty, and still have a next. */
  readonly next: string | null;
}

export interface HistoryReader {
  /** The ids of the runs that follow `after`, in order, at most `limit`. */
  runIds(after: string, limit: number): Promise<string[]>;
  /**
   * The run with at most `limit` of its tasks that follow `after`; fewer when they have very many attempts. Undefined when there is no such
   * run.
   */
  runPage(id: string, tasks: { after: string; limit: number }): Promise<(RunHistory & NextPage) | undefined>;
  /** Tasks that belong to no run and follow `after`, in order. Visits at most `limit` tasks of any kind. */
  looseTasks(after: string, limit: number): Promise<{ readonly items: readonly TaskHistory[] } & NextPage>;
  task(id: string): Promise<TaskHistory | undefined>;
  /** How long runs are kept after their end; undefined when unknown. */
  kept(): Promise<Keep | undefined>;
}
