// The loops of a plan: which node belongs to which iteration, and what expressions read inside and after a loop. README.md, "Loops".
//
// Each iteration has nodes of its own. The plan has some iterations more than a run has reached. When a run needs more, it continues with a
// longer definition (grow.ts).

import type { JsonObject } from "../../../core/json/json.ts";
import type { Plan } from "../../../engine/run/plan.ts";
import type { Compiled } from "./expression.ts";
import type { WorkflowDef, WorkflowTask } from "./model.ts";

/** One DO_WHILE of a plan. */
export interface Loop {
  readonly ref: string;
  /** The node of the DO_WHILE itself. */
  readonly at: number;
  readonly task: WorkflowTask;
  /** The list of a loop over items. */
  readonly items: Compiled | null;
  /** The nodes that end the loop, by the number of the last iteration. The first is for a loop over an empty list. */
  readonly ends: number[];
  /** The nodes that decide what follows an iteration, by its number. Each is recorded after the one before. */
  readonly turns: number[];
  /** The evaluations of the condition, by iteration; absent without a condition. */
  readonly conditions: number[];
  /** The tasks of each iteration, without the suffix. */
  readonly bodies: [ref: string, node: number][][];
}

export interface Within {
  readonly loop: Loop;
  readonly iteration: number;
}

/** A fork whose tasks a run has brought, by the id of its node. The last entry counts. */
export type Growth = { readonly loop: string; readonly upTo: number } | GrownFork;

/** `from` identifies the input that the tasks came from; absent in definitions of earlier versions. */
export interface GrownFork {
  readonly fork: string;
  readonly tasks: readonly WorkflowTask[];
  readonly joinOn: readonly string[];
  readonly from?: string;
}

/** A definition as a run may store it: with what has grown in runs of it. */
export type GrownDef = WorkflowDef & { readonly grown?: readonly Growth[] };

/** The suffix of a reference name in an iteration. */
export function inIteration(ref: string, iteration: number): string {
  return `${ref}__${iteration}`;
}

export class Loops {
  readonly #byRef = new Map<string, Loop>();
  /** The loop that contains a task of this reference name. */
  readonly #around = new Map<string, Loop>();
  readonly #within = new Map<number, Within>();

  add(loop: Loop): void {
    this.#byRef.set(loop.ref, loop);
    this.#within.set(loop.at, { loop, iteration: 0 });
  }

  place(node: number, within: Within, ref: string | null): void {
    this.#within.set(node, within);
    if (ref === null) return;
    this.#around.set(ref, within.loop);
    within.loop.bodies[within.iteration - 1]?.push([ref, node]);
  }

  named(ref: string): Loop | undefined {
    return this.#byRef.get(ref);
  }

  around(ref: string): Loop | undefined {
    return this.#around.get(ref);
  }

  /** The iteration of a node; 0 for the DO_WHILE itself. Undefined outside of loops. */
  of(node: number): Within | undefined {
    return this.#within.get(node);
  }
}

const none = new Loops();
const loopsKey = Symbol("loops");

/** Keeps the loops with the definition that a plan comes from; they are not part of its JSON. */
export function withLoops(definition: GrownDef, loops: Loops): GrownDef {
  return Object.assign({ ...definition }, { [loopsKey]: loops });
}

export function loopsOf(plan: Pick<Plan, "origin">): Loops {
  return (plan.origin as { [loopsKey]?: Loops } | undefined)?.[loopsKey] ?? none;
}

export function growthOf(plan: Pick<Plan, "origin">): readonly Growth[] {
  return (plan.origin as GrownDef).grown ?? [];
}

/** The definition without what has grown, as callers know it. */
export function withoutGrowth(definition: WorkflowDef): WorkflowDef {
  const { grown: _grown, ...rest } = definition as GrownDef;
  return rest;
}

/** How many iterations stay in the output and in the list of tasks; null for all. */
export function keptIterations(input: JsonObject): number | null {
  const { keepLastN } = input;
  return typeof keepLastN === "number" && keepLastN > 0 ? Math.floor(keepLastN) : null;
}
