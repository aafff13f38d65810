// The port of runs and definitions to a store. The decider is given to the store when it is opened: a change and all that follows
// from it are loaded, decided and written in one transaction.

import type { Decision, Frontier, RunEvent } from "./decide.ts";
import type { Definition } from "./dialect.ts";
import type { Plan } from "./plan.ts";
import type { Run, StoredMessage } from "./run.ts";

/** How the store thinks: pure functions, called inside its transactions. */
export interface Brain {
  plan(definition: Definition): Plan;
  decide(plan: Plan, frontier: Frontier, event: RunEvent): Decision;
}

export interface NewRun {
  id: string;
  workflow: string;
  definitionId: string;
  input: string;
  alias?: string | null;
  parentTaskId?: string | null;
  /** Which attempt of the parent; 0 when absent. */
  parentAttempt?: number;
  /** With a key that was used before for this workflow, the earlier run is answered instead of a new one. */
  key?: string | null;
  /** Answer the run that is going on, if there is one, instead of a new one. */
  unlessRunning?: boolean;
}

export interface RunStore {
  /** Keeps a definition; the same source under the same name is answered as it stands. Replaces nothing: runs keep their version. */
  define(definition: Omit<Definition, "version" | "createdAt">): Promise<Definition>;
  /** The newest version under a name. */
  definition(name: string): Promise<Definition | undefined>;
  definitionById(id: string): Promise<Definition | undefined>;
  /** Starts a run and posts its first steps. `created` is false when `key` or `unlessRunning` found an earlier one. */
  start(run: NewRun): Promise<{ run: Run; created: boolean }>;
  run(id: string): Promise<Run | undefined>;
  /** Tells a run that something happened to it. Answers the run after it, or undefined when there is none. A run that ended ignores all but `retry`. */
  tell(runId: string, event: { kind: "cancel" } | { kind: "timeout" } | { kind: "retry" }): Promise<Run | undefined>;
  /** Messages between runs that have not been carried out, oldest first. */
  messages(): Promise<StoredMessage[]>;
  /** Carries out one message and forgets it, in one transaction. */
  deliver(message: StoredMessage, child: { id: string; definitionId: string } | null): Promise<void>;
}
