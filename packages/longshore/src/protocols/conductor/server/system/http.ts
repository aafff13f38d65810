// HTTP tasks. README.md, "HTTP tasks". Texts are the real server's, without the names of its classes.

import type { Agent, Dispatcher } from "undici";
import { toError } from "../../../../core/errors.ts";
import { isObject, isScalar, type Json, type JsonObject } from "../../../../core/json/json.ts";
import { parseExact, writeExact } from "../../../../core/json/json-exact.ts";
import { parseInSlices } from "../../../../core/json/json-slices.ts";
import { inTurns } from "../../../../core/slices/slice-work.ts";
import { Slices, turnRows } from "../../../../core/slices/slices.ts";
import { LaneFailure, type LaneWork } from "../../../../engine/board/lane-worker.ts";
import type { AddressGuard } from "../../../../net/http/address-guard.ts";
import { type Reply, send } from "../../../../net/http/send.ts";
import { clientExchanges } from "../../../../net/key-exchanges.ts";
import { hidden } from "../../dialect/credentials.ts";
import { javaText } from "../../dialect/java-text.ts";
import { unquote } from "../../dialect/quoting.ts";
import { fillSecrets } from "../../dialect/secrets.ts";
import { hiding } from "./hide-secrets.ts";

/** `connectionTimeOut` and `readTimeOut` of a task that has none, as on the real server. */
const timeoutMsDefault = 3_000;
/** Longer than any request should take. A call that needs more is work for a worker. */
const timeoutMsMax = 300_000;
/** A body becomes the output of the task, which the server reads and writes in some milliseconds. */
const bodyBytesMax = 1_048_576;
/** Characters of JSON that take about as long to read as a row: 350,000 values in a body of 1 MiB take up to 60 ms. */
const charsPerRow = 64;
/** Characters of a body that are read in one turn of the event loop, so in some milliseconds. */
const bodySliceChars = turnRows * charsPerRow;
/** A server that does not accept a connection within this time is not there. */
const connectMsMax = 10_000;
const redirectsMax = 5;
/** Concurrent requests to one server. */
const connectionsMax = 32;
/** An unused connection is closed after this time, whatever the server at the other end asks for. */
const idleMs = 4_000;
/** With more connections, those to all servers together, each is closed after its response: the process has a limited number of them. */
const connectionsKept = 128;
/** A response may pause as long as its timeout. At less than 1 KiB a second, it may take no longer than this in all. */
const slowMs = 60_000;

const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
const withoutBody = new Set(["GET", "HEAD", "OPTIONS", "DELETE"]);
const redirects = new Set([301, 302, 303, 307, 308]);
/** Headers of a response that are credentials: their values are in no record. */
const credentials = new Set(["set-cookie", "authorization", "proxy-authorization"]);

interface Request {
  readonly uri: string;
  readonly method: string;
  readonly headers: { readonly [name: string]: string };
  readonly body: string | null;
  readonly connectMs: number;
  readonly readMs: number;
}

export class HttpCalls {
  readonly #guard: AddressGuard;
  readonly #secret: (name: string) => string | null;
  /** Shared by all responses: a turn of the event loop reads no more, however many responses arrive at once. */
  readonly #slices = new Slices();
  #agent: Promise<Agent> | undefined;
  /** Open connections, used or not. */
  #connections = 0;

  constructor(guard: AddressGuard, secret: (name: string) => string | null) {
    this.#guard = guard;
    this.#secret = secret;
  }

