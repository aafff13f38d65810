// A server that shares its data with others: a node of a cluster. It listens from the start. The owner of the data performs its requests: this
// node or another one.

import { hostname } from "node:os";
import { Forwarder } from "../cluster/forwarder.ts";
import { LinkClient } from "../cluster/link/client.ts";
import { spokenVersions } from "../cluster/link/messages.ts";
import { linkPath } from "../cluster/link/proof.ts";
import type { Member, Members } from "../cluster/members.ts";
import { ClusterNode, type Elsewhere } from "../cluster/node.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import { LongshoreError } from "../core/errors.ts";
import { idMaker } from "../core/ids.ts";
import type { Logger } from "../core/logger.ts";
import { createMetrics } from "../core/metrics.ts";
import { keepProcessAlive } from "../core/process-keepalive.ts";
import { packageVersion } from "../core/version.ts";
import { createWatchdog } from "../core/watchdog.ts";
import { createAuth, type Token } from "../net/listener/auth.ts";
import { type HttpServer, listen } from "../net/listener/listener.ts";
import type { NodeView, PreparedProtocol } from "../protocols/server-half.ts";
import type { SharedRows } from "../store/postgres/shared-rows.ts";
import { portDefault, type ServeOptions } from "./config.ts";
import type { ExternalStore } from "./external-store.ts";
import type { Server } from "./handle.ts";
import { IdleTable } from "./idle-table.ts";
import { nodeMetrics, withOwned } from "./node-metrics.ts";
import { nodeProgram } from "./node-program.ts";
import { nodeStorage } from "./node-storage.ts";
import { takeOver } from "./owned-data.ts";
import { pageRoutes } from "./pages.ts";
import { loadWorkflows, noWorkflows } from "./workflows.ts";

export interface NodeDeps {
  readonly options: ServeOptions;
  /** The database that the nodes share. */
  readonly store: ExternalStore;
  readonly prepared: readonly PreparedProtocol[];
  readonly tokens: readonly Token[];
  readonly logger: Logger;
}

export async function serveNode({ options, store, prepared, tokens, logger }: NodeDeps): Promise<Server> {
  const { clock = systemClock } = options;
  checkAdvertised(options);
  const metrics = createMetrics();
  const watch = createWatchdog({ metrics, logger });
  const auth = createAuth(tokens);
  const makeId = idMaker();
  const id = `${hostname()}/${process.pid}/${makeId(clock.now()).slice(-6)}`;
  const members = await store.members();
  const shared = await sharedOrClose(store, members);
  const link = new LinkClient({
    ...{ secret: members.secret, node: id, logger },
    owner: () => currentOwner(members),
    tls: linkTls(options),
  });
  const forwarder = new Forwarder({ owner: link, makeId, clock });
  const elsewhere: Elsewhere = {
    request: (route, request, begunAs) => forwarder.request(route, request, begunAs),
    unary: (method, message, call, begunAs) => forwarder.unary(method, message, call, begunAs),
    stream: (method, message, call, sink) => forwarder.stream(method, message, call, sink),
    program: (verb, given, begunAs) =>
      link.call("program", { verb, given, id: begunAs ?? makeId(clock.now()), isRepeat: begunAs !== undefined }),
    ownerChanged: () => void link.ownerChanged().catch(() => {}),
    noNodeLeft: () => void link.close(),
  };
  const owned = takeOver({
    ...{ options, prepared, auth, logger, watch, store, node: id, secret: members.secret },
    url: () => listener.url,
  });
  const node: ClusterNode = new ClusterNode({
    ...{ id, members, elsewhere, logger, makeId },
    takeOver: owned.take,
    announce: () => members.announce(memberOf(id, advertised(options, listener, members))),
  });
  const own = { storage: nodeStorage(node), nodes: async () => (await members.list()).map(viewOf) };
  const table = await IdleTable.open({
    prepared,
    node,
    shared,
    auth,
    logger,
    metrics: withOwned(metrics, owned.metrics),
    hasPages: options.ui !== false,
    own,
  });
  nodeMetrics(metrics, node, link, owned, table);
  const { host, hosts, origins, insecure, limits, tls } = options;
  const listener = await listen({
    ...{ groups: options.ui === false ? table.groups : [...table.groups, pageRoutes()], methods: table.methods, fallback: table.fallback },
    port: options.port ?? portDefault,
    ...{ auth, clock, host, hosts, origins, insecure, limits, tls, metrics, logger, watch },
    upgrade: { path: linkPath, take: (request, socket, head) => owned.link(request, socket, head) },
  });
  const close = closing({
    node,
    members,
    shared,
    link,
    forwarder,
    owned,
    table,
    listener,
    logger,
    watch,
    clock,
    telemetry: options.telemetry,
  });
  try {
    await node.start();
    const { program, handles } = nodeProgram(node, table);
    const workflows =
      options.workflows === undefined
        ? noWorkflows
        : await loadWorkflows(
            options.workflows,
            { define: program.defineSource, schedule: (schedule) => program.define(schedule) },
            options.badWorkflows ?? "refuse",
          );
    for (const warning of workflows.warnings) logger.warn(warning);
    for (const { message } of workflows.bad) logger.error(message);
    watch.begin();
    logger.info("The server is ready", { url: listener.url, node: id, state: node.state });
    const { defineSource: _, ...side } = program;
    return { ...side, ...handles, url: listener.url, port: listener.port, workflows, close, [Symbol.asyncDispose]: () => close() };
  } catch (error) {
    await close(0);
    throw error;
  }
}

