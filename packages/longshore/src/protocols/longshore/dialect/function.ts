// The dialect of durable functions. The server stores only the name and the limits of a function; its code is in the workers. The plan has
// one node, the driver: the other nodes of a run are the commands that the function gives (engine/run/driver.ts).

import type { Json } from "../../../core/json/json.ts";
import { functionLane } from "../../../core/turn.ts";
import type { Dialect } from "../../../engine/run/dialect.ts";
import { driverRetry } from "../../../engine/run/driver-retry.ts";
import { makePlan } from "../../../engine/run/make-plan.ts";
import type { Plan } from "../../../engine/run/plan.ts";
import { checkReported } from "./reported-definition.ts";
import type { FunctionSource } from "./source.ts";

const functionDialectName = "function";

export const functionDialect: Dialect = {
  name: functionDialectName,
  compile,
  checkReported: (name, source) => checkReported(functionDialectName, name, source),
  resolve: (_plan, template) => ({ value: template as Json }),
};

function compile(text: string): Plan {
  const { name, timeoutMs = null, inputSchema, events, debounce, limit } = JSON.parse(text) as FunctionSource;
  const driver = {
    ...{ kind: "task" as const, id: name, input: null, after: [], waitsFor: "done" as const, timeouts: {} },
    ...{ lanes: [{ name: functionLane(name), labels: [] }], priority: 0, retry: driverRetry, limits: [] },
  };
  return makePlan({
    dialect: functionDialectName,
    nodes: [driver],
    output: null,
    timeoutMs,
    driven: true,
    inputSchema,
    events,
    debounce,
    limit,
  });
}