  /** The output of the task. Throws a LaneFailure with the reason and output of one that fails. */
  async perform({ task, signal }: LaneWork): Promise<Json> {
    const stored = parseExact(task.input) as Json;
    // Errors show the request as it is stored: with the names of secrets. Errors of Node, and the called server, may repeat their values.
    const named = requestIn(unquote(stored));
    const secrets: Json[] = [];
    const request = requestIn(fillSecrets(stored, this.#secret, (value) => secrets.push(value)));
    const hide = hiding(secrets);
    const what = `${named.method} request for "${named.uri}"`;
    if (!methods.has(request.method)) throw failed(`Invalid HTTP method: ${named.method}`);
    let reply: Reply;
    try {
      reply = await this.#follow(request, signal);
    } catch (error) {
      throw failed(`I/O error on ${what}: ${hide(reasonOf(error))}`, error);
    }
    if (reply.status >= 200 && reply.status < 300) return { response: await this.#responseOf(reply, hide) };
    throw failed(`${reply.status} ${hide(reply.reason ?? "")} on ${what}: "${hide(reply.text)}"`);
  }

  async #follow(first: Request, signal: AbortSignal): Promise<Reply> {
    let request = first;
    for (let count = 0; ; count++) {
      const url = new URL(request.uri);
      if (url.protocol !== "http:" && url.protocol !== "https:") throw new Error(`${url.protocol} is not http: or https:`);
      const reply = await this.#send(url, request, signal);
      const location = redirects.has(reply.status) && withoutBody.has(request.method) ? reply.headers.location : undefined;
      if (typeof location !== "string" || count >= redirectsMax) return reply;
      const next = new URL(location, url);
      request = { ...request, uri: next.href, headers: next.origin === url.origin ? request.headers : plainHeaders(request.headers) };
    }
  }

  async #send(url: URL, { method, headers, body, connectMs, readMs }: Request, signal: AbortSignal): Promise<Reply> {
    this.#agent ??= this.#open();
    const request = {
      ...{ origin: url.origin, path: url.pathname + url.search, method, headers, body },
      ...{ headersTimeout: connectMs + readMs, bodyTimeout: readMs, reset: this.#connections >= connectionsKept },
    };
    const limits = { bytesMax: bodyBytesMax, slowMs };
    return send(await this.#agent, request as Dispatcher.DispatchOptions, signal, limits);
  }

  async #responseOf({ status, reason, headers, text }: Reply, hide: (text: string) => string): Promise<Json> {
    const shown: JsonObject = {};
    for (const [name, value = []] of Object.entries(headers)) shown[name] = credentials.has(name) ? [hidden] : [value].flat().map(hide);
    return { headers: shown, reasonPhrase: hide(reason ?? ""), body: await this.#bodyOf(hide(text)), statusCode: status };
  }

  async #bodyOf(text: string): Promise<Json> {
    if (text === "") return null;
    await this.#slices.turn(Math.min(turnRows, Math.ceil(text.length / charsPerRow)));
    try {
      // Only lists and objects have parts.
      if (text.length <= bodySliceChars || !/^[ \t\r\n]*[[{]/.test(text)) return parseExact(text) as Json;
      return (await inTurns(parseInSlices(text, bodySliceChars), this.#slices)) as Json;
    } catch {
      // Not JSON: the text itself is the body.
      return text;
    }
  }

  async #open(): Promise<Agent> {
    const { Agent: Opened, buildConnector } = await import("undici");
    const connect = this.#guard.connector(buildConnector({ timeout: connectMsMax, ...clientExchanges }));
    const counted: typeof connect = (options, callback) =>
      connect(options, (...connected) => {
        const [, socket] = connected;
        // Undici passes none when the connection has failed.
        if (socket) {
          this.#connections++;
          socket.once("close", () => this.#connections--);
        }
        callback(...connected);
      });
    const idle = { keepAliveTimeout: idleMs, keepAliveMaxTimeout: idleMs };
    return new Opened({ connections: connectionsMax, pipelining: 1, connect: counted, ...idle });
  }

  async close(): Promise<void> {
    await (await this.#agent)?.destroy();
  }
}

/** The fields are in the input itself, or in its field `http_request`. */
function requestIn(filled: Json): Request {
  const input = objectIn(filled);
  const given = isObject(input.http_request) ? objectIn(input.http_request) : input;
  const { uri, method, body = null } = given;
  if (typeof uri !== "string" || uri === "")
    throw new LaneFailure({ error: "Missing HTTP URI.  See documentation for HttpTask for required input parameters", retryable: true });
  if (typeof method !== "string" || method === "") throw new LaneFailure({ error: "No HTTP method specified", retryable: true });
  const headers: { [name: string]: string } = { accept: listed(given.accept), "content-type": listed(given.contentType) };
  for (const [name, value] of Object.entries(objectIn(given.headers ?? null)))
    if (value !== null) headers[name.toLowerCase()] = isScalar(value) ? String(value) : writeExact(value);
  const isSent = body !== null && !withoutBody.has(method);
  const text = !isSent ? null : typeof body === "string" ? body : encoded(body, headers["content-type"] ?? "");
  return { uri, method, headers, body: text, connectMs: timeoutOf(given.connectionTimeOut), readMs: timeoutOf(given.readTimeOut) };
}

function encoded(body: Json, type: string): string {
  if (!type.startsWith("application/x-www-form-urlencoded") || !isObject(body)) return writeExact(body);
  return new URLSearchParams(Object.entries(objectIn(body)).map(([name, value]): [string, string] => [name, javaText(value)])).toString();
}

function listed(given: Json | undefined): string {
  const values = Array.isArray(given) ? given : given === undefined || given === null ? [] : [given];
  return values.length === 0 ? "application/json" : values.map(javaText).join(", ");
}

function timeoutOf(given: Json | undefined): number {
  const ms = typeof given === "string" ? Number(given) : given;
  return typeof ms === "number" && ms > 0 ? Math.min(ms, timeoutMsMax) : timeoutMsDefault;
}

/** For a server other than the one that the task names. Any other header may contain a secret. */
function plainHeaders({ accept = "", "content-type": type = "" }: Request["headers"]): Request["headers"] {
  return { accept, "content-type": type };
}

function reasonOf(error: unknown): string {
  const { code, message } = toError(error) as Error & { code?: string };
  if (code === "UND_ERR_HEADERS_TIMEOUT" || code === "UND_ERR_BODY_TIMEOUT") return "Read timed out";
  if (code === "ECONNREFUSED") return "Connection refused";
  return message;
}

function failed(why: string, cause?: unknown): LaneFailure {
  const output = JSON.stringify({ response: why });
  return new LaneFailure({ error: `Failed to invoke HTTP task due to: ${why}`, retryable: true, output }, { cause });
}

function objectIn(value: Json): JsonObject {
  return isObject(value) ? (value as JsonObject) : {};
}
