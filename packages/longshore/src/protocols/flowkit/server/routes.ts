// The server half of FlowKit over HTTP: for workers without Kafka and MongoDB, and for clients that submit and watch tasks. Errors have the
// form of our own API.

import type { Board } from "../../../engine/board/board.ts";
import type { PartStore } from "../../../engine/part/store.ts";
import type { Definition } from "../../../engine/run/dialect.ts";
import type { DocumentStore } from "../../../engine/run/documents.ts";
import type { Plan } from "../../../engine/run/plan.ts";
import type { Reader } from "../../../engine/run/reader.ts";
import type { Runs } from "../../../engine/run/runs.ts";
import type { RouteGroup } from "../../../net/http/http.ts";
import { refuse } from "../../../net/http/problem.ts";
import { PartArtifacts } from "./artifacts/part-artifacts.ts";
import { artifactRoutes } from "./artifacts/routes.ts";
import { type BusRoutesDeps, busRoutes } from "./bus-routes.ts";
import { FlowkitTasks } from "./coordinator/tasks.ts";
import { Places } from "./task-addresses.ts";
import { TaskViews } from "./task-views.ts";
import { taskRoutes } from "./tasks-routes.ts";

export interface FlowkitRoutesDeps extends BusRoutesDeps {
  readonly board: Board;
  readonly runs: Runs;
  readonly reader: Reader;
  readonly parts: PartStore;
  readonly documents: DocumentStore;
  plan(definition: Definition): Plan;
  /** Called for batches that are stored without an event, by workers that use this server as bus and store. */
  batchesKept?(count: number): void;
}

export interface FlowkitRoutes extends RouteGroup {
  /** Answers all waiting polls. Call it before the listener closes. */
  dismiss(): void;
}

/** `tasks` starts runs of graphs. Default: without the user's functions. */
export function flowkitRoutes(deps: FlowkitRoutesDeps, tasks = new FlowkitTasks(deps)): FlowkitRoutes {
  const bus = busRoutes(deps);
  const { runs, reader, board, parts, documents, clock } = deps;
  const plan = (definition: Definition) => deps.plan(definition);
  const views = new TaskViews({ runs, reader, parts, documents, plan, tasks });
  const places = new Places({ runs, board, plan });
  const store = new PartArtifacts({ parts, board, documents, clock, places, task: (id) => views.task(id) });
  const artifacts = artifactRoutes({
    artifacts: store,
    clock,
    ...(deps.busElsewhere === undefined && deps.batchesKept !== undefined ? { kept: deps.batchesKept } : {}),
  });
  const dismiss = () => {
    bus.dismiss();
    artifacts.dismiss();
  };
  return { name: "flowkit", routes: [...bus.routes, ...artifacts.routes, ...taskRoutes(views)], refuse, dismiss };
}
