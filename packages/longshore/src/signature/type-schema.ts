// Converts a TypeScript type to raw JSON Schema, which `publishedSchema` then converts to its final form. A type that contains itself
// becomes a definition; every other type is written where it is used.
//
// Input and output differ where JSON does: what a handler returns is written by `toJson` (a Map becomes an object, methods are left out);
// what it receives was parsed from JSON and is never a Map.

import type * as TypeScript from "typescript-6";
import type { JsonSchema } from "../core/schema/json-schema.ts";
import type { Compiler } from "./compiler.ts";

/** The limit of nesting. A generic that wraps itself nests without end. */
const depthMax = 50;

/** Why a type has no schema. `path` leads to the part that cannot be converted. */
export class Unconvertible extends Error {
  readonly path: string;

  constructor(path: string, why: string) {
    super(`${path === "" ? "it" : path} ${why}`);
    this.path = path;
  }
}

export interface TypeReader {
  readonly compiler: Compiler;
  readonly checker: TypeScript.TypeChecker;
  readonly side: "input" | "output";
  /** The position of the handler: types are resolved from there. */
  readonly at: TypeScript.Node;
}

/** The schema of `type`. Throws Unconvertible. */
export function typeSchema(reader: TypeReader, type: TypeScript.Type): JsonSchema {
  return new TypeSchema(reader).write(type);
}

class TypeSchema {
  readonly #reader: TypeReader;
  /** The object types that are being written, and the names of those that contain themselves. */
  readonly #open: TypeScript.Type[] = [];
  readonly #named = new Map<TypeScript.Type, string>();
  readonly #definitions: JsonSchema = {};
  readonly #path: string[] = [];
  /** The type of the whole document; undefined when it is a union. */
  #root: TypeScript.Type | undefined;

  constructor(reader: TypeReader) {
    this.#reader = reader;
  }

  write(type: TypeScript.Type): JsonSchema {
    this.#root = type.isUnion() ? undefined : type;
    const body = this.#schema(type);
    return this.#named.size === 0 ? body : { ...body, definitions: this.#definitions };
  }

