// The worker's calls to a Conductor server: one method for each call of the contract (README.md). Responses are parsed only here.

import type { Clock } from "../../../core/clock.ts";
import { LongshoreError } from "../../../core/errors.ts";
import { isObject, type JsonObject, parseOrUndefined } from "../../../core/json/json.ts";
import { withoutEndSlashes } from "../../../core/text.ts";
import { quoteCharsMax, quoted, type Reply } from "../../../net/http/send.ts";
import { isAuthStatus, wantsNewToken } from "../wire/codes.ts";
import {
  type PolledTask,
  parseErrorBody,
  parsePolledTask,
  paths,
  pollReturnsHeader,
  type SchemaDef,
  type TaskDef,
  type TaskResult,
  tokenHeader,
} from "../wire/shapes.ts";
import { Tokens } from "./auth.ts";
import { Connection, type HttpRequest, isClosedConnection } from "./connection.ts";
import type { Settings } from "./options.ts";

export interface PollRequest {
  readonly task: string;
  readonly workerId: string;
  readonly domain: string | undefined;
  readonly count: number;
  readonly timeoutMs: number;
}

export interface PollAnswer {
  readonly tasks: readonly PolledTask[];
  /** The number of entries that are not tasks. */
  readonly malformed: number;
  /** The number of ignored entries, when there were far too many. */
  readonly left: number;
  /** True when the server takes back tasks of aborted polls. */
  readonly returns: boolean;
}

/** The part of a reply that callers use. */
export type Answer = Pick<Reply, "status" | "text">;

export interface ClientOptions {
  readonly settings: Settings;
  readonly clock: Clock;
  /** How the worker describes itself to the server. */
  readonly agent?: string;
  /** Called after every request. `uri` is the path with placeholders for ids; `status` is 0 when there was no response. */
  readonly ended: (method: string, uri: string, status: number, durationMs: number) => void;
}

/** Maximum number of surplus tasks that wait for a slot, when a server sends more than requested. */
export const surplusMax = 100;
/** How long the response to a long poll may take beyond its wait. */
const pollGraceMs = 10_000;

interface Call {
  readonly method: HttpRequest["method"];
  readonly uri: string;
  /** The real path with its query. Default: `uri`, which has placeholders for ids. */
  readonly path?: string;
  readonly body?: string;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** The answer carries a task with its input. */
  readonly carriesTask?: boolean;
  /** Retry at once when the connection was closed: the server may have closed an idle connection at the same moment. */
  readonly repeat?: boolean;
}

export class Client {
  readonly #connection: Connection;
  readonly #options: ClientOptions;
  readonly #tokens: Tokens;
  readonly #base: string;
  /** Headers of calls without and with a body, created once. */
  readonly #headers: Readonly<Record<"get" | "post", { readonly [name: string]: string }>>;

  static async open(options: ClientOptions): Promise<Client> {
    return new Client(await Connection.open(options.settings), options);
  }

