// The whole of our own API as one group of routes. Each topic has its own file beside this one.

import type { RouteGroup } from "../../http.ts";
import type { Engine } from "../engine.ts";
import type { Operation } from "./operation.ts";
import { refuse } from "./problem.ts";
import { runOperations } from "./runs.ts";
import { taskOperations } from "./tasks.ts";

export interface AdminGroup extends RouteGroup {
  readonly routes: readonly Operation[];
}

export function adminRoutes(engine: Engine): AdminGroup {
  return { name: "longshore", routes: [...runOperations(engine), ...taskOperations(engine)], refuse };
}
