// JSON-RPC 2.0 as Stepflow's HTTP transport uses it: one message per body, ids are strings or integers, parameters by name, no batches. The
// worker and the server both read and write messages here. wire/http/README.md has the rules.

import { deeperThan, isObject, type Json, type JsonObject, jsonDepthMax } from "../../../core/json/json.ts";
import { writeExact } from "../../../core/json/json-exact.ts";
import { shown } from "../../../core/text.ts";
import { RpcError } from "./rpc-error.ts";

export type RpcId = string | number;

export interface RpcErrorBody {
  readonly code: number;
  readonly message: string;
  readonly data?: Json;
}

export type RpcMessage =
  | { readonly kind: "request"; readonly id: RpcId; readonly method: string; readonly params: JsonObject }
  | { readonly kind: "notification"; readonly method: string; readonly params: JsonObject }
  | { readonly kind: "result"; readonly id: RpcId; readonly result: Json }
  | { readonly kind: "error"; readonly id: RpcId; readonly error: RpcErrorBody };

/**
 * Throws an RpcError, with the message's id if it could be read. `parse` decides about numbers: workers get plain numbers, the server keeps
 * all digits.
 */
export function parseRpc(text: string, parse: (text: string) => unknown = JSON.parse): RpcMessage {
  if (deeperThan(text)) throw new RpcError("parse", `The message is nested deeper than ${jsonDepthMax} levels.`);
  let value: unknown;
  try {
    value = parse(text);
  } catch (error) {
    throw new RpcError("parse", `The body is not JSON: ${(error as Error).message}`);
  }
  if (Array.isArray(value)) throw new RpcError("invalidRequest", "The body is a list, expected one message: there are no batches here.");
  if (!isObject(value)) throw new RpcError("invalidRequest", "The body is not an object, expected a JSON-RPC message.");
  const id = isId(value.id) ? value.id : undefined;
  try {
    return messageOf(value, id);
  } catch (error) {
    throw error instanceof RpcError && id !== undefined ? error.about(id) : error;
  }
}

function messageOf(value: { readonly [key: string]: unknown }, id: RpcId | undefined): RpcMessage {
  if (value.jsonrpc !== "2.0") throw invalid("jsonrpc", value.jsonrpc, '"2.0"');
  if (value.id !== undefined && id === undefined) throw invalid("id", value.id, "a text or a whole number below 2^53");
  if (value.method !== undefined) return callOf(value, id);
  const answers = ["result", "error"].filter((key) => value[key] !== undefined);
  if (answers.length !== 1) {
    throw new RpcError("invalidRequest", `The message has ${saying(answers)}, expected exactly one of method, result and error.`);
  }
  if (id === undefined) throw invalid("id", value.id, "the id of the request that is answered");
  if (answers[0] === "result") return { kind: "result", id, result: value.result as Json };
  return { kind: "error", id, error: errorOf(value.error) };
}

function saying(answers: readonly string[]): string {
  return answers.length === 0 ? "no method, result or error" : "both a result and an error";
}

function callOf({ method, params }: { readonly [key: string]: unknown }, id: RpcId | undefined): RpcMessage {
  if (typeof method !== "string") throw invalid("method", method, "a text");
  // `params` may be absent when there are none.
  if (params !== undefined && !isObject(params)) throw new RpcError("invalidParams", "params is not an object, expected fields by name.");
  const named = (params ?? {}) as JsonObject;
  return id === undefined ? { kind: "notification", method, params: named } : { kind: "request", id, method, params: named };
}

function errorOf(error: unknown): RpcErrorBody {
  if (!isObject(error) || !Number.isInteger(error.code) || typeof error.message !== "string") {
    throw invalid("error", error, "an object with a whole code and a message");
  }
  return { code: error.code as number, message: error.message, ...(error.data === undefined ? {} : { data: error.data as Json }) };
}

/** An integer that a double cannot represent would be answered with another id. */
function isId(id: unknown): id is RpcId {
  return typeof id === "string" || Number.isSafeInteger(id);
}

function invalid(field: string, value: unknown, expected: string): RpcError {
  return new RpcError("invalidRequest", `${field} is ${shown(value)}, expected ${expected}.`, { field, expected });
}

export function requestText(id: RpcId, method: string, params: JsonObject): string {
  return writeExact({ jsonrpc: "2.0", id, method, params });
}

export function notificationText(method: string, params: JsonObject): string {
  return writeExact({ jsonrpc: "2.0", method, params });
}

export function resultText(id: RpcId, result: Json): string {
  return writeExact({ jsonrpc: "2.0", id, result });
}

/** The id is `null` when the id of the message could not be read. */
export function errorText(id: RpcId | null, error: RpcErrorBody): string {
  return writeExact({ jsonrpc: "2.0", id, error });
}

/**
 * One server-sent event. The reference decodes each network chunk separately, and drops a chunk that ends inside a character. So the text
 * is ASCII only. It accepts only LF as line end, and reads the first line that begins with `data: `.
 */
export function eventText(json: string): string {
  return `data: ${asciiJson(json)}\n\n`;
}

/** The same JSON in ASCII. Other characters occur only inside strings, where `\\uXXXX` means the same. */
export function asciiJson(json: string): string {
  return json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
