// Reading for people and pages: a port of its own, so that no view can change anything, and no view adds to what a store must write.

import type { Lane, Task, TaskState, Verb } from "../board/task.ts";
import type { Definition } from "./dialect.ts";
import type { Run, RunState } from "./run.ts";

/** `next` is the `before` of the following page; null when there is none. A page may be short, even empty, and still have a next. */
export interface Page<T> {
  items: T[];
  next: string | null;
}

export interface RunQuery {
  workflow?: string;
  state?: RunState;
  before?: string;
  limit: number;
}

export interface TaskQuery {
  state?: TaskState;
  /** The lane's name, whatever its labels. */
  lane?: string;
  runId?: string;
  before?: string;
  limit: number;
}

/** One try of a task. The last of a list is the current one; it has not ended when `endedAt` is null. */
export interface AttemptView {
  readonly attempt: number;
  readonly grant: number;
  readonly holder: string | null;
  readonly error: string | null;
  readonly queuedAt: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  readonly closedBy: Verb | null;
}

/** A lane as it stands now. */
export interface QueueView {
  readonly lane: Lane;
  /** Tasks that could be taken now. */
  readonly ready: number;
  /** Claims that stand in line for this lane, perhaps among others. */
  readonly waiting: number;
  /** When somebody last asked for this lane's tasks; 0 for never. */
  readonly polledAt: number;
}

export interface CountsView {
  readonly openRuns: number;
  /** Ended and still kept. */
  readonly endedRuns: number;
  /** Tasks without a run that ended and are still kept. */
  readonly endedTasks: number;
}

/** Lists are newest first unless said otherwise. */
export interface Reader {
  run(id: string): Promise<Run | undefined>;
  runs(query: RunQuery): Promise<Page<Run>>;
  newestRun(workflow: string): Promise<Run | undefined>;
  openRuns(workflow: string, limit?: number): Promise<Run[]>;
  /** The newest run that goes by this outside id. */
  runByAlias(alias: string): Promise<Run | undefined>;
  /** Every record of a run, in the order of the plan's nodes. */
  records(runId: string): Promise<Task[]>;
  task(id: string): Promise<Task | undefined>;
  tasks(query: TaskQuery): Promise<Page<Task>>;
  /** Oldest first; empty when there is no such task. */
  attempts(taskId: string): Promise<AttemptView[]>;
  /** The newest version of each name, in the order in which the names were first defined. */
  definitions(page: { limit: number; offset?: number; dialect?: string }): Promise<Definition[]>;
  definition(name: string): Promise<Definition | undefined>;
  definitionById(id: string): Promise<Definition | undefined>;
  queues(): QueueView[];
  counts(): Promise<CountsView>;
}

/** The largest page; more is asked for in several. */
export const pageMax = 1_000;
