// The data while this node owns it: the engine with its memory, and the protocols on it. Opened when the node takes over, closed when it hands
// the data over or has lost it.

import type { Socket } from "node:net";
import { routeName } from "../cluster/carried-request.ts";
import { type LinkRequest, LinkServer } from "../cluster/link/server.ts";
import type { OwnedData } from "../cluster/node.ts";
import { isTracked, Performer } from "../cluster/performer.ts";
import { systemClock } from "../core/clock.ts";
import { idMaker } from "../core/ids.ts";
import type { Logger } from "../core/logger.ts";
import { createMetrics, type Metrics } from "../core/metrics.ts";
import { byProgram } from "../core/orderer.ts";
import { quotasOf } from "../core/quotas.ts";
import { RequestIds } from "../core/request-ids.ts";
import type { Watchdog } from "../core/watchdog.ts";
import { retentionPolicy } from "../engine/run/retention.ts";
import type { Lease } from "../engine/store.ts";
import type { Auth } from "../net/listener/auth.ts";
import type { PreparedProtocol } from "../protocols/server-half.ts";
import type { ServeOptions } from "./config.ts";
import { openEngine } from "./engine.ts";
import type { ExternalStore } from "./external-store.ts";
import { FailureLog } from "./failure-log.ts";
import { engineProbe, instrument } from "./instruments.ts";
import { performProgram } from "./node-program.ts";
import { openProtocols } from "./protocols.ts";
import { tableOf } from "./server-port.ts";

export interface TakeOverDeps {
  readonly options: ServeOptions;
  readonly prepared: readonly PreparedProtocol[];
  readonly auth: Auth;
  readonly logger: Logger;
  readonly watch: Watchdog;
  readonly store: ExternalStore;
  readonly node: string;
  readonly secret: Uint8Array;
  /** Where this node listens. */
  url(): string;
}

/** How long this node waits for long bodies that are being sent or received before it hands the data over. */
const bodyMsMax = 5_000;
/** How long a hand-over waits for requests in progress. All other requests wait meanwhile. A request that waits for the end of a run takes longer. */
const callMsMax = 200;

/** The objects that exist while this node owns the data. */
interface Current {
  readonly metrics: Metrics;
  readonly links: LinkServer;
  readonly performer: Performer;
  lease(): Lease | null;
}

export function takeOver(deps: TakeOverDeps) {
  let current: Current | null = null;
  return {
    metrics: () => current?.metrics ?? null,
    links: () => current?.links.figures ?? null,
    lease: () => current?.lease() ?? null,
    /** Called when a node requests a link. */
    link(request: LinkRequest, socket: Socket, head: Buffer): void {
      if (current === null) socket.destroy();
      else current.links.accept(request, socket, head);
    },
    /** Cuts the links that are still open. */
    stop(): void {
      current?.links.close();
    },
    async take(): Promise<OwnedData> {
      const opened = await openOwned(deps, () => {
        current = null;
      });
      current = opened.current;
      return opened.data;
    },
  };
}

async function openOwned(deps: TakeOverDeps, over: () => void): Promise<{ data: OwnedData; current: Current }> {
  const { options, prepared, auth, logger, watch, store, node } = deps;
  const metrics = createMetrics();
  const ids = new RequestIds(idMaker());
  let lost = (): Error | null => null;
  let lease = (): Lease | null => null;
  const engine = await openEngine({
    directory: null,
    openStore: async () => {
      const opened = await store.open({ node, warn: (message) => logger.warn(message) });
      lost = () => opened.rows.isGone();
      lease = () => opened.lease?.() ?? null;
      return opened;
    },
    dialects: prepared.flatMap(({ dialects }) => dialects),
    clock: options.clock,
    retention: retentionPolicy(options.retention),
    quotas: quotasOf(options.quotas),
    probe: engineProbe(metrics, watch),
    spans: options.telemetry?.spans,
    trouble: new FailureLog(logger, options.clock ?? systemClock),
    warn: (message) => logger.warn(message),
    failed: (what, error) => logger.warn(`The ${what} failed and is tried again`, { error }),
    ids,
  });
  const orClose = async (error: unknown) => {
    // The data is released, so that this node or another one can try again.
    await engine.close();
    throw error;
  };
  const protocols = await openProtocols(prepared, engine, logger).catch(orClose);
  const { served, groups, methods } = await tableOf({
    engine,
    protocols: protocols.list,
    metrics,
    auth,
    hasPages: options.ui !== false,
  }).catch(orClose);
  instrument(engine, metrics);
  const program = (verb: string, given: readonly unknown[]) =>
    engine.orderers.within(byProgram, () => performProgram({ engine, handles: protocols.handles }, verb, given));
  const performer = new Performer({
    table: { groups, methods },
    clock: engine.clock,
    ids,
    answers: engine.performed,
    program,
    limits: options.limits,
    isOver: () => lost() !== null,
  });
  const links = new LinkServer({ secret: deps.secret, node, service: performer, logger });
  const close = async () => {
    if (lost() === null) await performer.bodies(bodyMsMax);
    const wasLost = lost() !== null;
    for (const each of served) each.dismiss?.();
    engine.board.dismiss();
    if (!wasLost) await performer.drain(callMsMax);
    over();
    if (wasLost) links.close();
    else await links.end();
    performer.close();
    await Promise.all(served.map((each) => each.stop?.(wasLost ? 0 : undefined)));
    await protocols.close();
    await engine.close();
  };
  const data: OwnedData = {
    routes: new Map(groups.flatMap(({ routes }) => routes.map((route) => [routeName(route), route]))),
    methods: new Map(methods.map((method) => [method.path, method])),
    program,
    track: (action, id, work) => (isTracked(action) ? ids.within({ id, isRepeat: false }, work) : work()),
    lost,
    close,
  };
  await start(served, deps, close);
  return { data: { ...data, lost: () => lost() }, current: { metrics, links, performer, lease: () => lease() } };
}

async function start(
  served: readonly { start?(url: string): Promise<void> }[],
  { url }: TakeOverDeps,
  close: () => Promise<void>,
): Promise<void> {
  try {
    for (const each of served) await each.start?.(url());
  } catch (error) {
    await close();
    throw error;
  }
}
