// What templates of loops resolve to.

import { isObject, type Json, type JsonObject, setOwn } from "../../../core/json/json.ts";
import type { Resolved, Scope } from "../../../engine/run/dialect.ts";
import type { Plan, PlanNode } from "../../../engine/run/plan.ts";
import { moreIterations } from "./grow.ts";
import { keptIterations, type Loop, loopsOf } from "./loops.ts";
import { outputOf } from "./records.ts";
import type { ConductorTemplate } from "./template.ts";

/** How an evaluation of a condition has ended: the output of its task. */
export type Condition = { readonly goesOn: boolean } | { readonly failed: string };

type LoopTemplate = ConductorTemplate & { readonly loop: string };

export interface Filling {
  /** The input of the DO_WHILE. */
  input: JsonObject;
  /** The list of a loop over items; null for other loops. */
  items: readonly Json[] | null;
}

export class Iterating {
  readonly #plan: Plan;
  readonly #scope: Scope;
  readonly #loop: Loop;
  readonly #filling: Filling;

  constructor(plan: Plan, scope: Scope, loop: Loop, filling: Filling) {
    this.#plan = plan;
    this.#scope = scope;
    this.#loop = loop;
    this.#filling = filling;
  }

  resolve(template: LoopTemplate): Resolved {
    switch (template.kind) {
      case "more-iterations": {
        const turn = this.#turn(template.iteration);
        return "value" in turn && turn.value === "go" ? moreIterations(this.#plan, this.#loop) : "value" in turn ? { value: null } : turn;
      }
      case "loop-turn":
        return this.#turn(template.iteration);
      case "loop-condition":
        return this.#conditionInput(template.iteration);
      default:
        return this.#output();
    }
  }

  #turn(iteration: number): Resolved {
    const { items } = this.#filling;
    const hasMore = items === null || iteration < items.length;
    const work = iteration === 0 ? undefined : this.#loop.conditions[iteration];
    if (work === undefined) return { value: hasMore && (items !== null || iteration === 0) ? "go" : "end" };
    const output = this.#scope.output(work);
    if (output === undefined) return { needs: [work] };
    const condition = output as unknown as Condition | null;
    return { value: condition !== null && "goesOn" in condition && condition.goesOn && hasMore ? "go" : "end" };
  }

  #conditionInput(iteration: number): Resolved {
    const { ref, task } = this.#loop;
    const current = this.#iterations(iteration, iteration);
    if ("needs" in current) return current;
    const state: JsonObject = this.#progress(iteration);
    if (readsEarlier(task.loopCondition ?? "", ref)) {
      const earlier = this.#iterations(1, iteration);
      if ("needs" in earlier) return earlier;
      for (const [number, outputs] of Object.entries(earlier.value)) setOwn(state, number, outputs);
    }
    const read: JsonObject = { ...this.#filling.input, ...this.#itemOf(iteration) };
    setOwn(read, ref, state);
    for (const [name, output] of Object.entries(current.value[iteration] as JsonObject)) setOwn(read, name, output);
    return { value: read };
  }

  #output(): Resolved {
    const last = this.#lastIteration();
    if (typeof last !== "number") return last;
    const kept = keptIterations(this.#filling.input);
    const outputs = this.#iterations(kept === null ? 1 : Math.max(1, last - kept + 1), last);
    if ("needs" in outputs) return outputs;
    const output = { ...outputs.value, ...this.#progress(last) };
    const work = this.#loop.conditions[last];
    if (last === 0 || work === undefined) return { value: output };
    const condition = this.#scope.output(work);
    if (condition === undefined) return { needs: [work] };
    return isObject(condition) && typeof (condition as JsonObject).failed === "string"
      ? { failed: (condition as JsonObject).failed as string, fault: "final", output }
      : { value: output };
  }

  /** The number of the iteration after which the loop has ended. It is the newest whose turn is recorded, found by halving. */
  #lastIteration(): number | Resolved {
    const { items, turns, ends } = this.#loop;
    let newest = items === null ? 1 : 0;
    for (let above = turns.length; above - newest > 1; ) {
      const middle = (newest + above) >> 1;
      const turn = turns[middle] as number;
      const record = this.#scope.record(turn);
      if (record === undefined) return { needs: [], records: [turn] };
      if (record === null) above = middle;
      else newest = middle;
    }
    const end = ends[newest] as number;
    const record = this.#scope.record(end);
    if (record === undefined) return { needs: [], records: [end] };
    return record?.state === "done" ? newest : 0;
  }

  /** The outputs of the tasks that have begun, for these iterations. */
  #iterations(from: number, to: number): { value: JsonObject } | { needs: readonly number[]; records: readonly number[] } {
    const [needs, records]: [number[], number[]] = [[], []];
    const value: JsonObject = {};
    for (let iteration = Math.max(from, 1); iteration <= to; iteration++) {
      const outputs: JsonObject = {};
      for (const [ref, node] of this.#loop.bodies[iteration - 1] ?? []) {
        const isRun = this.#plan.nodes[node]?.kind === "run";
        const record = isRun ? this.#scope.record(node) : null;
        const output = isRun
          ? record === undefined || record === null
            ? record
            : outputOf(this.#plan.nodes[node] as PlanNode, record)
          : this.#scope.output(node);
        if (output === undefined) (isRun ? records : needs).push(node);
        else if (output !== null) setOwn(outputs, ref, output);
      }
      setOwn(value, `${iteration}`, outputs);
    }
    return needs.length + records.length > 0 ? { needs, records } : { value };
  }

  #progress(iteration: number): JsonObject {
    return { iteration, ...this.#itemOf(iteration) };
  }

  #itemOf(iteration: number): JsonObject {
    return itemOf(this.#filling.items, iteration);
  }
}

/** What a loop over items shows in an iteration. */
export function itemOf(items: readonly Json[] | null, iteration: number): JsonObject {
  return items === null || iteration === 0 ? {} : { loopIndex: iteration - 1, loopItem: items[iteration - 1] ?? null };
}

/** A value that is not a list is a list of one; nothing is an empty list. */
export function itemsOf(value: Json): readonly Json[] {
  return Array.isArray(value) ? value : value === null ? [] : [value];
}

/**
 * Whether a condition reads more of the loop than the number of its iteration. Only then the outputs of all iterations are read for each:
 * otherwise the cost of an iteration would grow with their number.
 */
function readsEarlier(condition: string, ref: string): boolean {
  const rest = condition.split(`$.${ref}`).slice(1);
  return !rest.every((text) => /^\s*(?:\.iteration\b|\[\s*['"]iteration['"]\s*\]|[\w$])/.test(text)) || /\$\s*\[/.test(condition);
}

export function loopOf(plan: Plan, ref: string): Loop {
  const loop = loopsOf(plan).named(ref);
  if (loop === undefined) throw new Error(`The plan has no loop ${ref}.`);
  return loop;
}
