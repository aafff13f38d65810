// Flows of Stepflow.

import { LongshoreError } from "../../errors.ts";
import type { Dialect } from "../../run/dialect.ts";
import type { Router } from "./router.ts";

export const dialectName = "stepflow";

/** `router` says on which lane a step's component is. */
export function stepflowDialect(_router: Router): Dialect {
  return {
    name: dialectName,
    compile: () => {
      throw new LongshoreError("LONGSHORE_BAD_DEFINITION", "Flows cannot be run yet.");
    },
    resolve: () => ({ failed: "Flows cannot be run yet." }),
  };
}