  private constructor(connection: Connection, options: ClientOptions) {
    const { settings, clock } = options;
    this.#connection = connection;
    this.#options = options;
    // The address may include the `/api` that every path starts with.
    this.#base = `${withoutEndSlashes(settings.url.pathname).replace(/\/api$/, "")}/api`;
    const get = {
      accept: "application/json, text/plain",
      ...(settings.basic === undefined ? {} : { authorization: settings.basic }),
      ...(options.agent === undefined ? {} : { "user-agent": options.agent }),
    };
    this.#headers = { get, post: { ...get, "content-type": "application/json" } };
    this.#tokens = new Tokens({
      keys: settings.keys,
      refreshMs: settings.refreshTokenMs,
      clock,
      exchange: (body) => this.#send({ method: "POST", uri: paths.token, body, repeat: true }, undefined),
    });
  }

  async poll(request: PollRequest, signal?: AbortSignal): Promise<PollAnswer> {
    const query = [
      `workerid=${encodeURIComponent(request.workerId)}`,
      ...(request.domain === undefined ? [] : [`domain=${encodeURIComponent(request.domain)}`]),
      `count=${request.count}`,
      `timeout=${request.timeoutMs}`,
    ].join("&");
    const path = `/tasks/poll/batch/${encodeURIComponent(request.task)}?${query}`;
    const timeoutMs = request.timeoutMs + pollGraceMs;
    const reply = await this.#call({ method: "GET", uri: paths.poll, path, timeoutMs, signal, carriesTask: true, repeat: true });
    const returns = reply.headers[pollReturnsHeader] !== undefined;
    if (reply.status === 204) return { tasks: [], malformed: 0, left: 0, returns };
    const entries = reply.status === 200 ? parseOrUndefined(reply.text) : undefined;
    if (!Array.isArray(entries)) throw unexpected("poll", reply, "200 and a list of tasks");
    const looked = entries.slice(0, request.count + surplusMax);
    const tasks = looked.map((entry) => parsePolledTask(entry, request.task)).filter((task) => task !== undefined);
    return { tasks, malformed: looked.length - tasks.length, left: entries.length - looked.length, returns };
  }

  /** `body` is a TaskResult as JSON, so that repeats send the same bytes. */
  update(body: string, signal?: AbortSignal): Promise<Answer> {
    return this.#call({ method: "POST", uri: paths.update, body, signal, repeat: true });
  }

  /** Not retried automatically: the first response may have contained a task. */
  updateV2(body: string, signal?: AbortSignal): Promise<Answer> {
    return this.#call({ method: "POST", uri: paths.updateV2, body, signal, carriesTask: true });
  }

  /** A heartbeat. */
  extendLease(result: Pick<TaskResult, "taskId" | "workflowInstanceId" | "workerId">, signal: AbortSignal): Promise<Answer> {
    const { taskId, workflowInstanceId, workerId } = result;
    const body = JSON.stringify({ taskId, workflowInstanceId, workerId, status: "IN_PROGRESS", extendLease: true });
    return this.#call({ method: "POST", uri: paths.update, body, signal, repeat: true });
  }

  task(taskId: string, signal: AbortSignal): Promise<Answer> {
    return this.#call({
      method: "GET",
      uri: paths.task,
      path: `/tasks/${encodeURIComponent(taskId)}`,
      signal,
      carriesTask: true,
      repeat: true,
    });
  }

  /**
   * Reads an input that was too large for the server's own store. The server sends only the address of the input, which may be on any
   * machine.
   */
  async externalInput(path: string): Promise<{ readonly input: JsonObject; readonly bytes: number }> {
    const query = `path=${encodeURIComponent(path)}&operation=READ&payloadType=TASK_INPUT`;
    const response = await this.#call({ method: "GET", uri: paths.storage, path: `${paths.storage}?${query}`, repeat: true });
    const location = response.status === 200 ? parseOrUndefined(response.text) : undefined;
    const uri = isObject(location) && typeof location.uri === "string" ? location.uri : undefined;
    if (uri === undefined || !URL.canParse(uri)) throw unexpected("where an input is kept", response, '200 and {"uri": "..."}');
    const reply = await this.#connection.fetch(new URL(uri), this.#options.settings.requestTimeoutMs);
    const input = reply.status === 200 ? parseOrUndefined(reply.text) : undefined;
    if (!isObject(input)) throw unexpected("an input that is kept elsewhere", reply, "200 and an object");
    return { input: input as JsonObject, bytes: Buffer.byteLength(reply.text) };
  }

  taskDef(name: string): Promise<Answer> {
    return this.#call({ method: "GET", uri: paths.taskDef, path: `${paths.taskDefs}/${encodeURIComponent(name)}`, repeat: true });
  }

  putTaskDef(definition: TaskDef): Promise<Answer> {
    return this.#call({ method: "PUT", uri: paths.taskDefs, body: JSON.stringify(definition), repeat: true });
  }

  postTaskDef(definition: TaskDef): Promise<Answer> {
    return this.#call({ method: "POST", uri: paths.taskDefs, body: JSON.stringify([definition]) });
  }

  postSchema(schema: SchemaDef): Promise<Answer> {
    return this.#call({ method: "POST", uri: paths.schema, body: JSON.stringify(schema) });
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  async #call(call: Call): Promise<Reply> {
    const current = this.#tokens.current();
    const token = current instanceof Promise ? await current : current;
    const reply = await this.#send(call, token);
    if (token === undefined || !wantsNewToken(reply.status, reply.text)) return reply;
    const renewed = await this.#tokens.renew(token);
    return renewed === undefined ? reply : this.#send(call, renewed);
  }

  async #send(call: Call, token: string | undefined): Promise<Reply> {
    const request = this.#request(call, token);
    try {
      return await this.#exchange(call, request);
    } catch (error) {
      if (!call.repeat || call.signal?.aborted || !isClosedConnection(error)) throw error;
      return this.#exchange(call, request);
    }
  }

  async #exchange({ method, uri }: Call, request: HttpRequest): Promise<Reply> {
    const { clock, ended } = this.#options;
    const startedMs = clock.now();
    let status = 0;
    try {
      const reply = await this.#connection.send(request);
      status = reply.status;
      return reply;
    } finally {
      ended(method, uri, status, clock.now() - startedMs);
    }
  }

  #request({ method, uri, path, body, timeoutMs, signal, carriesTask }: Call, token: string | undefined): HttpRequest {
    const { requestTimeoutMs } = this.#options.settings;
    const plain = body === undefined ? this.#headers.get : this.#headers.post;
    const headers = token === undefined ? plain : { ...plain, [tokenHeader]: token };
    return { method, path: this.#base + (path ?? uri), headers, body, timeoutMs: timeoutMs ?? requestTimeoutMs, signal, carriesTask };
  }
}

/** The error for an unusable response. 401 and 403 are LONGSHORE_UNAUTHORIZED. */
export function unexpected(what: string, answer: Answer, expected: string): LongshoreError {
  if (isAuthStatus(answer.status)) {
    const hint = "check keyId and keySecret, or CONDUCTOR_AUTH_KEY and CONDUCTOR_AUTH_SECRET";
    return new LongshoreError("LONGSHORE_UNAUTHORIZED", `The server answered ${what} with ${quote(answer).replace(/\.$/, "")}; ${hint}.`);
  }
  return new LongshoreError(
    "LONGSHORE_UNREACHABLE",
    `The server answered ${what} with ${quote(answer).replace(/\.$/, "")}, expected ${expected}.`,
  );
}

/** The response in short, for errors: `status 404: No such task found by id: x`. A body of another format is cut. */
export function quote(answer: Answer): string {
  const error = parseErrorBody(answer.text);
  if (error === undefined) return quoted(answer);
  const details = (error.validationErrors ?? []).map(({ path, message }) => (path === undefined ? message : `${path}: ${message}`));
  return `status ${answer.status}: ${[error.message, ...details].join("; ").slice(0, quoteCharsMax * 2)}`;
}

/** The task in a response. Undefined for status 204, an empty body, `null`, or something that is not a task. */
export function taskOf(answer: Answer, polledFor: string): PolledTask | undefined | "garbled" {
  if (answer.status === 204 || answer.text.trim() === "") return undefined;
  const value = parseOrUndefined(answer.text);
  if (value === undefined) return "garbled";
  return isObject(value) ? parsePolledTask(value, polledFor) : undefined;
}
