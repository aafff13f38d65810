// The whole of our own API as one group of routes. Each topic has its own file beside this one.

import type { Metrics } from "../../../core/metrics.ts";
import { turnRows } from "../../../core/slices/slices.ts";
import type { RouteGroup } from "../../../net/http/http.ts";
import { refuse } from "../../../net/http/problem.ts";
import type { Engine } from "../../../server/engine.ts";
import { blobOperations } from "./blobs.ts";
import type { Changes } from "./changes.ts";
import { definitionOperations } from "./definitions.ts";
import { eventOperations } from "./events.ts";
import type { HealthCheck } from "./health.ts";
import { historyOperations } from "./history.ts";
import { logOperations } from "./logs.ts";
import { openApi } from "./openapi.ts";
import type { Operation } from "./operation.ts";
import { partOperations } from "./parts.ts";
import { runOperations } from "./runs.ts";
import { systemOperations } from "./system.ts";
import { taskOperations } from "./tasks.ts";
import { workerOperations } from "./workers.ts";

export interface AdminGroup extends RouteGroup {
  readonly routes: readonly Operation[];
}

export interface AdminDeps {
  readonly engine: Engine;
  readonly changes: Changes;
  readonly health: HealthCheck;
  readonly metrics: Metrics;
  readonly version: string;
}

export function adminRoutes({ engine, changes, health, metrics, version }: AdminDeps): AdminGroup {
  let document: Promise<string> | undefined;
  const routes: Operation[] = [
    ...definitionOperations(engine),
    ...runOperations(engine),
    ...taskOperations(engine),
    ...historyOperations(engine),
    ...logOperations(engine),
    ...partOperations(engine),
    ...workerOperations(engine),
    ...blobOperations(engine),
    ...eventOperations(changes, engine.slices),
    ...systemOperations({
      health,
      metrics,
      // Made when it is first read: on most servers it never is.
      document: () => {
        document ??= openApi(routes, version, () => engine.slices.turn(turnRows / 4)).then((made) => JSON.stringify(made));
        return document;
      },
    }),
  ];
  return { name: "longshore", routes, refuse };
}
