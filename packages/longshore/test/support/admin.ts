// Our own API in tests. Every response is compared with the documented shape of its operation, so each test of a route also tests the OpenAPI
// document.

import { expect, onTestFinished } from "vitest";
import { createLogger, type Logger } from "../../src/core/logger.ts";
import { createMetrics, type Metrics } from "../../src/core/metrics.ts";
import type { RouteGroup } from "../../src/net/http/http.ts";
import { createAuth } from "../../src/net/listener/auth.ts";
import { createRouter } from "../../src/net/listener/router.ts";
import type { Operation } from "../../src/protocols/longshore/server/operation.ts";
import type { OwnGroup } from "../../src/protocols/longshore/server/routes.ts";
import type { ServeOptions } from "../../src/server/config.ts";
import { FailureLog } from "../../src/server/failure-log.ts";
import { programSide } from "../../src/server/handle.ts";
import { engineProbe } from "../../src/server/instruments.ts";
import { openServerPort, tableOf } from "../../src/server/server-port.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { type OpenEngine, openEngineWithStore } from "./engine.ts";
import { temporaryFolder } from "./parts.ts";
import { protocolsOn } from "./protocols.ts";
import { conversation, type GraphServer, startGraphServer } from "./workflow-graph.ts";

// Bodies are what the test says they are.
// biome-ignore lint/suspicious/noExplicitAny: a test reads fields of answers whose shape has been checked before.
type Body = any;

export interface ApiAnswer {
  readonly status: number;
  readonly body: Body;
  readonly headers: Record<string, string | string[] | undefined>;
}

export interface AdminServer extends GraphServer {
  /** Calls our own API and checks the answer against its documentation. */
  api(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<ApiAnswer>;
}

export async function startAdminServer(options: ServeOptions = {}, before?: Pick<GraphServer, "clock" | "data">): Promise<AdminServer> {
  const server = await startGraphServer({ logger: { level: "silent" }, ...options }, before);
  return { ...server, api: await apiOver(server.send) };
}

/** A server on a disk that a test can make full. */
export async function startOnSmallDisk() {
  const clock = new TestClock();
  const metrics = createMetrics();
  const log: string[] = [];
  const logger = createLogger({ level: "warn", format: "text", write: (line) => log.push(line), clock });
  const engine = await openEngineWithStore({
    directory: temporaryFolder(),
    clock,
    probe: engineProbe(metrics, { ran() {} }),
    trouble: new FailureLog(logger, clock),
  });
  const disk = { full: false, refusals: 0 };
  const { transaction } = engine.store.db;
  engine.store.db.transaction = (work) => {
    if (!disk.full) return transaction(work);
    disk.refusals++;
    throw Object.assign(new Error("database or disk is full"), { errcode: 13 });
  };
  return { ...(await serveEngine(engine, logger, metrics)), program: programSide(engine), clock, disk, log };
}

/** A server over an engine that the test can call, too. */
export async function startOverEngine() {
  const clock = new TestClock();
  const engine = await openEngineWithStore({ directory: null, clock });
  const logger = createLogger({ level: "silent", format: "text", write: () => {}, clock });
  return { ...(await serveEngine(engine, logger, createMetrics())), engine, clock };
}

async function serveEngine(engine: OpenEngine, logger: Logger, metrics: Metrics) {
  const door = await openServerPort({ engine, protocols: await protocolsOn(engine), options: { port: 0 }, tokens: [], logger, metrics });
  onTestFinished(async () => {
    await door.close();
    await engine.close();
  });
  const talk = conversation(door.url);
  return { ...talk, api: await apiOver(talk.send) };
}

async function apiOver(send: GraphServer["send"]): Promise<AdminServer["api"]> {
  const operationAt = await operationFinder();
  return async (method, path, body, headers = {}) => {
    const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
    const url = ["/", "/health", "/livez", "/readyz", "/metrics"].includes(path) ? path : `/api/longshore/v1${path}`;
    const answer = await send(method, url, { headers, ...(text === undefined ? {} : { body: text }) });
    const isJson = String(answer.headers["content-type"]).startsWith("application/json");
    const parsed: unknown = isJson ? JSON.parse(answer.text) : answer.text;
    documented(operationAt(method, url), answer.status, parsed);
    return { status: answer.status, body: parsed, headers: answer.headers };
  };
}

/** The real route table, without a server in front of it. */
export async function realGroups() {
  return (await realTable()).groups;
}

/** The real gRPC methods. */
export async function realMethods() {
  return (await realTable()).served.flatMap(({ methods = [] }) => methods);
}

async function realTable() {
  const engine = await openEngineWithStore({ directory: null, clock: new TestClock() });
  onTestFinished(() => engine.close());
  const auth = createAuth([]);
  return tableOf({ engine, protocols: await protocolsOn(engine), metrics: createMetrics(), auth });
}

/** Our own API among them. */
export function ownGroup(groups: readonly RouteGroup[]): OwnGroup {
  return groups.find(({ name }) => name === "longshore") as OwnGroup;
}

async function operationFinder(): Promise<(method: string, path: string) => Operation | undefined> {
  const groups = await realGroups();
  const admin = ownGroup(groups);
  const router = createRouter([groups[0] as RouteGroup, admin], admin);
  return (method, path) => router.find(method, path.split("?")[0] as string).entry?.route as Operation | undefined;
}

/** Statuses that the listener and the checks before an operation may return. */
const anyOperation = [400, 401, 403, 413, 429, 503];

function documented(operation: Operation | undefined, status: number, body: unknown): void {
  if (operation === undefined) return;
  const answer = operation.description.answers[status];
  if (answer === undefined) expect(anyOperation, `${operation.method} ${operation.path} answered ${status}`).toContain(status);
  if (answer?.schema !== undefined) expect(answer.schema.parse(body)).toEqual(body);
  else if (status >= 400)
    expect(body).toMatchObject({ error: { code: expect.stringMatching(/^LONGSHORE_/), message: expect.any(String) } });
}
