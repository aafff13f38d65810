// The port of runs and definitions to a store. The store is opened with the decider: a change and all its consequences are loaded, decided
// and written in one transaction.

import type { EventTrigger } from "../../core/event-trigger.ts";
import type { Decision, Frontier, RunEvent } from "./decide.ts";
import type { Definition, NewDefinition } from "./dialect.ts";
import type { Foreseen } from "./foresight.ts";
import type { Plan } from "./plan.ts";
import type { Run, StoredMessage } from "./run.ts";

/** The decisions of the store: pure functions, called inside its transactions. */
export interface Brain {
  plan(definition: Definition): Plan;
  /** The same in slices, with turns of the event loop between them. */
  planInTurns(definition: Definition): Promise<Plan>;
  decide(plan: Plan, frontier: Frontier, event: RunEvent): Decision;
}

/** One life of a run. Another one begins when the run is retried, rerun or restarted. */
export interface Life {
  readonly runId: string;
  readonly life: number;
}

/**
 * Requests of a caller to a run. One that does not fit the state of the run is ignored. So is one whose fence names a life that is over.
 */
export type Order =
  | { kind: "cancel"; error?: string; fence?: readonly Life[] }
  | { kind: "timeout" }
  | { kind: "retry" }
  /** Start this step again, and those behind it; optionally with another input of the step or of the run, or other settings (JSON texts). */
  | { kind: "rerun"; node: number; input?: string; runInput?: string; settings?: string; alias?: string | null }
  /** Restart from the beginning, optionally with another definition, input or settings (JSON texts), and only these variables. */
  | { kind: "restart"; definitionId?: string; input?: string; settings?: string; alias?: string | null; variables?: string | null }
  | { kind: "pause" }
  | { kind: "resume" }
  | { kind: "skip"; node: number; input: string; output: string };

export interface NewRun {
  id: string;
  /** When a run with this id exists, it is returned instead of a new one: for callers that derive ids from the input. */
  unlessThere?: boolean;
  workflow: string;
  definitionId: string;
  input: string;
  alias?: string | null;
  parentTaskId?: string | null;
  /** The attempt of the parent. Default: 0. */
  parentAttempt?: number;
  /** The top run of the family, when the caller knows it. Default: the top run of the parent's family. */
  rootId?: string | null;
  /** When the key was used before for this workflow, the earlier run is returned instead of a new one. */
  key?: string | null;
  /** The key finds an earlier run only while that run is open. Then it passes to the new run. */
  keyWhileOpen?: boolean;
  /** An earlier run with this key must have the same input; otherwise the start is refused with LONGSHORE_CONFLICT. */
  sameInput?: boolean;
  priority?: number;
  /** When the run begins, and its timeout with it. Default: at once. */
  startAt?: number | null;
  /** JSON texts. */
  settings?: string | null;
  variables?: string | null;
  /** The start is not held back to wait for further ones, as it is by `debounce`: a tick of a schedule. */
  atOnce?: boolean;
  /** The run that a caller runs again by this start. */
  rerunOf?: string;
  /** Return the run in progress, if there is one, instead of a new one. */
  unlessRunning?: boolean;
}

export interface Started {
  readonly run: Run;
  /** False when its id, `key` or `unlessRunning` found an earlier run, or the limit of the workflow skips the start. */
  readonly created: boolean;
  /** The limit of the workflow is reached by `run`, and skips further starts. */
  readonly skipped?: true;
}

export interface RunStore {
  /**
   * Stores a definition, or returns the stored one when its name has the same source. Replaces nothing: runs keep their version. `plan` is
   * the compiled source, for callers that have compiled it. `events`: those that start it. Default: those of the plan.
   */
  define(definition: NewDefinition, plan?: Plan, events?: readonly EventTrigger[]): Promise<Definition>;
  /** The newest version under a name. */
  definition(name: string): Promise<Definition | undefined>;
  definitionById(id: string): Promise<Definition | undefined>;
  /** Starts a run and posts its first steps, unless it waits for its delay or its turn. */
  start(run: NewRun): Promise<Started>;
  run(id: string): Promise<Run | undefined>;
  /** Returns the run afterwards, or undefined when there is none. */
  tell(runId: string, order: Order): Promise<Run | undefined>;
  /** What an order would do; undefined when there is no such run, null when the order does not apply to its state. */
  foresee(runId: string, order: Order): Promise<Foreseen | null | undefined>;
  /** Ends the delays of a run's queued tasks. Returns false when there is no such run, or it has ended. */
  hasten(runId: string): Promise<boolean>;
  /** A page of the messages between runs that have not been carried out, oldest first. `after` is the id of the last one of the page before. */
  messages(after?: number): Promise<StoredMessage[]>;
  /** The id of the newest message that cancels a child; 0 before the first. */
  newestCancel(): number;
  /** Carries out one message and removes it, in one transaction. */
  deliver(message: StoredMessage, child: NewChild | null): Promise<void>;
}

/** The run that a start message resolves to; `failed` when it cannot be started, with a text for the step that waits for it. */
export type NewChild =
  | ({ id: string; definitionId: string; workflow: string; input: string } & Pick<NewRun, "settings" | "priority" | "alias" | "variables">)
  | { failed: string };
