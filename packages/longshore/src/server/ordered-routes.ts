// Adds the caller of orders to the audit, for the routes and methods of every protocol.

import { type Action, actions } from "../core/actions.ts";
import type { Orderers } from "../core/orderer.ts";
import type { GrpcMethod } from "../net/grpc/service.ts";
import type { Route, RouteGroup } from "../net/http/http.ts";

export function orderedGroup(group: RouteGroup, orderers: Orderers): RouteGroup {
  const { name, unserved, thrown } = group;
  return {
    name,
    routes: group.routes.map((route) => orderedRoute(route, orderers)),
    ...(unserved === undefined ? {} : { unserved }),
    refuse: (problem, route) => group.refuse(problem, route),
    ...(thrown === undefined ? {} : { thrown: (error: unknown) => group.thrown?.(error) }),
  };
}

export function orderedMethod(method: GrpcMethod, orderers: Orderers): GrpcMethod {
  const { unary, action } = method;
  if (unary === undefined || !isOrder(action)) return method;
  return {
    ...method,
    unary: (message, call) => orderers.within({ name: call.caller.name ?? null, via: method.path }, () => unary(message, call)),
  };
}

function orderedRoute(route: Route, orderers: Orderers): Route {
  if (!isOrder(route.action) && !isOrder(route.also)) return route;
  const via = `${route.method} ${route.path}`;
  return {
    ...route,
    handle: (request) => orderers.within({ name: request.caller.name ?? null, via }, () => route.handle(request)),
  };
}

function isOrder(action: Action | undefined): boolean {
  return action !== undefined && actions[action].order === true;
}
