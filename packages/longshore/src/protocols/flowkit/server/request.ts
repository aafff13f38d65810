// Reads FlowKit's HTTP requests. An error names the field as it was sent, and what is expected.

import { setImmediate } from "node:timers/promises";
import { LongshoreError } from "../../../core/errors.ts";
import { isObject, type Json, type JsonObject, jsonDepthMax } from "../../../core/json/json.ts";
import { writeExact } from "../../../core/json/json-exact.ts";
import { JsonScan } from "../../../core/json/json-scan.ts";
import { parseLarge, sliceChars } from "../../../core/json/json-slices.ts";
import { shown } from "../../../core/text.ts";
import type { HttpReply, HttpRequest } from "../../../net/http/http.ts";
import { faultOf, isTooDeep, type JsonBody, jsonOf } from "../../../net/http/request-json.ts";

export function badField(field: string, value: unknown, expected: string): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_INPUT", `${field} is ${shown(value)}, expected ${expected}.`, { detail: { field, expected } });
}

/** The body as an object; `{}` for an empty body. */
export function bodyOf(request: HttpRequest): JsonObject {
  return request.text.trim() === "" ? {} : objectOfBody(request, "The body");
}

/** The lines of a body of JSON lines; a final newline is optional. Returns at most one line more than `max`, which the caller refuses. */
export function linesOf({ text }: HttpRequest, max: number): string[] {
  return (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n", max + 1);
}

/** Maximum number of values in one line: parsing them takes about 20 ms. */
const lineValuesMax = 131_072;

/**
 * Throws for the first text that is not a JSON object. Long lists are checked in slices, so that other requests are answered in between.
 */
export async function checkObjects(texts: readonly string[], what: (at: number) => string): Promise<void> {
  let left = sliceChars;
  for (const [at, text] of texts.entries()) {
    left -= text.length;
    if (left < 0) {
      await setImmediate();
      left = sliceChars - text.length;
    }
    if (text.length <= sliceChars) objectOf(text, what(at));
    else {
      refuseCostly(text, what(at));
      objectOfBody({ text, parsed: await parseLarge(text) }, what(at));
    }
  }
}

function refuseCostly(text: string, what: string): void {
  const scan = new JsonScan();
  scan.push(Buffer.from(text));
  if (scan.values <= lineValuesMax) return;
  const expected = `at most ${lineValuesMax} values`;
  throw new LongshoreError("LONGSHORE_BAD_INPUT", `${what} holds ${scan.values} JSON values and names, expected ${expected}.`, {
    detail: { expected },
  });
}

/** `what` begins the error message. */
export function objectOf(text: string, what: string): JsonObject {
  return objectOfBody({ text, parsed: undefined }, what);
}

function objectOfBody(body: JsonBody, what: string): JsonObject {
  if (isTooDeep(body)) {
    const expected = `at most ${jsonDepthMax} levels`;
    throw new LongshoreError("LONGSHORE_BAD_INPUT", `${what} nests deeper than ${jsonDepthMax} levels.`, { detail: { expected } });
  }
  let value: Json;
  try {
    value = jsonOf(body) as Json;
  } catch (cause) {
    const { message, line, column } = faultOf(body) ?? { message: (cause as Error).message, line: 1, column: 1 };
    const detail = { expected: "JSON", line, column };
    throw new LongshoreError("LONGSHORE_BAD_INPUT", `${what} is not JSON: ${message} at line ${line} column ${column}.`, {
      cause,
      detail,
    });
  }
  if (isObject(value)) return value as JsonObject;
  throw badField(what, value, "an object");
}

export function textIn(object: JsonObject, field: string, where = ""): string {
  const value = object[field];
  if (typeof value === "string" && value !== "") return value;
  throw badField(where + field, value, "a text that is not empty");
}

/** An integer from `min` to `max`; `fallback` when it is absent or null. */
export function wholeIn(
  object: JsonObject,
  field: string,
  { min = 0, max = Number.MAX_SAFE_INTEGER, fallback, where = "" }: WholeRule = {},
): number {
  const value = object[field] ?? fallback;
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= min && value <= max) return value;
  throw badField(
    where + field,
    value,
    max === Number.MAX_SAFE_INTEGER ? `a whole number of at least ${min}` : `a whole number from ${min} to ${max}`,
  );
}

export interface WholeRule {
  readonly min?: number;
  readonly max?: number;
  readonly fallback?: number;
  /** The text before the field's name. */
  readonly where?: string;
}

/** An object; `{}` when it is absent or null. */
export function objectIn(object: JsonObject, field: string, where = ""): JsonObject {
  const value = object[field] ?? {};
  if (isObject(value)) return value as JsonObject;
  throw badField(where + field, value, "an object");
}

export function listIn(object: JsonObject, field: string, lengthMax: number): JsonObject[] {
  const list = anyListIn(object, field, lengthMax);
  list.forEach((member, at) => {
    if (!isObject(member)) throw badField(`${field}[${at}]`, member, "an object");
  });
  return list as JsonObject[];
}

export function textsIn(object: JsonObject, field: string, lengthMax: number): string[] {
  const list = anyListIn(object, field, lengthMax);
  list.forEach((member, at) => {
    if (typeof member !== "string" || member === "") throw badField(`${field}[${at}]`, member, "a text that is not empty");
  });
  return list as string[];
}

function anyListIn(object: JsonObject, field: string, lengthMax: number): Json[] {
  const value = object[field];
  if (!Array.isArray(value)) throw badField(field, value, "a list");
  if (value.length <= lengthMax) return value;
  const expected = `at most ${lengthMax} of them`;
  throw new LongshoreError("LONGSHORE_BAD_INPUT", `${field} has ${value.length} members, expected ${expected}.`, {
    detail: { field, expected },
  });
}

export function queryText({ query }: HttpRequest, field: string): string {
  const value = query.get(field);
  if (value !== null && value !== "") return value;
  throw badField(field, value ?? undefined, "a text that is not empty, in the query");
}

export function queryWhole(request: HttpRequest, field: string, rule: WholeRule): number {
  const text = request.query.get(field);
  if (text !== null && !/^\d{1,16}$/.test(text)) throw badField(field, text, "a whole number");
  return wholeIn(text === null ? {} : { [field]: Number(text) }, field, rule);
}

export function jsonReply(value: unknown, status = 200): HttpReply {
  return { status, headers: { "content-type": "application/json" }, body: typeof value === "string" ? value : writeExact(value) };
}
