// The server's port: one for every protocol and for our own API, together with health, metrics and live changes.

import type { Logger } from "../core/logger.ts";
import type { Metrics } from "../core/metrics.ts";
import { packageVersion } from "../core/version.ts";
import type { Stopwatch } from "../core/watchdog.ts";
import type { RouteGroup } from "../net/http/http.ts";
import { type Auth, createAuth, type Token } from "../net/listener/auth.ts";
import { listen } from "../net/listener/listener.ts";
import { Changes } from "../protocols/longshore/server/changes.ts";
import { HealthCheck } from "../protocols/longshore/server/health.ts";
import { type AdminGroup, adminRoutes } from "../protocols/longshore/server/routes.ts";
import type { OpenProtocol, ServedProtocol } from "../protocols/server-half.ts";
import { portDefault, type ServeOptions } from "./config.ts";
import type { Engine } from "./engine.ts";
import { instrument } from "./instruments.ts";

export interface ServerPort {
  readonly url: string;
  readonly port: number;
  close(deadlineMs?: number): Promise<void>;
}

export interface ServerPortDeps {
  readonly engine: Engine;
  readonly protocols: readonly OpenProtocol[];
  readonly options: ServeOptions;
  readonly tokens: readonly Token[];
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly watch?: Stopwatch;
}

export async function openServerPort(parts: ServerPortDeps): Promise<ServerPort> {
  const { engine, options, tokens, logger, metrics } = parts;
  const { host, hosts, origins, insecure, limits, tls } = options;
  const changes = changesOf(engine);
  const auth = createAuth(tokens);
  const { served, groups } = await tableOf({ ...parts, changes, auth });
  instrument(engine, metrics);
  const listener = await listen({
    groups,
    methods: served.flatMap(({ methods = [] }) => methods),
    // Ours, last in the list, also answers for paths that belong to no group.
    fallback: groups.at(-1),
    port: options.port ?? portDefault,
    auth,
    clock: engine.clock,
    ...{ host, hosts, origins, insecure, limits, tls, metrics, logger, watch: parts.watch },
  });
  const close = async (deadlineMs?: number) => {
    for (const each of served) each.dismiss?.();
    await Promise.all([listener.close(deadlineMs), ...served.map((each) => each.stop?.(deadlineMs))]);
    changes.close();
  };
  try {
    for (const each of served) await each.start?.(listener.url);
  } catch (error) {
    await close(0);
    throw error;
  }
  return { url: listener.url, port: listener.port, close };
}

export interface TableDeps extends Pick<ServerPortDeps, "engine" | "protocols" | "metrics"> {
  readonly changes: Changes;
  readonly auth: Auth;
}

/** Everything that is served: the protocols, and the whole route table with our own API last. */
export async function tableOf({ engine, protocols, changes, metrics, auth }: TableDeps) {
  const { clock, storage } = engine;
  const version = packageVersion();
  const tokens = { required: auth.required, known: (token: string) => auth.identify(`Bearer ${token}`) !== undefined };
  const served: ServedProtocol[] = [];
  for (const { serve } of protocols) if (serve !== undefined) served.push(await serve({ version, metrics, tokens }));
  const health = new HealthCheck({ storage, clock, version, closing: engine.board.dismissed });
  const own = adminRoutes({ engine, changes, health, metrics, version });
  const groups: [...RouteGroup[], AdminGroup] = [...served.map(({ routes }) => routes), own];
  return { served, groups };
}

export function changesOf(engine: Engine): Changes {
  const { clock, makeId, isHidden, workflowOf, listen: hear } = engine;
  const changes = new Changes({ clock, epoch: makeId(clock.now()), workflowOf, isHidden });
  hear(changes);
  return changes;
}
