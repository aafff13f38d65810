// One operation of our own API: a route with its request and its responses. The same description validates requests and becomes the OpenAPI
// document, so the two cannot differ.

import type { z } from "zod";
import type { Action } from "../../../core/actions.ts";
import { LongshoreError } from "../../../core/errors.ts";
import { jsonDepthMax } from "../../../core/json/json.ts";
import { writeExact } from "../../../core/json/json-exact.ts";
import { type JsonPath, pathText } from "../../../core/json/json-position.ts";
import type { LongBytes } from "../../../core/long-bytes.ts";
import type { HttpReply, HttpRequest, Route } from "../../../net/http/http.ts";
import { problemReply } from "../../../net/http/problem.ts";
import { faultOf, isTooDeep, type JsonBody, jsonOf } from "../../../net/http/request-json.ts";
import { apiPrefix } from "../wire/shapes.ts";

/** A response of an operation, for one status. */
export interface Answer {
  readonly description: string;
  /** The shape of a JSON response; absent when the response has no body or is not JSON. */
  readonly schema?: z.ZodType;
  /** Default: `application/json`. */
  readonly contentType?: string;
}

/** A request body that is not JSON, or has several shapes. */
export interface RawBody {
  readonly contentTypes: readonly string[];
  readonly description: string;
  /** The shape of the body when it is JSON. Only for the document. */
  readonly json?: z.ZodType;
}

export interface ReadRequest<Query, Body> {
  /** Path parameters. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly body: Body;
  readonly request: HttpRequest;
}

interface Description {
  readonly id: string;
  /** One line for lists. */
  readonly summary: string;
  readonly tag: string;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType | RawBody;
  readonly answers: Readonly<Record<number, Answer>>;
}

export interface Operation extends Route {
  readonly description: Description;
}

export interface OperationSpec<Query extends z.ZodObject, Body extends z.ZodType> {
  readonly id: string;
  readonly summary: string;
  readonly tag: string;
  readonly method: Route["method"];
  /** Below the prefix of the API; with `root`, at the top. */
  readonly path: string;
  readonly root?: boolean;
  readonly action: Action;
  /** A page for people: see `Route`. */
  readonly page?: true;
  readonly query?: Query;
  readonly body?: Body;
  readonly openEnded?: boolean;
  /** Any node of a cluster may perform it: see `Route`. */
  readonly stored?: true;
  readonly answers: Readonly<Record<number, Answer>>;
  handle(request: ReadRequest<z.output<Query>, z.output<Body>>): HttpReply | Promise<HttpReply>;
}

/** An operation whose body, if it has one, is JSON of one shape. */
export function operation<Query extends z.ZodObject = z.ZodObject<Record<never, never>>, Body extends z.ZodType = z.ZodUndefined>(
  spec: OperationSpec<Query, Body>,
): Operation {
  const { query, body } = spec;
  return {
    ...described(spec),
    body: body === undefined ? "none" : "text",
    handle: (request) =>
      guarded(() =>
        spec.handle({
          params: request.params,
          query: (query === undefined ? {} : checked(query, queryObject(request.query), "query")) as z.output<Query>,
          body: (body === undefined ? undefined : checked(body, parseJson(request), "")) as z.output<Body>,
          request,
        }),
      ),
  };
}

/** An operation that reads its body itself: as text of several types, or as a stream. */
export function rawOperation(
  spec: Omit<OperationSpec<z.ZodObject, z.ZodType>, "body" | "handle"> & {
    readonly body: RawBody & { readonly read: "text" | "stream" };
    readonly bodyMax?: number;
    handle(request: HttpRequest, query: Record<string, unknown>): HttpReply | Promise<HttpReply>;
  },
): Operation {
  const { query } = spec;
  return {
    ...described(spec),
    body: spec.body.read,
    bodyMax: spec.bodyMax,
    handle: (request) =>
      guarded(() => spec.handle(request, query === undefined ? {} : checked(query, queryObject(request.query), "query"))),
  };
}

function described(spec: Omit<OperationSpec<z.ZodObject, z.ZodType>, "body" | "handle"> & { body?: Description["body"] }) {
  const { id, summary, tag, method, path, root, action, page, openEnded, stored, query, body, answers } = spec;
  return {
    method,
    path: root ? path : apiPrefix + path,
    action,
    page,
    openEnded,
    stored,
    description: { id, summary, tag, query, body, answers },
  };
}

/** Turns a conflict into a response of this API; the listener explains any other error. */
async function guarded(work: () => HttpReply | Promise<HttpReply>): Promise<HttpReply> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof LongshoreError) || error.code !== "LONGSHORE_CONFLICT") throw error;
    return problemReply(409, { code: error.code, message: error.message, ...error.detail });
  }
}

/** Repeated parameters stay lists, so that a schema for a single value refuses them. */
function queryObject(query: URLSearchParams): Record<string, string | string[]> {
  const values: Record<string, string | string[]> = {};
  for (const name of new Set(query.keys())) {
    const all = query.getAll(name);
    values[name] = all.length === 1 ? (all[0] as string) : all;
  }
  return values;
}

export function parseJson(body: JsonBody): unknown {
  const { text } = body;
  if (isTooDeep(body)) throw badInput(`The body is nested deeper than ${jsonDepthMax} levels.`, "", `at most ${jsonDepthMax} levels`);
  try {
    return text === "" ? {} : jsonOf(body);
  } catch (cause) {
    const { message, path: field, line, column } = faultOf(body) ?? { message: (cause as Error).message, path: "", line: 1, column: 1 };
    throw new LongshoreError("LONGSHORE_BAD_INPUT", `The body is not JSON: ${message}.`, {
      cause,
      detail: { field, expected: "JSON", line, column },
    });
  }
}

/** The value after parsing. Throws LONGSHORE_BAD_INPUT for the first mistake; `where` is put before its path. */
export function checked<Schema extends z.ZodType>(schema: Schema, value: unknown, where: string): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const unknown = issue?.code === "unrecognized_keys" ? issue.keys[0] : undefined;
  const field = pathText([where, ...((issue?.path ?? []) as JsonPath), unknown ?? ""].filter((part) => part !== ""));
  const message =
    unknown === undefined ? `${field === "" ? "The body" : field}: ${issue?.message ?? "not valid"}.` : `There is no field ${field}.`;
  throw badInput(message, field, expectedOf(schema, issue));
}

/** The description of a schema says what it expects. Without one, zod's text is used; for an unknown field, the list of known fields. */
function expectedOf(schema: z.ZodType, issue: z.core.$ZodIssue | undefined): string {
  let at: Described | undefined = schema as Described;
  for (const part of issue?.path ?? []) at = at?.shape?.[String(part)] ?? at?.element;
  if (issue?.code === "unrecognized_keys" && at?.shape !== undefined) return `one of ${Object.keys(at.shape).join(", ")}`;
  return (issue?.path.length === 0 ? undefined : at?.description) ?? issue?.message ?? "another value";
}

interface Described {
  readonly shape?: Readonly<Record<string, Described>>;
  readonly element?: Described;
  readonly description?: string;
}

export function badInput(message: string, field: string, expected: string): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_INPUT", message, { detail: { field, expected } });
}

export function jsonText(status: number, body: string | LongBytes): HttpReply {
  return { status, headers: { "content-type": "application/json" }, body };
}

export function json(status: number, body: unknown, headers?: Readonly<Record<string, string>>): HttpReply {
  return { status, headers: { "content-type": "application/json", ...headers }, body: writeExact(body) };
}
