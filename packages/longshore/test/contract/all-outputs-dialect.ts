// Workflows in code whose output is a list of the outputs of all steps, in the order of the plan.

import type { Json } from "../../src/core/json/json.ts";
import { parseExact } from "../../src/core/json/json-exact.ts";
import type { Dialect } from "../../src/engine/run/dialect.ts";
import { onePieceDialect } from "./one-piece-dialect.ts";

const name = "all-outputs";

export const allOutputsDialect: Dialect = {
  ...onePieceDialect,
  name,
  compile: (source) => ({ ...onePieceDialect.compile(source), dialect: name }),
  resolve(plan, template, scope) {
    if (scope.self !== null) return onePieceDialect.resolve(plan, template, scope);
    const records = scope.records();
    if (records === undefined) return { needs: [], all: true };
    return { value: plan.nodes.map((_, node) => parseExact(records.get(node)?.output ?? "null") as Json) };
  },
};
