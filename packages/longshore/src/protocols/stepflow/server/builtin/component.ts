// The interface of a built-in component, and helpers that read its input.

import { isObject, type Json, type JsonObject } from "../../../../core/json/json.ts";
import { kindOf, shown } from "../../../../core/text.ts";
import { type ComponentWork, StepFailure } from "../lane.ts";

export interface Component {
  readonly path: string;
  readonly description: string;
  /** JSON Schemas, as discovery shows them. */
  readonly inputSchema: JsonObject;
  readonly outputSchema: JsonObject;
  perform(call: ComponentWork): Json | Promise<Json>;
}

/** The input as an object; every component but `noop` requires one. */
export function objectIn(call: ComponentWork): JsonObject {
  if (isObject(call.input)) return call.input as JsonObject;
  throw invalid(call, `the input is ${kindOf(call.input)}, expected an object`);
}

/** A required text. */
export function textIn(call: ComponentWork, field: string): string {
  const value = optionalText(call, field);
  if (value === undefined) throw invalid(call, `${field} is missing, expected a text`);
  return value;
}

/** Null means absent. */
export function optionalText(call: ComponentWork, field: string): string | undefined {
  const value = objectIn(call)[field] ?? undefined;
  if (value === undefined || typeof value === "string") return value;
  throw invalid(call, `${field} is ${kindOf(value)}, expected a text`);
}

/** Null means absent. */
export function optionalWhole(call: ComponentWork, field: string, min: number, max: number): number | undefined {
  const value = objectIn(call)[field] ?? undefined;
  if (value === undefined) return undefined;
  if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) return value;
  throw invalid(call, `${field} is ${shown(value)}, expected a whole number from ${min} to ${max}`);
}

export function listIn(call: ComponentWork, field: string): Json[] {
  const value = objectIn(call)[field];
  if (Array.isArray(value)) return value;
  throw invalid(call, `${field} is ${kindOf(value)}, expected a list`);
}

/** A required value of any type. */
export function valueIn(call: ComponentWork, field: string): Json {
  const value = objectIn(call)[field];
  if (value === undefined) throw invalid(call, `${field} is missing`);
  return value;
}

export function invalid(call: ComponentWork, message: string): StepFailure {
  return new StepFailure({ code: "INVALID_INPUT", message: `${call.component}: ${message}` });
}

export function failed(call: ComponentWork, message: string): StepFailure {
  return new StepFailure({ code: "COMPONENT_FAILED", message: `${call.component}: ${message}` });
}

/** An object schema with these properties. */
export function objectSchema(title: string, properties: JsonObject, required: readonly string[]): JsonObject {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title,
    type: "object",
    properties,
    ...(required.length === 0 ? {} : { required: [...required] }),
  };
}

/** The result of a flow or of a step. */
export const flowResultSchema: JsonObject = {
  oneOf: [
    { type: "object", properties: { outcome: { const: "success" }, result: {} }, required: ["outcome", "result"] },
    {
      type: "object",
      properties: {
        outcome: { const: "failed" },
        error: {
          type: "object",
          properties: { code: { type: "string" }, message: { type: "string" }, data: {} },
          required: ["code", "message"],
        },
      },
      required: ["outcome", "error"],
    },
  ],
};
