// Turns that a worker takes before they are handed out. It sends them with the result of the step that they wait for: `ForeseenTurn` in
// core/turn.ts.

import type { Json } from "../../core/json/json.ts";
import type { Task } from "../../core/task.ts";
import type { ForeseenTurn } from "../../core/turn.ts";

/** A larger output reaches the function through the journal. */
export const foreseenCharsMax = 16_384;

export interface Foreseen {
  readonly turn: ForeseenTurn;
  /** The server has accepted the turn. Without this call, the function is replayed in its next turn. */
  accepted(): void;
}

/** A task for turns. */
export interface DriverTask extends Task {
  /**
   * Takes the turn that the result of this step brings. Undefined when the worker does not have the function in memory, or the function waits for
   * something else.
   */
  foresee(runId: string, step: StepHandOut, output: Json): Promise<Foreseen | undefined>;
}

/** A step as its worker knows it: the name that it is shown with, and when the server handed it out. */
export interface StepHandOut {
  readonly shown: string;
  readonly since: number;
}

/** All functions of a worker have one memory. Undefined for a worker without functions. */
export function foresightOf(tasks: ReadonlyMap<string, Task>): DriverTask["foresee"] | undefined {
  for (const task of tasks.values()) if ("foresee" in task) return (task as DriverTask).foresee;
  return undefined;
}