  #schema(type: TypeScript.Type): JsonSchema {
    if (this.#path.length > depthMax) throw this.#refused(`is nested deeper than ${depthMax} levels`);
    if (type.isUnion() && !this.#has(type, "BooleanLike")) return this.#union(type.types);
    return this.#literal(type) ?? this.#primitive(type) ?? this.#object(type);
  }

  #has(type: TypeScript.Type, ...flags: (keyof typeof TypeScript.TypeFlags)[]): boolean {
    return flags.some((flag) => (type.flags & this.#reader.compiler.TypeFlags[flag]) !== 0);
  }

  #literal(type: TypeScript.Type): JsonSchema | undefined {
    if (type.isStringLiteral()) return { type: "string", const: type.value };
    if (type.isNumberLiteral()) return { type: "number", const: type.value };
    if (this.#has(type, "BooleanLiteral")) return { type: "boolean", const: this.#reader.checker.typeToString(type) === "true" };
    return undefined;
  }

  #primitive(type: TypeScript.Type): JsonSchema | undefined {
    // A type that cannot be found looks like `any`; a schema that accepts everything would hide the mistake.
    if ((type as { intrinsicName?: string }).intrinsicName === "error") throw this.#refused("has a type that cannot be found");
    if (this.#has(type, "Any", "Unknown")) return {};
    if (this.#has(type, "StringLike")) return { type: "string" };
    if (this.#has(type, "NumberLike")) return { type: "number" };
    if (this.#has(type, "BooleanLike")) return { type: "boolean" };
    if (this.#has(type, "Null", "Undefined", "Void")) return { type: "null" };
    if (this.#has(type, "NonPrimitive")) return { type: "object" };
    for (const flag of ["BigIntLike", "ESSymbolLike", "Never"] as const) {
      if (this.#has(type, flag)) throw this.#refused(`is a ${this.#reader.checker.typeToString(type)}, which JSON does not have`);
    }
    return undefined;
  }

  /** Literal texts and numbers become one enum, plain types one list of types, and only other types need `anyOf`. */
  #union(types: readonly TypeScript.Type[]): JsonSchema {
    const schemas = types.map((each) => this.#schema(each));
    const choices: JsonSchema[] = [];
    for (const type of ["string", "number"]) {
      const values = schemas.filter((schema) => schema.type === type && "const" in schema).map((schema) => schema.const);
      // Sorted, because the compiler's order depends on other files that it has read.
      if (values.length > 0) choices.push({ type, enum: values.sort() });
    }
    const booleans = schemas.filter((schema) => schema.type === "boolean" && "const" in schema);
    if (booleans.length === 1) choices.push(...booleans);
    const plain = schemas
      .filter((schema) => Object.keys(schema).length === 1 && typeof schema.type === "string")
      .map((schema) => schema.type);
    const names = [...new Set([...plain, ...(booleans.length === 2 ? ["boolean"] : [])])];
    if (names.length > 0) choices.push({ type: names.length === 1 ? names[0] : names });
    choices.push(
      ...schemas.filter((schema) => !("const" in schema) && !(Object.keys(schema).length === 1 && typeof schema.type === "string")),
    );
    return choices.length === 1 ? (choices[0] as JsonSchema) : { anyOf: choices };
  }

  #object(type: TypeScript.Type): JsonSchema {
    const { checker } = this.#reader;
    if (this.#has(type, "TypeParameter")) {
      const constraint = checker.getBaseConstraintOfType(type);
      if (constraint === undefined || constraint === type) throw this.#refused("has a type that is only known to its caller");
      return this.#schema(constraint);
    }
    if (type.isIntersection()) {
      // A branded text (`string & { kind: "id" }`) is a text.
      const primitive = type.types.find((each) => this.#has(each, "StringLike", "NumberLike", "BooleanLike"));
      if (primitive !== undefined) return this.#schema(primitive);
    }
    return this.#list(type) ?? this.#wellKnown(type) ?? this.#fieldsOnce(type);
  }

  #list(type: TypeScript.Type): JsonSchema | undefined {
    const { checker } = this.#reader;
    if (checker.isTupleType(type)) return this.#tuple(type as TypeScript.TupleTypeReference);
    if (!checker.isArrayType(type)) return undefined;
    const [item] = checker.getTypeArguments(type as TypeScript.TypeReference);
    return { type: "array", items: item === undefined ? {} : this.#inside("[]", item) };
  }

  #tuple(type: TypeScript.TupleTypeReference): JsonSchema {
    const { compiler, checker } = this.#reader;
    const schemas = checker.getTypeArguments(type).map((each, at) => this.#inside(`[${at}]`, each));
    const { elementFlags, minLength } = type.target;
    const rest = elementFlags.findIndex((flag) => (flag & compiler.ElementFlags.Variable) !== 0);
    if (rest === -1) return { type: "array", items: schemas, minItems: minLength, maxItems: schemas.length };
    if (rest !== schemas.length - 1) throw this.#refused("is a tuple with a rest that does not come last");
    return { type: "array", items: schemas.slice(0, rest), additionalItems: schemas[rest], minItems: minLength };
  }

  /** Built-in types of the language. Their JSON form does not consist of their fields. */
  #wellKnown(type: TypeScript.Type): JsonSchema | undefined {
    const { checker, side } = this.#reader;
    const [first, second] = checker.getTypeArguments(type as TypeScript.TypeReference);
    switch (this.#libraryName(type)) {
      case "Date":
        return { type: "string", format: "date-time" };
      case "URL":
        return { type: "string", format: "uri" };
      case "Uint8Array":
      case "Buffer":
        if (side === "output") return { type: "string", contentEncoding: "base64" };
        throw this.#refused("is bytes, which JSON does not have");
      case "Map":
      case "ReadonlyMap":
        if (side === "input" || second === undefined) throw this.#refused("is a Map, which JSON does not have");
        return { type: "object", additionalProperties: this.#inside("[]", second) };
      case "Set":
      case "ReadonlySet":
        if (side === "input" || first === undefined) throw this.#refused("is a Set, which JSON does not have");
        return { type: "array", items: this.#inside("[]", first) };
      case "Promise":
        throw this.#refused("is a promise inside a value; await it");
      case "Function":
        throw this.#refused("is a function, which JSON does not have");
      default:
        return undefined;
    }
  }

  /** The name of a type from the declarations of TypeScript or Node; undefined for other types. */
  #libraryName(type: TypeScript.Type): string | undefined {
    const declaration = type.symbol?.declarations?.[0]?.getSourceFile();
    if (declaration?.isDeclarationFile !== true) return undefined;
    return /[\\/]lib\.[^\\/]*\.d\.ts$|[\\/]@types[\\/]node[\\/]/.test(declaration.fileName) ? type.symbol.name : undefined;
  }

  #fieldsOnce(type: TypeScript.Type): JsonSchema {
    if (this.#open.includes(type)) {
      const root = this.#root === type;
      if (!root && !this.#named.has(type)) this.#named.set(type, this.#definitionName(type));
      return { $ref: root ? "#" : `#/definitions/${this.#named.get(type)}` };
    }
    const written = this.#named.get(type);
    if (written !== undefined) return { $ref: `#/definitions/${written}` };
    this.#open.push(type);
    const schema = this.#fields(type);
    this.#open.pop();
    const name = this.#named.get(type);
    if (name === undefined) return schema;
    this.#definitions[name] = schema;
    return { $ref: `#/definitions/${name}` };
  }

  #definitionName(type: TypeScript.Type): string {
    const name = (type.aliasSymbol ?? type.symbol)?.name.replaceAll(/\W/g, "_") ?? "Type";
    const taken = [...this.#named.values()];
    for (let count = 1; ; count++) {
      const free = count === 1 ? name : `${name}${count}`;
      if (!taken.includes(free)) return free;
    }
  }

  #fields(type: TypeScript.Type): JsonSchema {
    const { checker, side, at } = this.#reader;
    if (type.getCallSignatures().length > 0) throw this.#refused("is a function, which JSON does not have");
    const toJson = side === "output" ? checker.getPropertyOfType(type, "toJSON") : undefined;
    const answer = toJson && checker.getTypeOfSymbolAtLocation(toJson, at).getCallSignatures()[0]?.getReturnType();
    if (answer !== undefined && answer !== type) return this.#schema(answer);
    const properties: JsonSchema = {};
    const required: string[] = [];
    for (const field of checker.getPropertiesOfType(type)) {
      if (!this.#isData(field)) continue;
      const { schema, optional } = this.#field(field);
      properties[field.name] = schema;
      if (!optional) required.push(field.name);
    }
    const rest = checker.getIndexTypeOfType(type, this.#reader.compiler.IndexKind.String);
    const more = rest === undefined ? {} : { additionalProperties: this.#inside("[]", rest) };
    if (Object.keys(properties).length === 0 && rest !== undefined) return { type: "object", ...more };
    return { type: "object", properties, required, ...more };
  }

  /** Whether JSON carries the field: no methods, no getters of a class, no private fields or symbols. */
  #isData(field: TypeScript.Symbol): boolean {
    const { SymbolFlags, isClassLike } = this.#reader.compiler;
    // The compiler's own spelling of `#name` and of symbols.
    if (/^__[#@]/.test(String(field.escapedName))) return false;
    if ((field.flags & SymbolFlags.Method) !== 0) return false;
    const owner = field.valueDeclaration?.parent;
    return (field.flags & SymbolFlags.Accessor) === 0 || owner === undefined || !isClassLike(owner);
  }

  #field(field: TypeScript.Symbol): { readonly schema: JsonSchema; readonly optional: boolean } {
    const { compiler, checker, at } = this.#reader;
    const type = checker.getTypeOfSymbolAtLocation(field, at);
    const optional =
      (field.flags & compiler.SymbolFlags.Optional) !== 0 || (type.isUnion() && type.types.some((each) => this.#has(each, "Undefined")));
    // An optional field is published as nullable, so null need not be repeated.
    const schema = this.#inside(field.name, optional ? checker.getNonNullableType(type) : type);
    const description = compiler.displayPartsToString(field.getDocumentationComment(checker));
    return { schema: description === "" || "$ref" in schema ? schema : { ...schema, description }, optional };
  }

  #inside(step: string, type: TypeScript.Type): JsonSchema {
    this.#path.push(step);
    const schema = this.#schema(type);
    this.#path.pop();
    return schema;
  }

  #refused(why: string): Unconvertible {
    const path = this.#path.reduce((before, step) => (before === "" || step.startsWith("[") ? before + step : `${before}.${step}`), "");
    return new Unconvertible(path, why);
  }
}
