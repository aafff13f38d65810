// How requests are refused, in the texts of the reference (README.md, "Refusals"): plain text, with the path to the value, what it was,
// what was expected, and line and column. This code runs only for requests that are refused.

import { findJsonFault, type JsonFault, type JsonPath, pathText, positionOf } from "../../../core/json/json-position.ts";
import type { HttpReply } from "../../../net/http/http.ts";

const textHeaders = { "content-type": "text/plain; charset=utf-8" } as const;

/** Thrown by the parsers, turned into its reply by the routes. */
export class Refused extends Error {
  readonly reply: HttpReply;

  constructor(status: 400 | 415 | 422, text: string) {
    super(text);
    this.reply = textReply(status, text);
  }
}

export function textReply(status: number, text: string): HttpReply {
  return { status, headers: textHeaders, body: text };
}

export const notJsonType = "Expected request with `Content-Type: application/json`";
export const tooLarge = "Failed to buffer the request body: length limit exceeded";

/** Refuses a text that is not JSON. `known` is its mistake, when the reader of long texts has already found it; otherwise it is searched for here. */
export function notJson(text: string, known?: JsonFault): Refused {
  const fault = known ?? findJsonFault(text);
  // Only when the scanner finds no mistake in a text that `JSON.parse` refuses.
  if (fault === null) return new Refused(400, "Failed to parse the request body as JSON: expected value at line 1 column 1");
  const where = fault.path === "" ? "" : `${fault.path}: `;
  return new Refused(
    400,
    `Failed to parse the request body as JSON: ${where}${fault.message} at line ${fault.line} column ${fault.column}`,
  );
}

/** Refuses a body that is JSON, but not what was expected. */
export function misshapen(text: string, path: JsonPath, problem: string): Refused {
  const { line, column } = positionOf(text, path);
  const where = path.length === 0 ? "" : `${pathText(path)}: `;
  return new Refused(422, `Failed to deserialize the JSON body into the target type: ${where}${problem} at line ${line} column ${column}`);
}

export function missing(text: string, path: JsonPath, field: string): Refused {
  return misshapen(text, path, `missing field \`${field}\``);
}

/** Refuses a field that is absent or has another type. `object` is the path of the object that should have it. */
export function wrongField(text: string, object: JsonPath, field: string, value: unknown, expected: string): Refused {
  return value === undefined ? missing(text, object, field) : wrongType(text, [...object, field], value, expected);
}

export function wrongType(text: string, path: JsonPath, value: unknown, expected: string): Refused {
  const kind = typeof value === "number" && Number.isInteger(value) && isCount(expected) ? "value" : "type";
  return misshapen(text, path, `invalid ${kind}: ${described(value)}, expected ${expected}`);
}

export function badQuery(name: string): Refused {
  return new Refused(400, `Failed to deserialize query string: ${name}: invalid digit found in string`);
}

/** Whether a whole number is expected. A whole number that is refused although one is expected is out of range: its value is wrong, not its type. */
function isCount(expected: string): boolean {
  return expected === "u64" || expected === "u32";
}

function described(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "sequence";
  if (typeof value === "string")
    return `string ${JSON.stringify(value.length > quoteCharsMax ? `${value.slice(0, quoteCharsMax)}...` : value)}`;
  if (typeof value === "boolean") return `boolean \`${value}\``;
  if (typeof value === "number") return Number.isInteger(value) ? `integer \`${value}\`` : `floating point \`${value}\``;
  return "map";
}

/** Maximum length of a wrong text that the error quotes. */
const quoteCharsMax = 200;
