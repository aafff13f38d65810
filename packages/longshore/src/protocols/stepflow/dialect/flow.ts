// Parses a flow document into the types of this folder. A document that is not a flow is refused. Mistakes inside a flow are left to
// diagnose.ts, which can report all of them at once.

import { LongshoreError } from "../../../core/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";
import { type JsonPath, pathText } from "../../../core/json/json-position.ts";
import { atOnce, mapInSlices, type Sliced } from "../../../core/slices/slice-work.ts";
import { type Expression, type ExpressionFault, nothing, readExpression } from "./expression.ts";

export interface Flow {
  readonly name: string | null;
  readonly description: string | null;
  readonly version: string | null;
  readonly schemas: Schemas;
  readonly steps: readonly Step[];
  readonly output: Expression;
  readonly examples: readonly Example[];
  /** Invalid expressions. */
  readonly faults: readonly ExpressionFault[];
}

export interface Step {
  readonly id: string;
  readonly component: string;
  readonly input: Expression;
  readonly onError: OnError;
  readonly mustExecute: boolean;
}

export type OnError =
  | { readonly action: "fail" }
  | { readonly action: "useDefault"; readonly value: Json }
  | { readonly action: "retry"; readonly retries: number };

/** JSON Schemas; null where there is none. Their references point to `defs`. */
export interface Schemas {
  readonly input: Json;
  readonly output: Json;
  readonly variables: Json;
  readonly steps: { readonly [step: string]: Json };
  readonly defs: JsonObject;
}

/** An example of an input, for tests or to show. */
export interface Example {
  readonly name: string;
  readonly description: string | null;
  readonly input: Json;
  /** The path of the example in the document. */
  readonly path: JsonPath;
}

/** Makes the error that refuses the value at `path`. */
export type Refuse = (path: JsonPath, message: string, expected: string) => Error;

/** The refusal for flows whose source text is not available. */
export const refuse: Refuse = (path, message, expected) =>
  new LongshoreError("LONGSHORE_BAD_DEFINITION", message, { detail: { field: pathText(path), expected } });

/** As in the reference. */
const retriesDefault = 3;
/** A larger number is as good as an endless loop. */
const retriesMax = 1_000_000;
/** Ids are used in URLs and in every record. */
const idCharsMax = 256;
const componentCharsMax = 1_024;
const nameCharsMax = 1_000;

/** Throws the error of `refuse` for the first reason why the document is not a flow. */
export function readFlow(document: Json, refused: Refuse = refuse): Flow {
  return atOnce(readInSlices(document, refused));
}

export function* readInSlices(document: Json, refused: Refuse): Sliced<Flow> {
  if (!isObject(document)) throw refused([], "A flow is an object.", "an object with steps and output");
  const source = document as JsonObject;
  const faults: ExpressionFault[] = [];
  const given = listIn(source, "steps", [], refused);
  const steps = yield* mapInSlices(given, (step, index) => readStep(step, ["steps", index], faults, refused));
  yield;
  return {
    name: textIn(source, "name", [], refused, nameCharsMax),
    description: textIn(source, "description", [], refused),
    version: textIn(source, "version", [], refused),
    schemas: readSchemas(source.schemas ?? null, refused),
    steps,
    output: Object.hasOwn(source, "output") ? readExpression(source.output as Json, ["output"], faults) : nothing,
    examples: [...readExamples(source, ["examples"], refused), ...readCases(source, refused)],
    faults,
  };
}

function readStep(value: Json, at: JsonPath, faults: ExpressionFault[], refused: Refuse): Step {
  if (!isObject(value)) throw refused(at, "A step is an object.", "an object with id, component and input");
  const step = value as JsonObject;
  const id = textIn(step, "id", at, refused, idCharsMax);
  if (id === null) throw refused(at, "The step has no `id`.", "id: a text that no other step has");
  const component = textIn(step, "component", at, refused, componentCharsMax);
  if (component === null) throw refused(at, "The step has no `component`.", "component: a path such as /python/udf");
  const { mustExecute = false } = step;
  if (typeof mustExecute !== "boolean") throw refused([...at, "mustExecute"], "`mustExecute` is neither true nor false.", "true or false");
  return {
    id,
    component,
    input: Object.hasOwn(step, "input") ? readExpression(step.input as Json, [...at, "input"], faults) : nothing,
    onError: readOnError(step.onError ?? null, [...at, "onError"], refused),
    mustExecute,
  };
}

