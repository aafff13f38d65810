// Builds the server: the only place that imports every component. The command line calls `serve()`, and so does a program that needs
// durable workflows without another process.

import { systemClock } from "../core/clock.ts";
import type { Logger } from "../core/logger.ts";
import { createMetrics } from "../core/metrics.ts";
import { keepProcessAlive } from "../core/process-keepalive.ts";
import { quotasOf } from "../core/quotas.ts";
import { packageVersion } from "../core/version.ts";
import { createWatchdog, type Watchdog } from "../core/watchdog.ts";
import { retentionPolicy } from "../engine/run/retention.ts";
import { defineFile } from "../engine/schedule/define-file.ts";
import type { PreparedProtocol } from "../protocols/server-half.ts";
import { directoryOf, loggerOf, type ServeOptions, spansOf, tokensOf } from "./config.ts";
import { type Engine, openEngine } from "./engine.ts";
import { externalStoreOf } from "./external-store.ts";
import { FailureLog } from "./failure-log.ts";
import { programSide, type Server } from "./handle.ts";
import { engineProbe } from "./instruments.ts";
import { type OpenProtocols, openProtocols, prepareProtocols } from "./protocols.ts";
import type { ServerPort, ServerPortDeps } from "./server-port.ts";
import { loadWorkflows, noWorkflows } from "./workflows.ts";

/** Starts a server. Resolves when it serves; rejects with LONGSHORE_BAD_CONFIG for invalid options. */
export async function serve(options: ServeOptions = {}): Promise<Server> {
  const { clock = systemClock } = options;
  const tokens = tokensOf(options);
  const spans = spansOf(options);
  const external = externalStoreOf(options);
  const logger = loggerOf(options, clock, [...tokens.map(({ secret }) => secret), ...(external?.secrets ?? [])]);
  const metrics = options.port === null ? undefined : createMetrics();
  const directory = directoryOf(options);
  logger.info("The server starts", { version: packageVersion(), data: external?.shown ?? directory ?? "in memory", pid: process.pid });
  const prepared = await prepareProtocols(options, logger);
  if (external !== null && options.port !== null) {
    const { serveNode } = await import("./node.ts");
    return serveNode({ options, store: external, prepared, tokens, logger });
  }
  const watch = metrics && createWatchdog({ metrics, logger });
  const engine = await openEngine({
    directory,
    ...(external === null ? {} : { openStore: external.open }),
    dialects: prepared.flatMap(({ dialects }) => dialects),
    clock: options.clock,
    retention: retentionPolicy(options.retention),
    acceptDamage: options.acceptDamage,
    warn: (message) => logger.warn(message),
    quotas: quotasOf(options.quotas),
    probe: metrics && watch && engineProbe(metrics, watch),
    spans,
    trouble: new FailureLog(logger, clock),
    failed: (what, error) => logger.warn(`The ${what} failed and is tried again`, { error }),
  });
  let protocols: OpenProtocols | undefined;
  try {
    // This comes first, because a protocol may have its own way to store definitions.
    protocols = await openProtocols(prepared, engine, logger);
    const program = programSide(engine);
    const workflows =
      options.workflows === undefined
        ? noWorkflows
        : await loadWorkflows(
            options.workflows,
            { define: (definition) => defineFile(engine, definition), schedule: (schedule) => program.define(schedule) },
            options.badWorkflows ?? "refuse",
          );
    for (const warning of workflows.warnings) logger.warn(warning);
    for (const { message } of workflows.bad) logger.error(message);
    if (options.sample) await defineSampleIfEmpty(engine, prepared);
    const door =
      metrics === undefined ? null : await openPortFor({ engine, protocols: protocols.list, options, tokens, logger, metrics, watch });
    const close = closing({ engine, door, protocols, logger, watch, telemetry: options.telemetry });
    watch?.begin();
    logger.info("The server is ready", { url: door?.url ?? null });
    return {
      ...program,
      ...protocols.handles,
      url: door?.url ?? null,
      port: door?.port ?? null,
      workflows,
      close,
      [Symbol.asyncDispose]: () => close(),
    };
  } catch (error) {
    watch?.stop();
    await protocols?.close();
    await engine.close();
    throw error;
  }
}

/**
 * Imports the module only here: a program without a socket needs neither the protocols nor the HTTP API, which take half of the start time.
 */
async function openPortFor(deps: ServerPortDeps): Promise<ServerPort> {
  const { openServerPort } = await import("./server-port.ts");
  return openServerPort(deps);
}

/** What must be closed with the server. */
interface Running {
  readonly engine: Engine;
  readonly door: ServerPort | null;
  readonly protocols: OpenProtocols;
  readonly logger: Logger;
  readonly watch: Watchdog | undefined;
  readonly telemetry: ServeOptions["telemetry"];
}

/** Long polls are running requests: they are answered first, so that the listener does not wait for them. */
function closing({ engine, door, protocols, logger, watch, telemetry }: Running): (deadlineMs?: number) => Promise<void> {
  let closed: Promise<void> | undefined;
  return (deadlineMs) => {
    closed ??= (async () => {
      // After the listener is closed, nothing else may keep the process alive. If the process ended now, pending writes would be lost.
      const letEnd = keepProcessAlive();
      logger.info("The server stops");
      try {
        const doorClosed = door?.close(deadlineMs);
        engine.board.dismiss();
        await doorClosed;
        await protocols.close();
        await engine.close();
        await telemetry?.close?.();
        logger.info("The server has stopped");
      } finally {
        watch?.stop();
        letEnd();
      }
    })();
    return closed;
  };
}

async function defineSampleIfEmpty(engine: Engine, prepared: readonly PreparedProtocol[]): Promise<void> {
  if ((await engine.reader.definitions({ limit: 1 })).length > 0) return;
  for (const { sample } of prepared) if (sample !== undefined) await engine.runs.define(sample);
}
