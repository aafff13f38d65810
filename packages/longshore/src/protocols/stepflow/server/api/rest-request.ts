// Reads REST requests: bodies that must be JSON objects, and query parameters. Names are camelCase; the schema's snake_case is accepted
// too. Enums are numbers or names. An error uses the name that the client sent.

import { isObject, type Json, type JsonObject, jsonDepthMax } from "../../../../core/json/json.ts";
import { kindOf, shown } from "../../../../core/text.ts";
import { GrpcCode, GrpcError } from "../../../../net/grpc/status.ts";
import type { HttpRequest } from "../../../../net/http/http.ts";
import { faultOf, isTooDeep, type JsonBody, jsonOf } from "../../../../net/http/request-json.ts";

export function bad(message: string): GrpcError {
  return new GrpcError(GrpcCode.INVALID_ARGUMENT, message);
}

/** The body as an object; `{}` for an empty body. */
export function objectIn(body: JsonBody): JsonObject {
  const { text } = body;
  if (text.trim() === "") return {};
  if (isTooDeep(body)) throw bad(`The body nests deeper than ${jsonDepthMax} levels, which is the limit.`);
  let value: Json;
  try {
    value = jsonOf(body) as Json;
  } catch {
    const fault = faultOf(body);
    throw bad(`The body is not JSON${fault === null ? "" : `: ${fault.message} at line ${fault.line} column ${fault.column}`}.`);
  }
  if (isObject(value)) return value as JsonObject;
  throw bad(`The body is ${kindOf(value)}, expected an object.`);
}

/** Null means absent. */
function member(object: JsonObject, name: string): Json | undefined {
  return object[name] ?? object[snake(name)] ?? undefined;
}

export function textOf(object: JsonObject, name: string): string | undefined {
  const value = member(object, name);
  if (value === undefined || typeof value === "string") return value;
  throw bad(`${name} is ${kindOf(value)}, expected a text`);
}

export function flagOf(object: JsonObject, name: string): boolean {
  const value = member(object, name);
  if (value === undefined || typeof value === "boolean") return value ?? false;
  throw bad(`${name} is ${kindOf(value)}, expected true or false`);
}

/** Integers may be texts, as protobuf's JSON writes large ones. */
export function wholeOf(object: JsonObject, name: string): number | undefined {
  const value = member(object, name);
  if (value === undefined) return undefined;
  const number = typeof value === "string" && /^\d{1,16}$/.test(value) ? Number(value) : value;
  if (typeof number === "number" && Number.isSafeInteger(number) && number >= 0) return number;
  throw bad(`${name} is ${shown(value)}, expected a whole number`);
}

export function listOf(object: JsonObject, name: string): Json[] {
  const value = member(object, name);
  if (value === undefined) return [];
  if (Array.isArray(value)) return value;
  throw bad(`${name} is ${kindOf(value)}, expected a list`);
}

export function mapOf(object: JsonObject, name: string): JsonObject | undefined {
  const value = member(object, name);
  if (value === undefined) return undefined;
  if (isObject(value)) return value as JsonObject;
  throw bad(`${name} is ${kindOf(value)}, expected an object`);
}

/** An empty value means absent. */
export function queryText(request: HttpRequest, name: string): string | undefined {
  return request.query.get(name) || request.query.get(snake(name)) || undefined;
}

export function queryWhole(request: HttpRequest, name: string): number | undefined {
  const text = queryText(request, name);
  if (text === undefined) return undefined;
  if (/^\d{1,16}$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text);
  throw bad(`The query parameter ${name} is ${JSON.stringify(text.slice(0, 100))}, expected a whole number.`);
}

export function queryFlag(request: HttpRequest, name: string): boolean {
  const text = queryText(request, name);
  if (text === undefined || text === "false" || text === "0") return false;
  if (text === "true" || text === "1") return true;
  throw bad(`The query parameter ${name} is ${JSON.stringify(text.slice(0, 100))}, expected true or false.`);
}

type Enum = { readonly [name: string]: number };

/** An enum's number, its short name or its full name: 2, COMPLETED, EXECUTION_STATUS_COMPLETED. */
export function queryEnum(request: HttpRequest, name: string, values: Enum, prefix: string): number | undefined {
  const text = queryText(request, name);
  return text === undefined ? undefined : enumOf(text, name, values, prefix);
}

/** The parameter may be repeated, or have several values separated by commas. */
export function queryEnums(request: HttpRequest, name: string, values: Enum, prefix: string): Set<number> {
  const texts = [...request.query.getAll(name), ...request.query.getAll(snake(name))].flatMap((text) => text.split(","));
  return new Set(texts.filter((text) => text !== "").map((text) => enumOf(text, name, values, prefix)));
}

function enumOf(text: string, name: string, values: Enum, prefix: string): number {
  const short = text.startsWith(prefix) ? text.slice(prefix.length) : text;
  const found = /^\d+$/.test(text) ? Object.values(values).find((value) => value === Number(text)) : values[short];
  if (found !== undefined && (Object.hasOwn(values, short) || /^\d+$/.test(text))) return found;
  const known = Object.entries(values).map(([key, value]) => `${value} (${key})`);
  throw bad(`The query parameter ${name} is ${JSON.stringify(text.slice(0, 100))}, expected one of ${known.join(", ")}.`);
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