function readOnError(value: Json, at: JsonPath, refused: Refuse): OnError {
  if (value === null) return { action: "fail" };
  if (!isObject(value)) throw refused(at, "`onError` is not an object.", "{action: fail}, {action: useDefault} or {action: retry}");
  const { action } = value;
  if (action === "fail") return { action };
  if (action === "useDefault") return { action, value: (value.defaultValue ?? null) as Json };
  if (action !== "retry") throw refused([...at, "action"], `There is no action ${JSON.stringify(action)}.`, "fail, useDefault or retry");
  const retries = value.maxRetries ?? retriesDefault;
  const fits = typeof retries === "number" && Number.isInteger(retries) && retries >= 0 && retries <= retriesMax;
  if (!fits) throw refused([...at, "maxRetries"], `maxRetries is ${JSON.stringify(retries)}.`, `a whole number from 0 to ${retriesMax}`);
  return { action, retries };
}

/** One JSON Schema for everything: input, output, variables and steps are its properties. */
function readSchemas(value: Json, refused: Refuse): Schemas {
  const at = ["schemas"];
  if (value === null) return { input: null, output: null, variables: null, steps: {}, defs: {} };
  const expected = "{type: object, properties: {input, output, variables, steps}}";
  if (!isObject(value)) throw refused(at, "`schemas` is not an object.", expected);
  const { type = "object", properties = {} } = value;
  const flat = Object.keys(value).filter((key) => ["input", "output", "variables", "steps"].includes(key));
  if (flat.length > 0) throw refused([...at, flat[0] as string], "`schemas` is a JSON Schema, not a map of schemas.", expected);
  if (type !== "object") throw refused([...at, "type"], `The type is ${JSON.stringify(type)}.`, "object");
  if (!isObject(properties)) throw refused([...at, "properties"], "`properties` is not an object.", expected);
  const given = properties as JsonObject;
  const steps = isObject(given.steps) ? ((given.steps as JsonObject).properties ?? {}) : {};
  if (!isObject(steps)) throw refused([...at, "properties", "steps", "properties"], "This is not an object.", "schemas by step id");
  const defs = isObject(value.$defs) ? (value.$defs as JsonObject) : {};
  const { input = null, output = null, variables = null } = given;
  return { input, output, variables, steps: steps as JsonObject, defs };
}

function readExamples(source: JsonObject, at: JsonPath, refused: Refuse): Example[] {
  const key = at.at(-1) as string;
  return listIn(source, key, at.slice(0, -1), refused).map((item, index) => {
    const path = [...at, index];
    if (!isObject(item)) throw refused(path, "An example is an object.", "an object with name and input");
    const name = textIn(item as JsonObject, "name", path, refused) ?? `${key} ${index + 1}`;
    const description = textIn(item as JsonObject, "description", path, refused);
    return { name, description, input: (item.input ?? null) as Json, path };
  });
}

/** Test cases are examples too. */
function readCases(source: JsonObject, refused: Refuse): Example[] {
  const { test = null } = source;
  if (test === null) return [];
  if (!isObject(test)) throw refused(["test"], "`test` is not an object.", "an object with cases");
  return readExamples(test as JsonObject, ["test", "cases"], refused);
}

function listIn(source: JsonObject, key: string, at: JsonPath, refused: Refuse): readonly Json[] {
  const value = source[key] ?? [];
  if (!Array.isArray(value)) throw refused([...at, key], `\`${key}\` is not a list.`, "a list");
  return value;
}

function textIn(source: JsonObject, key: string, at: JsonPath, refused: Refuse, charsMax = 1_000_000): string | null {
  const value = source[key] ?? null;
  if (value === null) return null;
  if (typeof value !== "string") throw refused([...at, key], `\`${key}\` is not a text.`, "a text");
  if (value.length > charsMax) throw refused([...at, key], `\`${key}\` has ${value.length} characters.`, `at most ${charsMax}`);
  if (value.includes("\u0000")) throw refused([...at, key], `\`${key}\` has a NUL character.`, "a text without NUL");
  return value;
}
