// Puts everything together: the only place that knows every part. `serve()` is what the command line runs, and what a program uses
// that wants durable workflows without another process.

import { resolve } from "node:path";
import type { Task as BoardTask } from "../board/task.ts";
import type { Clock } from "../clock.ts";
import { type Duration, durationMs } from "../duration.ts";
import { LongshoreError } from "../errors.ts";
import { type Json, toJson } from "../json.ts";
import type { Definition } from "../run/dialect.ts";
import { noRetry } from "../run/retry.ts";
import type { Run, RunState } from "../run/run.ts";
import type { Transport, TransportSource } from "../runner/transport.ts";
import type { RetryHint, Task } from "../task.ts";
import type { Workflow } from "../workflow.ts";
import { adminRoutes } from "./admin/routes.ts";
import { createAuth, parseToken, readTokenFile } from "./auth.ts";
import { type Engine, openEngine } from "./engine.ts";
import { type HttpServer, listen } from "./http.ts";
import type { HttpLimits } from "./limits.ts";
import { localTransport } from "./local.ts";
import { createLogger, type LoggerOptions } from "./logger.ts";
import { createMetrics } from "./metrics.ts";

export interface ServeOptions {
  /** Where the data file lies; `.longshore` when absent. */
  data?: string;
  /** Keep everything in memory: nothing survives the process. */
  ephemeral?: boolean;
  /** 4500 when absent; 0 takes any free port; null opens no socket. */
  port?: number | null;
  /** 127.0.0.1 when absent. Another address needs tokens, or `insecure`. */
  host?: string;
  /** Who may call, as `SECRET`, `SCOPES:SECRET` or `SCOPES:SECRET:NAME`. Nobody is asked for one when there are none. */
  tokens?: readonly string[];
  /** A file with one token a line. */
  tokenFile?: string;
  /** Serve beyond loopback although nobody is asked for a token. */
  insecure?: boolean;
  /** Web origins whose pages may call; none by default. */
  origins?: readonly string[];
  /** Further names in the Host header that are answered. */
  hosts?: readonly string[];
  /** What is logged and where to: warnings and worse, as text, to standard error, unless told otherwise. */
  logger?: Partial<Pick<LoggerOptions, "level" | "format" | "write">>;
  limits?: Partial<HttpLimits>;
  clock?: Clock;
}

export interface RunResult<Output = unknown> {
  readonly id: string;
  readonly state: RunState;
  readonly output: Output | null;
  readonly error: string | null;
}

export interface CallOptions {
  /** Smaller first. */
  priority?: number;
  /** Not before this much time has passed. */
  delay?: Duration;
  retry?: RetryHint;
  /** For one attempt. */
  timeout?: Duration;
  labels?: readonly string[];
}

export interface Server extends TransportSource, AsyncDisposable {
  /** Null when no socket was asked for. */
  readonly url: string | null;
  readonly port: number | null;
  /** Keeps a workflow, or a new version of it, so that it can be started by name. */
  define(workflow: Workflow): Promise<Definition>;
  /** Starts a run. A workflow that is handed over is defined first; a name must be known. With `key`, starting twice starts once. */
  start<Input>(workflow: string | Workflow<Input>, input: Input, options?: { key?: string }): Promise<{ id: string }>;
  /** Waits for the run's end. */
  result<Output = unknown>(runId: string): Promise<RunResult<Output>>;
  /** Runs one task durably, without a workflow, and waits for its result. */
  call<Input, Output>(task: string | Task<Input, Output>, input: Input, options?: CallOptions): Promise<Output>;
  cancel(runId: string): Promise<boolean>;
  /** A transport to this server for `work()`; that is what `on: server` uses. */
  transport(): Transport;
  close(): Promise<void>;
}

export const portDefault = 4_500;
export const dataDefault = ".longshore";

export async function serve(options: ServeOptions = {}): Promise<Server> {
  const directory = options.ephemeral ? null : resolve(options.data ?? dataDefault);
  const tokens = [
    ...(options.tokens ?? []).map((text, at) => parseToken(text, `token ${at + 1}`)),
    ...(options.tokenFile === undefined ? [] : readTokenFile(options.tokenFile)),
  ];
  const engine = await openEngine({ directory, clock: options.clock });
  if (options.port === null) return makeServer(engine, null);
  const { clock } = engine;
  const logger = createLogger({
    level: "warn",
    format: "text",
    write: (line) => process.stderr.write(`${line}\n`),
    ...options.logger,
    clock,
    secrets: tokens.map((token) => token.secret),
  });
  const { host, hosts, origins, insecure, limits } = options;
  try {
    const http = await listen({
      groups: [adminRoutes(engine)],
      port: options.port ?? portDefault,
      auth: createAuth(tokens),
      metrics: createMetrics(),
      ...{ host, hosts, origins, insecure, limits, logger, clock },
    });
    return makeServer(engine, http);
  } catch (error) {
    await engine.close();
    throw error;
  }
}

function makeServer(engine: Engine, http: HttpServer | null): Server {
  const close = async () => {
    await http?.close();
    await engine.close();
  };
  const { board, runs, clock, makeId } = engine;
  const define = (workflow: Workflow) => runs.define({ name: workflow.name, dialect: "code", source: JSON.stringify(workflow.source) });
  const server: Server = {
    url: http?.url ?? null,
    port: http?.port ?? null,
    define,
    async start(workflow, input, startOptions = {}) {
      const name = typeof workflow === "string" ? workflow : (await define(workflow as Workflow)).name;
      const { run } = await runs.start({ workflow: name, input: JSON.stringify(toJson(input)), key: startOptions.key });
      return { id: run.id };
    },
    async result(runId) {
      const run = await runs.result(runId);
      if (run === undefined) throw new LongshoreError("LONGSHORE_NOT_FOUND", `There is no run ${runId}.`);
      return resultOf(run) as never;
    },
    async call(task, input, callOptions = {}) {
      const ended = await board.perform(newTask(makeId(clock.now()), task as string | Task, toJson(input), callOptions));
      return outputOf(ended) as never;
    },
    async cancel(runId) {
      return (await runs.cancel(runId))?.state === "cancelled";
    },
    transport: () => localTransport({ board, holder: `local-${makeId(clock.now())}`, log: async () => {}, seen: () => {} }),
    close,
    [Symbol.asyncDispose]: close,
  };
  return server;
}

function resultOf(run: Run): RunResult {
  return { id: run.id, state: run.state, output: run.output === null ? null : JSON.parse(run.output), error: run.error };
}

function newTask(id: string, task: string | Task, input: Json, options: CallOptions) {
  const name = typeof task === "string" ? task : task.name;
  const retry = options.retry ?? (typeof task === "string" ? undefined : task.retry);
  const policy =
    retry === undefined
      ? null
      : JSON.stringify({ ...noRetry, failures: retry.limit, ...(retry.backoff === undefined ? {} : { backoff: retry.backoff }) });
  return {
    id,
    step: name,
    lanes: [{ name, labels: [...new Set(options.labels ?? [])].sort() }],
    input: JSON.stringify(input),
    policy,
    priority: options.priority,
    delayMs: options.delay === undefined ? undefined : durationMs(options.delay, "delay"),
    endMs: options.timeout === undefined ? undefined : durationMs(options.timeout, "timeout"),
  };
}

function outputOf(task: BoardTask): Json {
  if (task.state === "done") return JSON.parse(task.output ?? "null") as Json;
  throw new LongshoreError("LONGSHORE_TASK_FAILED", `Task ${task.step} ${task.state}${task.error === null ? "" : `: ${task.error}`}`);
}
