// Schemas as the SDK's programs write them: a list of fields, or a class whose fields are decorated.

import { draft07, type JsonSchema } from "../../../../core/schema/json-schema.ts";

/** A basic type of JSON Schema. */
export type JsonSchemaType = "string" | "number" | "integer" | "boolean" | "object" | "array" | "null";

/** The options of the decorator `@schemaField()`. */
export interface SchemaFieldOptions {
  /** Default: the type that the compiler recorded for the field, or the type of its first value. */
  type?: JsonSchemaType;
  required?: boolean;
  description?: string;
  items?: SchemaFieldOptions;
  properties?: Record<string, SchemaFieldOptions>;
  default?: unknown;
  enum?: unknown[];
}

/** One field for `jsonSchema()`; a field of type `array` has `items`, one of type `object` has `properties`. */
export interface FieldDescriptor extends SchemaFieldOptions {
  type: JsonSchemaType;
  items?: FieldDescriptor;
  properties?: Record<string, FieldDescriptor>;
}

/** The JSON Schema of an object, as `jsonSchema()` and `generateSchemaFromClass()` return it. */
export interface JsonSchemaOutput extends JsonSchema {
  $schema: string;
  type: "object";
  properties: Record<string, unknown>;
  required: string[];
}

/** `jsonSchema({ orderId: { type: "string", required: true } })`. */
export function jsonSchema(fields: Record<string, FieldDescriptor>): JsonSchemaOutput {
  return { $schema: draft07, ...objectOf(fields) };
}

function objectOf(fields: Record<string, SchemaFieldOptions>) {
  const entries = Object.entries(fields);
  return {
    type: "object" as const,
    properties: Object.fromEntries(entries.map(([name, field]) => [name, schemaOf(field)])),
    required: entries.filter(([, field]) => field.required === true).map(([name]) => name),
  };
}

function schemaOf({ required: _, items, properties, ...plain }: SchemaFieldOptions): JsonSchema {
  return {
    ...plain,
    ...(items === undefined ? {} : { items: schemaOf(items) }),
    ...(properties === undefined ? {} : objectOf(properties)),
  };
}

type Fields = Map<string, SchemaFieldOptions>;
type Class = new (...args: never[]) => unknown;

// Fields of the older decorators, by prototype: those run when the class is defined and get nothing else.
const declared = new WeakMap<object, Fields>();
// Fields of the newer decorators report themselves while an instance is made. They are collected here; undefined at all other times.
let listening: Fields | undefined;

/** The arguments of both generations of decorators. */
export interface FieldDecorator {
  <This, Value>(target: undefined, context: ClassFieldDecoratorContext<This, Value>): (this: This, initial: Value) => Value;
  (target: object, key: string | symbol): void;
}

/** Decorates a field of a class that describes an input or an output. */
export function schemaField(options: SchemaFieldOptions = {}): FieldDecorator {
  const decorate = (target: object | undefined, place: string | symbol | { readonly name: string | symbol }): unknown => {
    if (typeof place === "object") {
      const { name } = place;
      return (initial: unknown) => {
        listening?.set(String(name), { ...withType(typeOfValue(initial)), ...options });
        return initial;
      };
    }
    const prototype = target as object;
    const fields = declared.get(prototype) ?? new Map();
    declared.set(prototype, fields.set(String(place), { ...withType(recordedType(prototype, place)), ...options }));
    return undefined;
  };
  return decorate as FieldDecorator;
}

/** The schema of a class with `@schemaField()`s, including those of the classes that it extends. Makes one instance of the class. */
export function generateSchemaFromClass(described: Class): JsonSchemaOutput {
  const fields: Fields = new Map();
  for (const prototype of lineage(described.prototype)) for (const [name, field] of declared.get(prototype) ?? []) fields.set(name, field);
  const before = listening;
  listening = fields;
  try {
    new (described as new () => unknown)();
  } catch {
    // The constructor throws without arguments. The class has reported its fields before the error, or has only fields of the older kind.
  } finally {
    listening = before;
  }
  return { $schema: draft07, ...objectOf(Object.fromEntries(fields)) };
}

/** The topmost class first. */
function lineage(prototype: object): object[] {
  const parent = Object.getPrototypeOf(prototype) as object | null;
  return parent === null || parent === Object.prototype ? [prototype] : [...lineage(parent), prototype];
}

function withType(type: JsonSchemaType | undefined): SchemaFieldOptions {
  return type === undefined ? {} : { type };
}

function typeOfValue(value: unknown): JsonSchemaType | undefined {
  if (Array.isArray(value)) return "array";
  const type = typeof value;
  return type === "string" || type === "number" || type === "boolean" || (type === "object" && value !== null) ? type : undefined;
}

/** The type that `emitDecoratorMetadata` recorded, if the package that stores it is loaded. */
function recordedType(target: object, key: string | symbol): JsonSchemaType | undefined {
  const read = (Reflect as { getMetadata?: (kind: string, target: object, key: string | symbol) => unknown }).getMetadata;
  const types = new Map<unknown, JsonSchemaType>([
    [String, "string"],
    [Number, "number"],
    [Boolean, "boolean"],
    [Array, "array"],
    [Object, "object"],
  ]);
  return types.get(read?.("design:type", target, key));
}
