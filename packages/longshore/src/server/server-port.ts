// The server's port: one for every protocol.

import type { Logger } from "../core/logger.ts";
import type { Metrics } from "../core/metrics.ts";
import { packageVersion } from "../core/version.ts";
import type { Stopwatch } from "../core/watchdog.ts";
import { type Auth, createAuth, type Token } from "../net/listener/auth.ts";
import { listen } from "../net/listener/listener.ts";
import type { OpenProtocol, ServedProtocol, Serving } from "../protocols/server-half.ts";
import { portDefault, type ServeOptions } from "./config.ts";
import { DefinitionReader } from "./definition-reader.ts";
import type { Engine } from "./engine.ts";
import { instrument } from "./instruments.ts";
import { orderedGroup, orderedMethod } from "./ordered-routes.ts";
import { pageRoutes } from "./pages.ts";
import { definitionFiles, workerPrograms } from "./protocols.ts";

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

export async function openServerPort(deps: ServerPortDeps): Promise<ServerPort> {
  const { engine, options, tokens, logger, metrics } = deps;
  const { host, hosts, origins, insecure, limits, tls } = options;
  const auth = createAuth(tokens);
  const { served, groups, methods, fallback } = await tableOf({ ...deps, auth, hasPages: options.ui !== false });
  instrument(engine, metrics);
  const listener = await listen({
    groups: options.ui === false ? groups : [...groups, pageRoutes()],
    methods,
    fallback,
    port: options.port ?? portDefault,
    auth,
    clock: engine.clock,
    ...{ host, hosts, origins, insecure, limits, tls, metrics, logger, watch: deps.watch },
  });
  const close = async (deadlineMs?: number) => {
    for (const each of served) each.dismiss?.();
    await Promise.all([listener.close(deadlineMs), ...served.map((each) => each.stop?.(deadlineMs))]);
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
  readonly auth: Auth;
  /** Whether `/` sends browsers to the dashboard. */
  readonly hasPages?: boolean;
}

/** The open protocols, and the route table in their order. */
export async function tableOf({ engine, protocols, metrics, auth, hasPages = false }: TableDeps) {
  const files = new DefinitionReader(engine.clock);
  const serving: Serving = {
    version: packageVersion(),
    metrics,
    hasPages,
    tokens: {
      required: auth.required,
      known: (token) => auth.identify(`Bearer ${token}`) !== undefined,
      identify: (authorization) => auth.identify(authorization),
      uses: () => auth.uses(),
    },
    readDefinition: (given) => files.read(given),
    definitionFiles,
    workerPrograms,
  };
  const served: ServedProtocol[] = [];
  for (const { serve } of protocols) if (serve !== undefined) served.push(await serve(serving));
  const groups = new Map(served.map(({ routes }) => [routes, orderedGroup(routes, engine.orderers)]));
  const fallback = served.find(({ isFallback }) => isFallback)?.routes;
  return {
    served,
    groups: [...groups.values()],
    methods: served.flatMap(({ methods = [] }) => methods).map((method) => orderedMethod(method, engine.orderers)),
    fallback: fallback && groups.get(fallback),
  };
}
