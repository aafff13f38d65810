// Graphs of FlowKit.

import type { Json, JsonObject } from "../../json.ts";
import { parseExact, writeExact } from "../../json-exact.ts";
import type { Dialect } from "../../run/dialect.ts";
import { compileGraph, dialectName, type FlowkitLimits } from "./compile.ts";
import { type Graph, readGraph } from "./graph.ts";
import { resolve } from "./resolve.ts";
import { type IsSensitive, looksSensitive } from "./sensitive.ts";

export interface FlowkitDialectOptions {
  /** How many nodes of new runs may be at work at once. */
  readonly limits?: FlowkitLimits;
  readonly isSensitive?: IsSensitive | undefined;
}

export function flowkitDialect({ limits, isSensitive = looksSensitive }: FlowkitDialectOptions = {}): Dialect {
  return {
    name: dialectName,
    compile: (source) => compileGraph(graphIn(source), limits),
    resolve: (plan, template, scope) => resolve(plan, template, scope, isSensitive),
    anew: (run) => ({ priority: run.priority }),
  };
}

/** The definition of a graph as it is kept. Equal graphs are one definition. */
export function sourceOf(graph: Graph): string {
  return writeExact(graph);
}

/** A source that was kept has been read before; one that was not is refused here. */
function graphIn(source: string): Graph {
  return readGraph(parseExact(source) as Json as JsonObject);
}
