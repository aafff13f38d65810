// The routes and methods of a node: paths, actions and limits for its listener. To list them, the protocols are opened on an engine in
// memory that has no data and starts nothing. The node passes requests to the owner, with two exceptions: requests about this process
// alone, and requests that can be answered from the rows that all nodes share.

import type { ClusterNode } from "../cluster/node.ts";
import type { Action } from "../core/actions.ts";
import type { Logger } from "../core/logger.ts";
import type { Metrics } from "../core/metrics.ts";
import { NeedsOwner } from "../engine/needs-owner.ts";
import type { GrpcMethod } from "../net/grpc/service.ts";
import type { HttpReply, HttpRequest, Route, RouteGroup } from "../net/http/http.ts";
import type { Auth } from "../net/listener/auth.ts";
import type { NodeView, PreparedProtocol, Storage } from "../protocols/server-half.ts";
import type { SharedRows } from "../store/postgres/shared-rows.ts";
import { type Engine, openEngine } from "./engine.ts";
import { type OpenProtocols, openProtocols } from "./protocols.ts";
import { tableOf } from "./server-port.ts";
import { storedEngine } from "./stored-engine.ts";

export interface IdleTableDeps {
  readonly prepared: readonly PreparedProtocol[];
  readonly node: ClusterNode;
  readonly shared: SharedRows;
  readonly auth: Auth;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly hasPages: boolean;
  /** What differs from the engine of a server that does not share its data. */
  readonly own: { readonly storage: Storage; nodes(): Promise<readonly NodeView[]> };
}

/** The requests that a node performs itself. */
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
  readonly #reads: NodeReads;

  static async open(deps: IdleTableDeps): Promise<IdleTable> {
    const dialects = deps.prepared.flatMap((each) => each.dialects);
    const engine = await openEngine({ directory: null, dialects });
    const reads = new NodeReads();
    const { metrics, auth, shared, own, hasPages } = deps;
    const stored = storedEngine({ idle: { ...engine, ...own }, dialects, shared, isIdle: () => !reads.areServed });
    const protocols = await openProtocols(deps.prepared, stored, deps.logger, { isIdle: true });
    const table = await tableOf({ engine, protocols: protocols.list, metrics, auth, hasPages });
    reads.areServed = true;
    return new IdleTable(deps.node, engine, protocols, table, reads);
  }

  private constructor(
    node: ClusterNode,
    engine: Engine,
    protocols: OpenProtocols,
    table: Awaited<ReturnType<typeof tableOf>>,
    reads: NodeReads,
  ) {
    this.#engine = engine;
    this.#protocols = protocols;
    this.#reads = reads;
    this.handles = protocols.handles;
    const groups = new Map(table.groups.map((group) => [group, nodeGroup(node, group, reads)]));
    this.groups = [...groups.values()];
    this.fallback = table.fallback === undefined ? undefined : groups.get(table.fallback);
    this.methods = table.methods.map((method) => nodeMethod(node, method));
  }

  /** Requests that this node answered from the rows that all nodes share. */
  get reads(): number {
    return this.#reads.answered;
  }

  /** Aborts when the node closes: then it is not ready any more. */
  dismiss(): void {
    this.#engine.board.dismiss();
  }

  async close(): Promise<void> {
    this.#reads.areServed = false;
    await this.#protocols.close();
    await this.#engine.close();
  }
}

/** The rows that a node reads itself. */
class NodeReads {
  areServed = false;
  answered = 0;

  /** Reads from the shared rows, and passes the request on when they are not enough. The owner uses its own engine, which has more in memory. */
  async handle(node: ClusterNode, route: Route, request: HttpRequest): Promise<HttpReply> {
    if (!this.areServed || node.state === "owner") return node.handle(route, request);
    try {
      const reply = await route.handle(request);
      this.answered++;
      return reply;
    } catch (error) {
      if (!(error instanceof NeedsOwner)) throw error;
      return node.handle(route, request);
    }
  }
}

function nodeGroup(node: ClusterNode, group: RouteGroup, reads: NodeReads): RouteGroup {
  const handled = (route: Route): Route => {
    if (ofThisProcess.has(route.action)) return route;
    if (route.stored) return { ...route, handle: (request) => reads.handle(node, route, request) };
    return { ...route, handle: (request) => node.handle(route, request) };
  };
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
