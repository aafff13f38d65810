// Calls every route of a table without rights. Every route that is not open must refuse callers without a token or with a token that allows
// too little.

import { actions, type TokenScope } from "../../src/core/actions.ts";
import { type GrpcChannel, openChannel } from "../../src/net/grpc/client.ts";
import type { GrpcMethod } from "../../src/net/grpc/service.ts";
import { GrpcCode, type GrpcError } from "../../src/net/grpc/status.ts";
import type { Route, RouteGroup } from "../../src/net/http/http.ts";
import type { Rpc } from "../../src/net/protobuf/protobuf.ts";
import { call } from "./http.ts";

export interface Finding {
  route: string;
  expected: number;
  status: number;
}

/** The scopes that do not allow this action. */
const lesser: Readonly<Record<TokenScope | "anyone", readonly TokenScope[]>> = {
  anyone: [],
  read: ["worker"],
  worker: ["read"],
  operator: ["worker", "read"],
};

/**
 * Calls every route without a token, with an unknown one and with each lesser scope. Returns the number of calls, and those that did not
 * get 401 or 403. `tokens` has one secret of each scope that the server at `url` knows. `headersOf` returns the headers for a secret.
 */
export async function walkRouteTable(
  groups: readonly RouteGroup[],
  url: string,
  tokens: Readonly<Record<TokenScope, string>>,
  headersOf: (token: string) => Record<string, string> = (token) => ({ authorization: `Bearer ${token}` }),
): Promise<{ calls: number; findings: Finding[] }> {
  const findings: Finding[] = [];
  let calls = 0;
  for (const route of groups.flatMap((group) => group.routes)) {
    const { who } = actions[route.action];
    if (who === "anyone") continue;
    const attempts: [string | undefined, number][] = [
      [undefined, 401],
      ["a-token-that-nobody-knows", 401],
      ...lesser[who].map((scope): [string, number] => [tokens[scope], 403]),
    ];
    for (const [token, expected] of attempts) {
      calls++;
      const { status } = await visit(route, url, token === undefined ? {} : headersOf(token));
      if (status !== expected) findings.push({ route: `${route.method} ${route.path}`, expected, status });
    }
  }
  return { calls, findings };
}

/** The same for gRPC's methods: UNAUTHENTICATED without a token or with an unknown one, PERMISSION_DENIED with a lesser one. */
export async function walkMethodTable(
  methods: readonly GrpcMethod[],
  target: string,
  tokens: Readonly<Record<TokenScope, string>>,
): Promise<{ calls: number; findings: Finding[] }> {
  const findings: Finding[] = [];
  let calls = 0;
  const channel = openChannel(target);
  for (const { path, action, request, response, kind } of methods) {
    const { who } = actions[action];
    if (who === "anyone") continue;
    const attempts: [string | undefined, GrpcCode][] = [
      [undefined, GrpcCode.UNAUTHENTICATED],
      ["a-token-that-nobody-knows", GrpcCode.UNAUTHENTICATED],
      ...lesser[who].map((scope): [string, GrpcCode] => [tokens[scope], GrpcCode.PERMISSION_DENIED]),
    ];
    for (const [token, expected] of attempts) {
      calls++;
      const metadata: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
      const status = await codeOf(channel, { path, request, response, kind }, metadata);
      if (status !== expected) findings.push({ route: path, expected, status });
    }
  }
  await channel.close();
  return { calls, findings };
}

async function codeOf(channel: GrpcChannel, rpc: Rpc, metadata: Record<string, string>): Promise<GrpcCode> {
  try {
    if (rpc.kind === "unary") await channel.unary(rpc, {}, { metadata });
    else await channel.serverStream(rpc, {}, { metadata }).next();
    return GrpcCode.OK;
  } catch (error) {
    return (error as GrpcError).code;
  }
}

function visit(route: Route, url: string, shown: Record<string, string>) {
  const path = route.path.replace(/:[^/]+/g, "some-id");
  const headers = { ...shown };
  const body = route.body === "none" ? undefined : "{}";
  if (body !== undefined) headers["content-type"] = "application/json";
  return call(`${url}${path}`, { method: route.method, headers, body });
}
