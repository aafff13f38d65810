// The port between the decider and the languages that workflows are written in.

import type { Json } from "../json.ts";
import type { Plan, Template } from "./plan.ts";

/** A definition as it is kept: the source verbatim, and what it is called. */
export interface Definition {
  readonly id: string;
  readonly name: string;
  /** Counts from 1 for each name. Runs keep the version they started with. */
  readonly version: number;
  readonly dialect: string;
  /** JSON text in the dialect's own form. */
  readonly source: string;
  readonly createdAt: number;
}

/** What a template may read: the run's input, and the results of steps that settled. */
export interface Scope {
  /** The run's input. */
  input(): Json;
  /** The output of a step; undefined when it has not been loaded, null when it has none (skipped, failed, or empty). */
  output(node: number): Json | undefined;
}

export type Resolved = { value: Json } | { needs: readonly number[] } | { failed: string };

export interface Dialect {
  readonly name: string;
  /** Turns a stored source into a plan. Throws LONGSHORE_BAD_DEFINITION, which can only happen for sources that `parse` never saw. */
  compile(source: string): Plan;
  /** Works out a template. Pure; asks for what it lacks by `needs`. */
  resolve(plan: Plan, template: Template, scope: Scope): Resolved;
}
