// Reading requests: bodies that must be JSON, and query parameters with their defaults. Mistakes are reported with their name.

import { isObject, type JsonObject, jsonDepthMax } from "../../../core/json/json.ts";
import { ExactNumber } from "../../../core/json/json-exact.ts";
import { kindOf } from "../../../core/text.ts";
import type { HttpRequest } from "../../../net/http/http.ts";
import { faultOf, isTooDeep, jsonOf } from "../../../net/http/request-json.ts";
import { badRequest, invalid } from "./replies.ts";

export function bodyOf(request: HttpRequest): unknown {
  if (request.text === "") return undefined;
  let value: unknown;
  try {
    value = jsonOf(request);
  } catch {
    const fault = faultOf(request);
    const where = fault === null ? "" : `: ${fault.message} at line ${fault.line} column ${fault.column}`;
    throw badRequest(`JSON parse error${where}`);
  }
  if (isTooDeep(request)) throw badRequest(`The body is nested deeper than ${jsonDepthMax} levels, which is the limit.`);
  return value;
}

/** An object; `{}` for an empty body. `what` names it in the error. */
export function objectOf(request: HttpRequest, what: string): JsonObject {
  const value = bodyOf(request) ?? {};
  if (isObject(value)) return value as JsonObject;
  throw badRequest(`JSON parse error: ${what} is ${kindOf(value)}, expected an object`);
}

export function textIn(object: JsonObject, field: string): string | undefined {
  const value = object[field];
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "boolean" || value instanceof ExactNumber) return String(value);
  throw badRequest(`JSON parse error: ${field} is ${kindOf(value)}, expected a text`);
}

/**
 * Twice the length of the columns in the reference's databases. It is also the maximum length of one path segment, and paths contain the
 * ids of runs and the names of schemas.
 */
const idCharsMax = 512;

/** An id or a name that a client chooses. They are stored as keys, and lists repeat them. `path` is the field's name in the error. */
export function checkedId<Given extends string | undefined>(id: Given, path: string): Given {
  if (id === undefined || id.length <= idCharsMax) return id;
  throw invalid([{ path, message: `has ${id.length} characters, at most ${idCharsMax} are allowed` }]);
}

export function numberIn(object: JsonObject, field: string): number | undefined {
  const value = object[field];
  if (value === undefined || value === null || value === "") return undefined;
  const number = typeof value === "string" || value instanceof ExactNumber ? Number(value) : value;
  if (typeof number === "number" && Number.isFinite(number)) return Math.trunc(number);
  throw badRequest(`JSON parse error: ${field} is ${JSON.stringify(value)}, expected a number`);
}

export function mapIn(object: JsonObject, field: string): JsonObject | undefined {
  const value = object[field];
  if (value === undefined || value === null) return undefined;
  if (isObject(value)) return value as JsonObject;
  throw badRequest(`JSON parse error: ${field} is ${kindOf(value)}, expected an object`);
}

export function flagIn(object: JsonObject, field: string): boolean {
  const value = object[field];
  return value === true || value === "true";
}

/** A whole number in the query, in the forms that the real server reads: `7`, ` 7 `, `+7`, `007`, `0x7`. Empty means absent. */
export function wholeIn(request: HttpRequest, name: string, otherwise: number): number {
  const text = request.query.get(name);
  return text === null || text === "" ? otherwise : wholeOf(text, `The query parameter ${name}`);
}

/** `what` begins the error. */
export function wholeOf(text: string, what: string): number {
  const bare = text.trim();
  if (/^[+-]?\d{1,15}$/.test(bare)) return Number(bare);
  const [, sign, digits] = /^(-?)(?:0[xX]|#)([\da-fA-F]{1,12})$/.exec(bare) ?? [];
  if (digits !== undefined) return Number.parseInt(`${sign}${digits}`, 16);
  throw badRequest(`${what} is ${JSON.stringify(text.slice(0, 100))}, expected a whole number.`);
}

const flags = new Map([
  ...["true", "on", "yes", "1"].map((text) => [text, true] as const),
  ...["false", "off", "no", "0"].map((text) => [text, false] as const),
]);

/** A boolean in the query, in the forms that the real server reads: clients in Python and C# send `True`. Empty means absent. */
export function flagInQuery(request: HttpRequest, name: string, otherwise: boolean): boolean {
  const text = request.query.get(name);
  if (text === null || text === "") return otherwise;
  const flag = flags.get(text.trim().toLowerCase());
  if (flag !== undefined) return flag;
  throw badRequest(`The query parameter ${name} is ${JSON.stringify(text.slice(0, 100))}, expected true or false.`);
}

/** A list in the query: a parameter that is repeated, or one with commas. */
export function listInQuery(request: HttpRequest, name: string): string[] {
  return request.query.getAll(name).flatMap((each) => (each === "" ? [] : each.split(",").map((item) => item.trim())));
}

/** A required text in the query. */
export function neededInQuery(request: HttpRequest, name: string): string {
  const text = request.query.get(name);
  if (text === null || text === "") throw badRequest(`Required request parameter '${name}' is not present`);
  return text;
}

/** Undefined when it is absent or empty, which means the same on this wire. */
export function textInQuery(request: HttpRequest, name: string): string | undefined {
  return request.query.get(name) || undefined;
}

/** A list of ids, 1 to `max` of them. */
export function idsOf(request: HttpRequest, path: string, max: number): string[] {
  const value = bodyOf(request);
  if (!Array.isArray(value)) throw badRequest(`JSON parse error: the body is ${kindOf(value)}, expected a list of ids`);
  if (value.length === 0) throw invalid([{ path, message: "WorkflowIds list cannot be null." }]);
  if (value.length > max) {
    throw invalid([{ path, message: `Cannot process more than ${max} workflows. Please use multiple requests.` }]);
  }
  return value.map((id: unknown) => {
    if (typeof id === "object" && !(id instanceof ExactNumber))
      throw badRequest(`JSON parse error: an id is ${kindOf(id)}, expected a text`);
    return String(id);
  });
}
