// Reads for display. This is a separate port, so views cannot change anything, and a new view needs no new write in a store.

import type { Growth, ListOptions } from "../../core/list-text.ts";
import type { LongBytes } from "../../core/long-bytes.ts";
import type { Deadline, Fault, TaskRow, TaskRowHead, TaskState, Verb } from "../board/task.ts";
import type { Definition } from "./dialect.ts";
import type { Run, RunHead, RunState } from "./run.ts";

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
  /** The lane's name, with any labels. */
  lane?: string;
  runId?: string;
  before?: string;
  limit: number;
}

/** One attempt of a task. The last of a list is the current one; it has not ended when `endedAt` is null. */
export interface AttemptView {
  readonly attempt: number;
  readonly grant: number;
  readonly holder: string | null;
  readonly error: string | null;
  readonly queuedAt: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  readonly closedBy: Verb | null;
  readonly fault: Fault | null;
  /** The deadline that passed, when the fault is a timeout. */
  readonly overdue: Deadline | null;
  /** Place among the records of its run. */
  readonly ordinal: number;
  readonly deferrals: number;
  /** When the attempt was first queued, when it could be taken, and when it was last taken. */
  readonly attemptAt: number;
  readonly dueAt: number;
  readonly claimedAt: number | null;
  /** JSON texts; the input only when it differs from that of the next attempt. */
  readonly input: string | null;
  readonly output: string | null;
}

/** The filters of a search; an absent one does not filter. Times are milliseconds since 1970. A time that equals a bound does not match. */
export interface RunSearch {
  readonly ids?: readonly string[];
  readonly workflows?: readonly string[];
  readonly states?: readonly RunState[];
  readonly aliases?: readonly string[];
  /** Patterns in which `*` matches any text; case-insensitive. */
  readonly like?: { readonly id?: string; readonly workflow?: string; readonly alias?: string };
  readonly created?: { readonly after?: number; readonly before?: number };
  readonly ended?: { readonly after?: number; readonly before?: number };
  /** Text anywhere in id, workflow, alias, input, output or error; case-insensitive. */
  readonly text?: string;
  readonly order?: { readonly by: "created" | "ended" | "workflow" | "state"; readonly down: boolean };
  readonly offset: number;
  readonly limit: number;
}

export interface CountsView {
  readonly openRuns: number;
  /** Runs that ended and are still stored. */
  readonly endedRuns: number;
  /** Tasks without a run that ended and are still stored. */
  readonly endedTasks: number;
}

/** Lists are newest first by default. */
export interface Reader {
  run(id: string): Promise<Run | undefined>;
  /** The same without its texts: for callers that need only its state, or where there may be hundreds of readers. */
  runHead(id: string): Promise<RunHead | undefined>;
  runs(query: RunQuery): Promise<Page<Run>>;
  /** The same without their texts. Large texts do not make a page shorter. */
  runHeads(query: RunQuery): Promise<Page<RunHead>>;
  /** Searches at most the newest `searchMax` runs. The found runs are read one by one, as the caller iterates. */
  search(search: RunSearch): Promise<{ total: number; runs: AsyncIterable<Run>; heads: AsyncIterable<RunHead> }>;
  /** The runs whose ids start with `prefix`, in the order of their ids. Read one by one, as the caller iterates. */
  runsUnder(prefix: string): AsyncIterable<Run>;
  headsUnder(prefix: string): AsyncIterable<RunHead>;
  /** The number of these runs in each state; states without runs are left out. */
  statesUnder(prefix: string): Promise<Map<RunState, number>>;
  /** The child run of an attempt of a step. */
  childOf(taskId: string, attempt: number): Promise<Run | undefined>;
  /** The same without its texts. */
  childHeadOf(taskId: string, attempt: number): Promise<RunHead | undefined>;
  newestRun(workflow: string): Promise<Run | undefined>;
  openRuns(workflow: string, limit?: number): Promise<Pick<RunHead, "id" | "createdAt" | "settings">[]>;
  /** The newest run with this alias. */
  runByAlias(alias: string): Promise<Run | undefined>;
  /**
   * Every record of a run, in the order of the plan's nodes. They are read one by one, as the caller iterates, because together they may
   * have gigabytes.
   */
  records(runId: string): AsyncIterable<TaskRow>;
  /** The same without their texts, all at once. */
  heads(runId: string): Promise<TaskRowHead[]>;
  task(id: string): Promise<TaskRow | undefined>;
  taskHead(id: string): Promise<TaskRowHead | undefined>;
  tasks(query: TaskQuery): Promise<Page<TaskRow>>;
  /** The same without their texts. Large texts do not make a page shorter. */
  taskHeads(query: TaskQuery): Promise<Page<TaskRowHead>>;
  /** Oldest first; empty when there is no such task. Above `charsMax` characters, the oldest are returned without texts; with 0, all of them. */
  attempts(taskId: string, charsMax?: number): Promise<AttemptView[]>;
  /** The error of the newest earlier attempt that has one. */
  lastError(taskId: string): Promise<string | null>;
  /** The newest version of each name, in the order in which the names were first defined; without those that are never started by name. */
  definitions(page: { limit: number; offset?: number; dialect?: string }): Promise<Definition[]>;
  definition(name: string): Promise<Definition | undefined>;
  definitionById(id: string): Promise<Definition | undefined>;
  /** Names of known lanes: recently claimed, or with tasks. */
  laneNames(): Promise<ReadonlySet<string>>;
  /** The number of tasks without a worker, including delayed and limited ones, by the name of their lane. */
  queued(): Promise<Map<string, number>>;
  counts(): Promise<CountsView>;
  /** Resolves when this many whole rows may be processed in the current turn of the event loop: for views with expensive processing. */
  turn(rows: number): Promise<void>;
  /** A response of a list of JSON texts of any number. `items` may be called twice: list-text.ts. */
  listBody(items: () => AsyncIterable<string> | Iterable<string>, options?: ListOptions): Promise<string | LongBytes>;
  /** A response of consecutive texts of any number. `make` may be called twice. */
  longBody(make: (growth: Growth) => Promise<readonly string[]>): Promise<string | LongBytes>;
}

/** Maximum number of runs that a search visits: this takes less than a second, in slices. */
export const searchMax = 200_000;

/** Maximum characters of inputs and outputs in one page, which the last row may exceed: a thousand rows may have gigabytes together. */
export const pageCharsMax = 8 * 1_048_576;

/** The same for a page that is read and written in one turn of the event loop: up to 10 ms. Its rows are smaller. */
export const pageAtOnceCharsMax = 1_048_576;

/** The largest page; a larger read takes several. */
export const pageMax = 1_000;
