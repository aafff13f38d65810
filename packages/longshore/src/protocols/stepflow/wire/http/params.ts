// Checks the parameters of the runtime's requests. An error names the field and what is expected (-32602).

import { isObject, type Json, type JsonObject } from "../../../../core/json/json.ts";
import { shown, withoutEndSlashes } from "../../../../core/text.ts";
import { type Observability, observabilityKeys } from "../observability.ts";
import { RpcError } from "../rpc-error.ts";

/** The current protocol version of both sides. */
export const protocolVersion = 1;

const versionMax = 2 ** 32 - 1;

export interface InitializeParams {
  readonly version: number;
  /** True when the runtime uses dialect B: camelCase, blobs over HTTP. */
  readonly camelCase: boolean;
  readonly blobApiUrl: string | undefined;
  readonly blobThreshold: number | undefined;
}

export function initializeParams(params: JsonObject): InitializeParams {
  const camelCase = params.runtimeProtocolVersion !== undefined || params.capabilities !== undefined;
  const field = params.runtimeProtocolVersion !== undefined ? "runtimeProtocolVersion" : "runtime_protocol_version";
  const version = params[field];
  if (!isWhole(version, 0, versionMax)) throw wrong(field, version, "a whole number, such as 1");
  observabilityIn(params);
  const capabilities = objectIn(params, "capabilities");
  const { blobApiUrl, blobThreshold } = capabilities;
  if (!isAbsent(blobApiUrl) && (typeof blobApiUrl !== "string" || !/^https?:\/\//.test(blobApiUrl) || !URL.canParse(blobApiUrl))) {
    throw wrong("capabilities.blobApiUrl", blobApiUrl, "a URL such as http://localhost:7837/api/v1/blobs");
  }
  if (!isAbsent(blobThreshold) && !isWhole(blobThreshold, 0, Number.MAX_SAFE_INTEGER)) {
    throw wrong("capabilities.blobThreshold", blobThreshold, "a number of bytes");
  }
  return {
    version,
    camelCase,
    blobApiUrl: typeof blobApiUrl === "string" ? withoutEndSlashes(blobApiUrl) : undefined,
    blobThreshold: typeof blobThreshold === "number" ? blobThreshold : undefined,
  };
}

export function componentIn(params: JsonObject): string {
  const { component } = params;
  if (typeof component === "string" && component !== "") return component;
  throw wrong("component", component, "the path of a component, such as /greet");
}

export interface ExecuteParams {
  readonly component: string;
  readonly input: Json;
  readonly attempt: number;
  readonly observability: Observability;
}

export function executeParams(params: JsonObject): ExecuteParams {
  const component = componentIn(params);
  const { input, attempt = 1 } = params;
  if (input === undefined) throw wrong("input", input, "the component's input");
  if (!isWhole(attempt, 1, versionMax)) throw wrong("attempt", attempt, "a whole number from 1");
  return { component, input, attempt, observability: observabilityIn(params) };
}

export function inputSchemaIn(params: JsonObject): void {
  const { input_schema: schema } = params;
  if (!isAbsent(schema) && !isObject(schema)) throw wrong("input_schema", schema, "a JSON Schema");
}

function observabilityIn(params: JsonObject): Observability {
  const given = objectIn(params, "observability");
  const observability: { -readonly [Name in keyof Observability]: string } = {};
  for (const [name, key] of Object.entries(observabilityKeys) as [keyof Observability, string][]) {
    const value = given[key];
    if (isAbsent(value)) continue;
    if (typeof value !== "string") throw wrong(`observability.${key}`, value, "a text");
    observability[name] = value;
  }
  return observability;
}

function objectIn(params: JsonObject, field: string): JsonObject {
  const value = params[field];
  if (isAbsent(value)) return {};
  if (!isObject(value)) throw wrong(field, value, "an object");
  return value as JsonObject;
}

/** The reference writes null for absent fields. */
function isAbsent(value: Json | undefined): value is null | undefined {
  return value === undefined || value === null;
}

function isWhole(value: Json | undefined, min: number, max: number): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= min && value <= max;
}

function wrong(field: string, value: Json | undefined, expected: string): RpcError {
  return new RpcError("invalidParams", `params.${field} is ${shown(value)}, expected ${expected}.`, { field: `params.${field}`, expected });
}
