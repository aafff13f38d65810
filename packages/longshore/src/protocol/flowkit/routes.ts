// The server half of FlowKit over HTTP: what workers need that have neither Kafka nor MongoDB. Refusals are those of our own API.

import type { RouteGroup } from "../../http.ts";
import { refuse } from "../../problem.ts";
import { type BusRoutesDeps, busRoutes } from "./bus-routes.ts";

export interface FlowkitRoutes extends RouteGroup {
  /** Answers every poll that waits; to be called before the listener closes. */
  dismiss(): void;
}

export function flowkitRoutes(deps: BusRoutesDeps): FlowkitRoutes {
  const bus = busRoutes(deps);
  return { name: "flowkit", routes: [...bus.routes], refuse, dismiss: bus.dismiss };
}
