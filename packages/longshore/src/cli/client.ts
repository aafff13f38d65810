// The HTTP client of the commands. For an unsuccessful response it throws an error that names what the user can do.
//
// It uses `node:http` and not the shared client (`net/http/send.ts`), because that one reads each response as a whole, which an event stream
// does not allow, and because loading undici costs each command 80 to 95 ms of CPU, where `node:http` costs 5 ms.

import { request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { type ErrorCode, errorCodes } from "../core/errors.ts";
import { parseExact, writeExact } from "../core/json/json-exact.ts";
import { type EventMessage, readEvents } from "../net/http/read-events.ts";
import { CommandFailure } from "./failure.ts";
import type { ConnectionOptions } from "./options.ts";

/** A list is several parameters of one name. */
export type Query = Readonly<Record<string, string | number | readonly string[] | undefined>>;

export interface Client {
  readonly url: string;
  get<Answer>(path: string, query?: Query): Promise<Answer>;
  /** With a `contentType`, the body is a text that is sent unchanged; otherwise it is sent as JSON. */
  post<Answer>(path: string, body?: unknown, options?: { contentType?: string; query?: Query }): Promise<Answer>;
  put<Answer>(path: string, body: unknown): Promise<Answer>;
  /** Null for an answer without content. */
  delete<Answer>(path: string): Promise<Answer | null>;
  /**
   * Server-sent events, from now on or after `lastEventId`. The iteration ends when the server ends the stream, and throws Unreachable when
   * the connection breaks.
   */
  events(path: string, options?: { query?: Query; lastEventId?: string; signal?: AbortSignal }): AsyncGenerator<EventMessage, void, void>;
}

const apiPrefix = "/api/longshore/v1";

/**
 * The server refused the request. `place` is the position of the mistake in the text that was sent: the message begins with it, as
 * `line:column: `.
 */
export class Refusal extends CommandFailure {
  readonly place: { readonly line: number; readonly column: number } | undefined;
  readonly status: number;

  constructor(problem: string, status: number, { place, code }: { place?: Refusal["place"]; code?: ErrorCode } = {}) {
    super(place === undefined ? problem : `${place.line}:${place.column}: ${problem}`, undefined, { code });
    this.status = status;
    this.place = place;
  }
}

/** No server responds at the address, or the connection broke. */
export class Unreachable extends CommandFailure {
  constructor(message: string, cause: Error) {
    super(message, undefined, { cause, code: "LONGSHORE_UNREACHABLE" });
  }
}

/** How long a connection may be silent. Event streams send heartbeats far more often. */
const silenceMsMax = 60_000;
const noContent = 204;
/** The limit for the quoted text of an error page that is not from a Longshore server. */
const problemCharsMax = 300;

export function connect({ on, token }: ConnectionOptions): Client {
  const base = parseUrl(on);
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };

  async function json<Answer>(
    method: string,
    path: string,
    query: Query,
    body?: string,
    contentType = "application/json",
  ): Promise<Answer> {
    const options: RequestOptions = { method, headers: { ...headers, ...(body === undefined ? {} : { "content-type": contentType }) } };
    const response = await send(base, path, query, options, body);
    const text = await readText(response, base);
    if (response.statusCode === noContent) return null as Answer;
    if (isSuccess(response)) return parseAnswer(text, base) as Answer;
    throw refusal(response.statusCode ?? 0, text, base, token);
  }

  return {
    url: base.origin,
    get: (path, query = {}) => json("GET", path, query),
    post: (path, body, { contentType, query = {} } = {}) =>
      json("POST", path, query, contentType === undefined ? writeExact(body ?? {}) : String(body), contentType),
    put: (path, body) => json("PUT", path, {}, writeExact(body)),
    delete: (path) => json("DELETE", path, {}),
    async *events(path, { query = {}, lastEventId, signal } = {}) {
      const resume = lastEventId === undefined ? {} : { "last-event-id": lastEventId };
      const options: RequestOptions = { headers: { ...headers, accept: "text/event-stream", ...resume }, signal };
      const response = await send(base, path, query, options);
      if (!isSuccess(response)) throw refusal(response.statusCode ?? 0, await readText(response, base), base, token);
      try {
        yield* readEvents(response);
      } catch (error) {
        throw unreachable(base, error as Error);
      } finally {
        response.destroy();
      }
    },
  };
}

