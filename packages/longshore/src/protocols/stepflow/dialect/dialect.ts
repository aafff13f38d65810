// The dialect of Stepflow's flows.

import type { Dialect } from "../../../engine/run/dialect.ts";
import { compileFlow, compileInSlices } from "./compile.ts";
import { placeBy } from "./placement.ts";
import { type ResultCache, resolve } from "./resolve.ts";
import type { Router } from "./router.ts";
import { rerunFields } from "./settings.ts";
import { dialectName } from "./source.ts";

/** `router` finds the lane of a step's component. */
export function stepflowDialect(router: Router): Dialect {
  const cache: ResultCache = new WeakMap();
  return {
    name: dialectName,
    compile: compileFlow,
    compileInSlices,
    resolve: (plan, template, scope) => resolve(plan, template, scope, cache),
    place: placeBy(router),
    rerunFields,
    outputFailed: (_plan, reason) => reason,
  };
}
