// The server's port: one for every protocol and for our own API, together with health, metrics and live changes.

import { committed } from "../engine/tx.ts";
import type { RouteGroup } from "../http.ts";
import type { Metrics } from "../metrics.ts";
import type { GrpcMethod } from "../net/grpc/service.ts";
import { conductorRoutes } from "../protocols/conductor/server/routes.ts";
import { type FlowkitRoutes, flowkitRoutes } from "../protocols/flowkit/server/routes.ts";
import type { StepflowConfig } from "../protocols/stepflow/server/config/config.ts";
import type { StepflowServer } from "../protocols/stepflow/server/server.ts";
import { workflowGraphRoutes } from "../protocols/workflow-graph/server/routes.ts";
import { packageVersion } from "../version.ts";
import { type AdminGroup, adminRoutes } from "./admin/routes.ts";
import { portDefault, type ServeOptions } from "./config.ts";
import type { Engine } from "./engine.ts";
import { Changes } from "./events.ts";
import type { FlowAccess } from "./flow-access.ts";
import type { Flowkit } from "./flowkit.ts";
import { instrumentFlowkit } from "./flowkit-instruments.ts";
import { HealthCheck } from "./health.ts";
import { instrument } from "./instruments.ts";
import { type Auth, createAuth, type Token } from "./listener/auth.ts";
import { listen } from "./listener/listener.ts";
import type { Logger } from "./logger.ts";
import { stepflowServer } from "./stepflow.ts";
import type { Stopwatch } from "./watchdog.ts";

export interface ServerPort {
  readonly url: string;
  readonly port: number;
  close(deadlineMs?: number): Promise<void>;
}

export interface ServerPortDeps {
  readonly engine: Engine;
  readonly stepflow: StepflowConfig;
  /** What flows may read of this machine; nothing when absent. */
  readonly access?: FlowAccess;
  /** FlowKit's coordinator, where there is one. */
  readonly flowkit?: Flowkit | null;
  readonly options: ServeOptions;
  readonly tokens: readonly Token[];
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly watch?: Stopwatch;
}

export async function openServerPort(parts: ServerPortDeps): Promise<ServerPort> {
  const { engine, stepflow: config, options, tokens, logger, metrics } = parts;
  const { host, hosts, origins, insecure, limits, tls } = options;
  const changes = changesOf(engine);
  const auth = createAuth(tokens);
  const stepflow = stepflowServer(engine, config, {
    ...parts.access,
    orchestratorUrl: options.stepflow?.orchestratorUrl,
    asksToken: auth.required,
    logger,
  });
  const { coordinator, busElsewhere, topics } = parts.flowkit ?? {};
  const batchesKept = (count: number) => coordinator?.batchesKept(count);
  const flowkit = flowkitRoutes({ ...engine, busElsewhere, topics, batchesKept }, coordinator?.tasks);
  const groups = routeGroups({ engine, changes, metrics, stepflow, flowkit, auth });
  instrument(engine, metrics);
  if (parts.flowkit) instrumentFlowkit(parts.flowkit, metrics);
  const listener = await listen({
    groups,
    methods: grpcMethods(stepflow),
    // Ours, last in the list, also answers for paths that belong to no group.
    fallback: groups.at(-1),
    port: options.port ?? portDefault,
    auth,
    clock: engine.clock,
    ...{ host, hosts, origins, insecure, limits, tls, metrics, logger, watch: parts.watch },
  });
  const close = async (deadlineMs?: number) => {
    flowkit.dismiss();
    await Promise.all([listener.close(deadlineMs), stepflow.stop(deadlineMs)]);
    changes.close();
  };
  try {
    await stepflow.start(listener.url);
  } catch (error) {
    await close(0);
    throw error;
  }
  return { url: listener.url, port: listener.port, close };
}

export interface ServedDeps {
  readonly engine: Engine;
  readonly changes: Changes;
  readonly metrics: Metrics;
  readonly stepflow: StepflowServer;
  readonly flowkit: FlowkitRoutes;
  readonly auth?: Auth;
}

/** Everything that is served: the whole route table. */
export function routeGroups(parts: ServedDeps): [...RouteGroup[], AdminGroup] {
  const { engine, changes, metrics, stepflow, flowkit, auth = createAuth([]) } = parts;
  const { clock, store } = engine;
  const version = packageVersion();
  const health = new HealthCheck({ db: store.db, commit: store.commit, clock, version, closing: engine.board.dismissed });
  const tokens = { required: auth.required, known: (token: string) => auth.identify(`Bearer ${token}`) !== undefined };
  return [
    workflowGraphRoutes(engine),
    conductorRoutes({ ...engine, version, tokens }),
    stepflow.routes,
    flowkit,
    adminRoutes({ engine, changes, health, metrics, version }),
  ];
}

/** The same for gRPC: every method that is served. */
export function grpcMethods(stepflow: StepflowServer): readonly GrpcMethod[] {
  return stepflow.methods;
}

export function changesOf(engine: Engine): Changes {
  const { clock, makeId, store, isHidden, listen: hear } = engine;
  const workflowOf = (runId: string) => store.runs.runs.get(committed, runId)?.workflow;
  const changes = new Changes({ clock, epoch: makeId(clock.now()), workflowOf, isHidden });
  hear(changes);
  return changes;
}