function send(base: URL, path: string, query: Query, options: RequestOptions, body?: string): Promise<IncomingMessage> {
  const url = new URL(`${base.pathname.replace(/\/$/, "")}${apiPrefix}${path}`, base);
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue;
    for (const one of Array.isArray(value) ? value : [value]) url.searchParams.append(name, String(one));
  }
  const make = url.protocol === "https:" ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const request = make(url, { ...options, timeout: silenceMsMax, agent: false }, resolve);
    request.on("timeout", () => request.destroy(new Error(`no answer for ${silenceMsMax / 1_000} s`)));
    request.on("error", (error) => reject(unreachable(base, error)));
    request.end(body);
  });
}

async function readText(response: IncomingMessage, base: URL): Promise<string> {
  response.setEncoding("utf8");
  let text = "";
  try {
    for await (const chunk of response) text += chunk;
  } catch (error) {
    throw unreachable(base, error as Error);
  }
  return text;
}

function parseAnswer(text: string, base: URL): unknown {
  try {
    return parseExact(text);
  } catch (cause) {
    throw new CommandFailure(`the response of ${base.origin} is not JSON. Is that a Longshore server?`, undefined, { cause });
  }
}

function isSuccess(response: IncomingMessage): boolean {
  const status = response.statusCode ?? 0;
  return status >= 200 && status < 300;
}

function refusal(status: number, text: string, base: URL, token: string | undefined): CommandFailure {
  if (status === 401) {
    const message =
      token === undefined
        ? `${base.origin} requires a token. Give one with --token, or better in LONGSHORE_TOKEN.`
        : `${base.origin} does not know the token that was given. Check --token and LONGSHORE_TOKEN: --token is used when both are set.`;
    return new Refusal(message, status, { code: "LONGSHORE_UNAUTHORIZED" });
  }
  const problem = problemOf(text);
  if (problem === undefined) {
    return new CommandFailure(`${base.origin} answered ${status}: ${text.slice(0, problemCharsMax)}. Is that a Longshore server?`);
  }
  const { message, ...rest } = problem;
  return new Refusal(status === 403 ? `${message} Give a token that allows more.` : message, status, rest);
}

/** The error in the format of our API; undefined for any other format. */
function problemOf(text: string): { message: string; code?: ErrorCode; place?: Refusal["place"] } | undefined {
  try {
    const { error } = JSON.parse(text) as { error?: { message?: unknown; code?: unknown; line?: number; column?: number } };
    if (typeof error?.message !== "string") return undefined;
    const { message, line, column = 1 } = error;
    const code = errorCodes.find((known) => known === error.code);
    return { message, ...(code === undefined ? {} : { code }), ...(line === undefined ? {} : { place: { line, column } }) };
  } catch {
    // Not an error of our API; the caller quotes the text.
    return undefined;
  }
}

function unreachable(base: URL, cause: Error): Unreachable {
  const why = (cause as NodeJS.ErrnoException).code ?? cause.message;
  if (/CERT|ALTNAME|SIGNATURE/.test(why)) {
    return new Unreachable(
      `the certificate of ${base.origin} is not trusted (${why}). Name its file in NODE_EXTRA_CA_CERTS to trust it.`,
      cause,
    );
  }
  const message = `no server answers at ${base.origin} (${why}). Start one with \`longshore dev\`, or name its address with --on or LONGSHORE_URL.`;
  return new Unreachable(message, cause);
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === "http:" || url?.protocol === "https:") return url;
  throw new CommandFailure(`--on is ${JSON.stringify(text)}, expected a URL such as http://127.0.0.1:4500.`);
}
