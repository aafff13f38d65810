// The whole of our own API as one group of routes. Each topic has its own file beside this one.

import type { RouteGroup } from "../../http.ts";
import type { Engine } from "../engine.ts";
import { blobOperations } from "./blobs.ts";
import { definitionOperations } from "./definitions.ts";
import { logOperations } from "./logs.ts";
import type { Operation } from "./operation.ts";
import { refuse } from "./problem.ts";
import { runOperations } from "./runs.ts";
import { taskOperations } from "./tasks.ts";
import { workerOperations } from "./workers.ts";

export interface AdminGroup extends RouteGroup {
  readonly routes: readonly Operation[];
}

export function adminRoutes(engine: Engine): AdminGroup {
  const routes = [
    ...definitionOperations(engine),
    ...runOperations(engine),
    ...taskOperations(engine),
    ...logOperations(engine),
    ...workerOperations(engine),
    ...blobOperations(engine),
  ];
  return { name: "longshore", routes, refuse };
}