/** Opens the shared rows. When that fails, also closes what was opened before. */
async function sharedOrClose(store: ExternalStore, members: Members): Promise<SharedRows> {
  try {
    return await store.sharedRows();
  } catch (error) {
    await members.close();
    throw error;
  }
}

async function currentOwner(members: Members) {
  const { owner } = await members.look();
  return owner === null ? null : { node: owner.node, url: owner.url, epoch: String(owner.epoch) };
}

function memberOf(id: string, url: string): Pick<Member, "id" | "url" | "version" | "speaks"> {
  return { id, url, version: packageVersion(), speaks: spokenVersions };
}

function viewOf({ isOwner, speaks: _, ...member }: Member): NodeView {
  return { ...member, state: isOwner ? "owner" : "member" };
}

/** The address at which the other nodes reach this one. A server that listens on all addresses uses the one that the database sees. */
function advertised({ advertise }: ServeOptions, { url, host, port }: HttpServer, { address }: Members): string {
  if (advertise !== undefined) return advertise;
  if (host !== "0.0.0.0" && host !== "::") return url;
  const own = address ?? hostname();
  return `${new URL(url).protocol}//${own.includes(":") ? `[${own}]` : own}:${port}`;
}

/** Throws LONGSHORE_BAD_CONFIG for a text that is not the URL of a server. */
function checkAdvertised({ advertise }: ServeOptions): void {
  if (advertise === undefined) return;
  const { protocol, pathname } = URL.canParse(advertise) ? new URL(advertise) : { protocol: "", pathname: "" };
  if ((protocol === "http:" || protocol === "https:") && pathname === "/") return;
  throw new LongshoreError(
    "LONGSHORE_BAD_CONFIG",
    `advertise is ${JSON.stringify(advertise)}, expected scheme, host and port, such as http://10.0.0.5:4500.`,
    { detail: { field: "advertise" } },
  );
}

/** Nodes prove to each other that they know the secret, and the proof covers the TLS session. So any certificate is accepted. */
function linkTls({ tls }: ServeOptions) {
  return tls === undefined ? undefined : {};
}

interface Running {
  readonly node: ClusterNode;
  readonly members: Members;
  readonly shared: SharedRows;
  readonly link: LinkClient;
  readonly forwarder: Forwarder;
  readonly owned: ReturnType<typeof takeOver>;
  readonly table: IdleTable;
  readonly listener: { close(deadlineMs?: number): Promise<void> };
  readonly logger: Logger;
  readonly watch: { stop(): void };
  readonly clock: Clock;
  readonly telemetry: ServeOptions["telemetry"];
}

/** Hands the data over first: another node performs the requests of this node's clients while the listener closes. */
function closing({
  node,
  members,
  shared,
  link,
  forwarder,
  owned,
  table,
  listener,
  logger,
  watch,
  telemetry,
}: Running): (deadlineMs?: number) => Promise<void> {
  let closed: Promise<void> | undefined;
  return (deadlineMs) => {
    closed ??= (async () => {
      const letEnd = keepProcessAlive();
      logger.info("The server stops");
      try {
        await node.resign();
        table.dismiss();
        // Long polls of this node's clients are answered before the listener ends them.
        forwarder.dismiss();
        await listener.close(deadlineMs);
        await node.close();
        await link.close();
        await table.close();
        await shared.close();
        await members.close();
        await telemetry?.close?.();
        logger.info("The server has stopped");
      } finally {
        owned.stop();
        watch.stop();
        letEnd();
      }
    })();
    return closed;
  };
}
