// The routes and methods of a node. They are those of the protocols, opened on an engine in memory that holds nothing and starts nothing: from
// them the listener knows paths, actions and limits. Performing is left to the node, except for what is about this process alone.

import type { ClusterNode } from "../cluster/node.ts";
import type { Action } from "../core/actions.ts";
import type { Logger } from "../core/logger.ts";
import type { Metrics } from "../core/metrics.ts";
import type { GrpcMethod } from "../net/grpc/service.ts";
import type { Route, RouteGroup } from "../net/http/http.ts";
import type { Auth } from "../net/listener/auth.ts";
import type { NodeView, PreparedProtocol, Storage } from "../protocols/server-half.ts";
import { type Engine, openEngine } from "./engine.ts";
import { type OpenProtocols, openProtocols } from "./protocols.ts";
import { tableOf } from "./server-port.ts";

export interface IdleTableDeps {
  readonly prepared: readonly PreparedProtocol[];
  readonly node: ClusterNode;
  readonly auth: Auth;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** What is different from an engine that has its data to itself. */
  readonly own: { readonly storage: Storage; nodes(): Promise<readonly NodeView[]> };
}

/** What a node answers by itself. */
const ofThisProcess: ReadonlySet<Action> = new Set([
  ...(["server.greet", "server.health", "server.version", "server.measure", "server.describe", "token.check", "node.read"] as const),
]);

export class IdleTable {
  readonly groups: readonly RouteGroup[];
  readonly methods: readonly GrpcMethod[];
  readonly fallback: RouteGroup | undefined;
  readonly handles: object;
  readonly #engine: Engine;
  readonly #protocols: OpenProtocols;

  static async open(deps: IdleTableDeps): Promise<IdleTable> {
    const dialects = deps.prepared.flatMap((each) => each.dialects);
    const engine = await openEngine({ directory: null, dialects });
    const protocols = await openProtocols(deps.prepared, { ...engine, ...deps.own }, deps.logger, { isIdle: true });
    const { metrics, auth } = deps;
    const table = await tableOf({ engine, protocols: protocols.list, metrics, auth });
    return new IdleTable(deps.node, engine, protocols, table);
  }

  private constructor(node: ClusterNode, engine: Engine, protocols: OpenProtocols, table: Awaited<ReturnType<typeof tableOf>>) {
    this.#engine = engine;
    this.#protocols = protocols;
    this.handles = protocols.handles;
    const groups = new Map(table.groups.map((group) => [group, nodeGroup(node, group)]));
    this.groups = [...groups.values()];
    this.fallback = table.fallback === undefined ? undefined : groups.get(table.fallback);
    this.methods = table.served.flatMap(({ methods = [] }) => methods).map((method) => nodeMethod(node, method));
  }

  /** The node closes: it is not ready any more. */
  dismiss(): void {
    this.#engine.board.dismiss();
  }

  async close(): Promise<void> {
    await this.#protocols.close();
    await this.#engine.close();
  }
}

function nodeGroup(node: ClusterNode, group: RouteGroup): RouteGroup {
  const handled = (route: Route): Route =>
    ofThisProcess.has(route.action) ? route : { ...route, handle: (request) => node.handle(route, request) };
  const { name, thrown } = group;
  return {
    name,
    routes: group.routes.map(handled),
    refuse: (problem, route) => group.refuse(problem, route),
    ...(thrown === undefined ? {} : { thrown: (error: unknown) => group.thrown?.(error) }),
  };
}

function nodeMethod(node: ClusterNode, method: GrpcMethod): GrpcMethod {
  if (ofThisProcess.has(method.action)) return method;
  return {
    ...method,
    ...(method.unary === undefined ? {} : { unary: (message: unknown, call) => node.unary(method, message, call) }),
    ...(method.stream === undefined ? {} : { stream: (message: unknown, call, sink) => node.stream(method, message, call, sink) }),
  };
}
