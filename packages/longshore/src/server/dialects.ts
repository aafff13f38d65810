// Every way of writing workflows that this server knows.

import type { Dialect } from "../engine/run/dialect.ts";
import { conductorDialect } from "../protocols/conductor/dialect/dialect.ts";
import { environmentValue } from "../protocols/conductor/dialect/environment.ts";
import { type FlowkitDialectOptions, flowkitDialect } from "../protocols/flowkit/dialect/dialect.ts";
import { codeDialect } from "../protocols/longshore/dialect/dialect.ts";
import { stepflowDialect } from "../protocols/stepflow/dialect/dialect.ts";
import { itemsDialect } from "../protocols/stepflow/dialect/items.ts";
import type { Router } from "../protocols/stepflow/dialect/router.ts";
import { defaultConfig } from "../protocols/stepflow/server/config/default.ts";
import { makeRouter } from "../protocols/stepflow/server/config/router.ts";
import { workflowGraphDialect } from "../protocols/workflow-graph/dialect/compile.ts";

export interface DialectOptions {
  /** Where the components of Stepflow's flows lead; as without a configuration file when absent. */
  router?: Router;
  /** What graphs of FlowKit may do. */
  flowkit?: FlowkitDialectOptions;
}

export function makeDialects({ router = makeRouter(defaultConfig()), flowkit }: DialectOptions = {}): Map<string, Dialect> {
  const all: Dialect[] = [
    codeDialect,
    workflowGraphDialect,
    conductorDialect(environmentValue),
    stepflowDialect(router),
    itemsDialect,
    flowkitDialect(flowkit),
  ];
  return new Map(all.map((dialect) => [dialect.name, dialect]));
}
