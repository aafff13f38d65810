// The port between the decider and the languages that workflows are written in.

import type { Json } from "../../core/json/json.ts";
import type { Sliced } from "../../core/slices/slice-work.ts";
import type { Deadline, EndState, Fault, TaskRow } from "../board/task.ts";
import type { DocumentKey } from "./documents.ts";
import type { EndNode, InstantNode, Placement, Plan, RunNode, TaskNode, Template, WaitNode } from "./plan.ts";
import type { Run } from "./run.ts";
import type { NewRun } from "./store.ts";

/** A stored definition: the source verbatim, and its name. */
export interface Definition {
  readonly id: string;
  /** A name that starts with a dot is for a definition that the server made for runs: it is in no list. */
  readonly name: string;
  /** Counts from 1 for each name. Runs keep the version they started with. */
  readonly version: number;
  readonly dialect: string;
  /** JSON text in the dialect's own form. */
  readonly source: string;
  readonly createdAt: number;
}

/** A definition that has not been stored yet. */
export type NewDefinition = Omit<Definition, "version" | "createdAt">;

/** What a template may read: the run, and the records of settled steps. */
export interface Scope {
  readonly run: Run;
  /** The run's input. */
  input(): Json;
  /** The run's variables; an object. */
  variables(): { readonly [name: string]: Json };
  /** The output of a step; undefined when it has not been loaded, null when there is none (skipped, failed, or empty). */
  output(node: number): Json | undefined;
  /** The record of a step; undefined when it has not been loaded, null when the step has not started. */
  record(node: number): TaskRow | null | undefined;
  /** Every record by node; undefined when they have not been loaded. The cost grows with the number of steps. */
  records(): ReadonlyMap<number, TaskRow> | undefined;
  /** The result of long work with this key; undefined when it has not been done. */
  made(key: string): Json | undefined;
  /** The newest document of a kind under a name; undefined when it has not been loaded, null when there is none. */
  document(kind: string, name: string): Json | undefined;
  /** Called with the number of values that a template visited, which counts towards the cost of the decision. */
  looked?(values: number): void;
  /** The attempt whose template is being evaluated, if any. */
  readonly self: { readonly node: number; readonly attempt: number } | null;
  readonly now: number;
}

/** Rows that a template still has to read, and work that has to be done for it. */
export interface Needs {
  needs: readonly number[];
  records?: readonly number[];
  all?: boolean;
  documents?: readonly DocumentKey[];
  work?: LongWork;
}

/**
 * Work on data of the run that would hold the event loop. It is done in slices, before the decision is made again. It is pure, and `key`
 * identifies its result within the run.
 */
export interface LongWork {
  readonly key: string;
  make(): Sliced<Json>;
}

/** An error of the work is for its template: the decision is the same each time that it is made. */
export type DoneWork = { readonly value: Json } | { readonly error: Error };

/**
 * `warning` is stored with the record of a step that succeeds in spite of it. A failure may also have an output: a step that cannot start,
 * a join, a run.
 */
export type Resolved = { value: Json; warning?: string } | Needs | { failed: string; fault?: Fault; output?: Json };

/** A definition that a dialect makes for a child run. It is in no list. Equal definitions have the same id. */
export interface ChildDefinition {
  readonly id: string;
  /** The source, in the dialect of the parent. */
  readonly source: string;
  /** The workflow that the child run is shown under. */
  readonly workflow: string;
  /** Added to the priority of the child's tasks. */
  readonly priority: number;
}

export type Placed = { placement: Placement | null; given?: Json } | { becomes: InstantNode | WaitNode | EndNode };

/** The failure of a task for which there is no valid placement. */
export interface Unplaced {
  failed: string;
  fault?: Fault;
  output?: Json;
}

/** How a step ended without a result, in the distinctions that dialects need. */
export interface StepFailure {
  readonly node: number;
  readonly taskId: string;
  readonly attempt: number;
  readonly state: EndState;
  readonly fault: Fault | null;
  /** The deadline that passed, when the fault is a timeout. */
  readonly overdue?: Deadline | null;
  readonly error: string | null;
}

/** Functions to show inputs that a dialect stores in its own form, or with secret values. All inputs are JSON texts. */
export interface ShownForm {
  /** Returns false when a text is certainly shown as it is stored. Called for inputs of every dialect. */
  maybe(json: string): boolean;
  runInput(run: Run): string;
  taskInput(task: Pick<TaskRow, "input" | "lane">): string;
}

export interface Dialect {
  readonly name: string;
  /** Absent when inputs are stored as they were received. */
  readonly shown?: ShownForm;
  /** Turns a stored source into a plan. Throws LONGSHORE_BAD_DEFINITION for a source that the dialect's parser would refuse. */
  compile(source: string): Plan;
  /** The same in slices, for a large source. Default: `compile`, for a dialect whose plans are small. */
  compileInSlices?(source: string): Sliced<Plan>;
  /**
   * Checks the source of a child workflow of this name, which came from a worker. Rejects with LONGSHORE_BAD_DEFINITION. Absent when
   * definitions of the dialect may do what workers may not, such as read secrets or run shell commands. Then workers cannot define
   * workflows in it.
   */
  checkReported?(name: string, source: string): Promise<void>;
  /** Evaluates a template. Pure; reports what must be loaded in `needs`. */
  resolve(plan: Plan, template: Template, scope: Scope): Resolved;
  /**
   * The placement of a task in this run, for nodes with `placed`; null when the placement of its node applies. `given` replaces the input
   * that the worker receives. `becomes`: the task is not for a worker in this run, and starts as this node instead.
   */
  place?(plan: Plan, node: TaskNode, input: Json, scope: Scope): Placed | Needs | Unplaced;
  /** The definition of the child run of a step that names none, for this input. Default: a starter of the dialect finds it (`Runs`). */
  child?(plan: Plan, node: RunNode, run: Run, input: Json): ChildDefinition;
  /** The error of a run whose steps have failed; `before` is its error so far. Default: the first failure. */
  explain?(plan: Plan, failure: StepFailure, before: string | null): string | undefined;
  /** The error of a child run that is cancelled because its parent has ended; `reason` is the parent's error. */
  orphaned?(reason: string | null): string;
  /** The output (JSON text) of a run whose successor could not be started, for this reason. Default: unchanged. */
  unfollowed?(output: string | null, error: string): string;
  /** The fields that a rerun copies from this run, besides its definition and input. Default: none. */
  rerunFields?(run: Run): Pick<NewRun, "settings" | "variables" | "priority">;
  /** The error of a run whose output could not be evaluated, for this reason. */
  outputFailed?(plan: Plan, reason: string): string;
  /** The error of a run that has exceeded its own timeout. */
  timedOut?(plan: Plan): string;
}
