// Puts everything together: the only place that knows every part. `serve()` is what the command line runs, and what a program uses
// that wants durable workflows without another process.

import { systemClock } from "../clock.ts";
import { sampleId, sampleSource } from "../dialect/workflow-graph/sample.ts";
import { dialectName } from "../dialect/workflow-graph/source.ts";
import { workflowGraphRoutes } from "../protocol/workflow-graph/routes.ts";
import { adminRoutes } from "./admin/routes.ts";
import { createAuth, type Token } from "./auth.ts";
import { directoryOf, loggerOf, portDefault, type ServeOptions, tokensOf } from "./config.ts";
import { type Engine, openEngine } from "./engine.ts";
import { programSide, type Server } from "./handle.ts";
import { type HttpServer, listen } from "./http.ts";
import type { Logger } from "./logger.ts";
import { createMetrics } from "./metrics.ts";
import { loadWorkflows, noWorkflows } from "./workflows.ts";

export async function serve(options: ServeOptions = {}): Promise<Server> {
  const { clock = systemClock, retention } = options;
  const tokens = tokensOf(options);
  const logger = loggerOf(options, clock, tokens);
  const failed = (what: string, error: unknown) => logger.warn(`The ${what} failed and is tried again`, { error });
  const engine = await openEngine({ directory: directoryOf(options), clock, retention, failed });
  try {
    const workflows =
      options.workflows === undefined ? noWorkflows : await loadWorkflows(options.workflows, engine.runs, options.badWorkflows ?? "refuse");
    for (const warning of workflows.warnings) logger.warn(warning);
    for (const { message } of workflows.bad) logger.error(message);
    if (options.sample) await defineSampleIfEmpty(engine);
    const http = options.port === null ? null : await openDoor(engine, options, logger, tokens);
    const close = closing(engine, http);
    return {
      ...programSide(engine),
      url: http?.url ?? null,
      port: http?.port ?? null,
      workflows,
      close,
      [Symbol.asyncDispose]: () => close(),
    };
  } catch (error) {
    await engine.close();
    throw error;
  }
}

function openDoor(engine: Engine, options: ServeOptions, logger: Logger, tokens: readonly Token[]): Promise<HttpServer> {
  const { clock } = engine;
  const { host, hosts, origins, insecure, limits } = options;
  const admin = adminRoutes(engine);
  return listen({
    groups: [workflowGraphRoutes(engine), admin],
    fallback: admin,
    port: options.port ?? portDefault,
    auth: createAuth(tokens),
    metrics: createMetrics(),
    ...{ host, hosts, origins, insecure, limits, logger, clock },
  });
}

/** Long polls are requests in flight: they are answered first, so that the listener has nothing left to wait for. */
function closing(engine: Engine, http: HttpServer | null): (deadlineMs?: number) => Promise<void> {
  let closed: Promise<void> | undefined;
  return (deadlineMs) => {
    closed ??= (async () => {
      const listenerClosed = http?.close(deadlineMs);
      engine.board.dismiss();
      await listenerClosed;
      await engine.close();
    })();
    return closed;
  };
}

async function defineSampleIfEmpty(engine: Engine): Promise<void> {
  if ((await engine.reader.definitions({ limit: 1 })).length > 0) return;
  await engine.runs.define({ name: sampleId, dialect: dialectName, source: sampleSource });
}
