// The dialect of FlowKit's graphs.

import { writeExact } from "../../../core/json/json-exact.ts";
import { parseInSlices } from "../../../core/json/json-slices.ts";
import { atOnce, type Sliced } from "../../../core/slices/slice-work.ts";
import type { Dialect } from "../../../engine/run/dialect.ts";
import type { Plan } from "../../../engine/run/plan.ts";
import { dialectName, type FlowkitLimits, planInSlices } from "./compile.ts";
import { type Graph, readInSlices } from "./graph.ts";
import { resolve } from "./resolve.ts";
import { type IsSensitive, looksSensitive } from "./sensitive-values.ts";

export interface FlowkitDialectOptions {
  /** Limits of running nodes, for new runs. */
  readonly limits?: FlowkitLimits;
  readonly isSensitive?: IsSensitive | undefined;
}

export function flowkitDialect({ limits, isSensitive = looksSensitive }: FlowkitDialectOptions = {}): Dialect {
  return {
    name: dialectName,
    compile: (source) => atOnce(compileInSlices(source, limits)),
    compileInSlices: (source) => compileInSlices(source, limits),
    resolve: (plan, template, scope) => resolve(plan, template, scope, isSensitive),
    rerunFields: (run) => ({ priority: run.priority }),
  };
}

/** The stored form of a graph. Equal graphs are one definition. */
export function sourceOf(graph: Graph): string {
  return writeExact(graph);
}

/** A stored source was checked before; any other source is checked here. */
function* compileInSlices(source: string, limits: FlowkitLimits | undefined): Sliced<Plan> {
  return yield* planInSlices(yield* readInSlices(yield* parseInSlices(source)), limits);
}
