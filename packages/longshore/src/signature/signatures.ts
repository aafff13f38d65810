// Reads the schemas of tasks from the signatures of their handlers: the type of the first parameter, and the type of the returned promise.
// The files are only read, never run.

import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type * as TypeScript from "typescript-6";
import { LongshoreError } from "../core/errors.ts";
import { type JsonSchema, publishedSchema } from "../core/schema/json-schema.ts";
import type { TaskSchemas } from "../core/task.ts";
import { type Compiler, loadCompiler } from "./compiler.ts";
import { type TypeReader, typeSchema, Unconvertible } from "./type-schema.ts";

export interface SignatureSchemas {
  readonly task: string;
  /** The line of the handler, from 1. */
  readonly line: number;
  readonly schemas: TaskSchemas;
  /** Why the schema of a side is missing. */
  readonly missing: readonly { readonly side: "input" | "output"; readonly why: string }[];
}

/**
 * The tasks that `file` creates with `task("name", handler)`. If it creates none, its exported functions are the handlers, each under its
 * own name. Throws LONGSHORE_BAD_CONFIG without a compiler, LONGSHORE_NOT_FOUND when the file does not exist.
 */
export function readSignatures(file: string, options: { readonly strict?: boolean } = {}): SignatureSchemas[] {
  const path = resolve(file);
  if (!existsSync(path)) throw new LongshoreError("LONGSHORE_NOT_FOUND", `${file} does not exist (looked for ${path}).`);
  const compiler = loadCompiler(path);
  const program = compiler.createProgram([path], compilerOptions(compiler, path));
  const source = program.getSourceFile(path);
  if (source === undefined) throw new LongshoreError("LONGSHORE_BAD_INPUT", `${file} is not a TypeScript or JavaScript file.`);
  const checker = program.getTypeChecker();
  const tasks = findTasks(compiler, checker, source);
  const handlers = tasks.length > 0 ? tasks : exportedFunctions(compiler, checker, source);
  return handlers.map((handler) => describe(handler, { compiler, checker, at: handler.node }, options.strict ?? false));
}

/** The project's configuration or, without one, that of a new project. */
function compilerOptions(compiler: Compiler, path: string): TypeScript.CompilerOptions {
  const { ModuleKind, ModuleResolutionKind, ScriptTarget } = compiler;
  const found = compiler.findConfigFile(dirname(path), compiler.sys.fileExists);
  const config = found === undefined ? {} : compiler.readConfigFile(found, compiler.sys.readFile).config;
  const parsed = compiler.parseJsonConfigFileContent(config, { ...compiler.sys, readDirectory: () => [] }, dirname(found ?? path));
  const plain = { target: ScriptTarget.ES2023, module: ModuleKind.NodeNext, moduleResolution: ModuleResolutionKind.NodeNext };
  return {
    ...(found === undefined ? plain : parsed.options),
    // Without these two options, null would be part of every type, and JavaScript files could not be read.
    strictNullChecks: true,
    allowJs: true,
    noEmit: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
  };
}

interface Handler {
  readonly name: string;
  readonly node: TypeScript.Node;
  readonly signature: TypeScript.Signature;
}

function findTasks(compiler: Compiler, checker: TypeScript.TypeChecker, source: TypeScript.SourceFile): Handler[] {
  const found: Handler[] = [];
  const visit = (node: TypeScript.Node): void => {
    if (compiler.isCallExpression(node) && /(?:^|\.)task$/.test(node.expression.getText(source))) {
      const [name, handler] = node.arguments;
      const named = name === undefined ? undefined : checker.getTypeAtLocation(name);
      const signature = handler === undefined ? undefined : checker.getTypeAtLocation(handler).getCallSignatures()[0];
      if (named?.isStringLiteral() === true && handler !== undefined && signature !== undefined) {
        found.push({ name: named.value, node: handler, signature });
      }
    }
    compiler.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

function exportedFunctions(compiler: Compiler, checker: TypeScript.TypeChecker, source: TypeScript.SourceFile): Handler[] {
  const module = checker.getSymbolAtLocation(source);
  if (module === undefined) return [];
  const found: Handler[] = [];
  for (const each of checker.getExportsOfModule(module)) {
    const symbol = (each.flags & compiler.SymbolFlags.Alias) === 0 ? each : checker.getAliasedSymbol(each);
    const node = symbol.valueDeclaration;
    if (node === undefined || compiler.isClassLike(node)) continue;
    const signature = checker.getTypeOfSymbolAtLocation(symbol, node).getCallSignatures()[0];
    if (signature !== undefined) found.push({ name: each.name === "default" ? symbol.name : each.name, node, signature });
  }
  return found;
}

function describe(handler: Handler, around: Omit<TypeReader, "side">, strict: boolean): SignatureSchemas {
  const missing: { side: "input" | "output"; why: string }[] = [];
  const read = (side: "input" | "output", raw: () => JsonSchema): JsonSchema | undefined => {
    try {
      const schema = publishedSchema(raw(), { strict });
      if (schema === undefined) missing.push({ side, why: "it is too large to be published" });
      return schema;
    } catch (error) {
      if (!(error instanceof Unconvertible)) throw error;
      missing.push({ side, why: error.message });
      return undefined;
    }
  };
  const input = read("input", () => inputSchema({ ...around, side: "input" }, handler.signature));
  const output = read("output", () => outputSchema({ ...around, side: "output" }, handler.signature));
  const { line } = handler.node.getSourceFile().getLineAndCharacterOfPosition(handler.node.getStart());
  return { task: handler.name, line: line + 1, schemas: { ...(input && { input }), ...(output && { output }) }, missing };
}

function inputSchema(reader: TypeReader, signature: TypeScript.Signature): JsonSchema {
  const { compiler, checker } = reader;
  const [first] = signature.getParameters();
  if (first === undefined) return { type: "object", properties: {}, required: [] };
  const type = checker.getTypeOfSymbolAtLocation(first, reader.at);
  const declaration = first.valueDeclaration;
  const parameter = declaration !== undefined && compiler.isParameter(declaration) ? declaration : undefined;
  const untyped = (type.flags & (compiler.TypeFlags.Any | compiler.TypeFlags.Unknown)) !== 0;
  if (untyped && parameter?.type === undefined) throw new Unconvertible("", "has a parameter without a type");
  const schema = typeSchema(reader, type.isUnion() ? checker.getNonNullableType(type) : type);
  const pattern = parameter?.name;
  return pattern !== undefined && compiler.isObjectBindingPattern(pattern) ? withDefaults(compiler, pattern, schema) : schema;
}

/** `({ limit = 10 })`: the field is optional, and its default is known when it is a literal. */
function withDefaults(compiler: Compiler, pattern: TypeScript.ObjectBindingPattern, schema: JsonSchema): JsonSchema {
  if (typeof schema.properties !== "object") return schema;
  const properties = { ...(schema.properties as { [name: string]: JsonSchema }) };
  let required = [...(schema.required as string[])];
  for (const { name, propertyName, initializer } of pattern.elements) {
    const field = (propertyName ?? name).getText().replaceAll(/^["']|["']$/g, "");
    const known = properties[field];
    if (initializer === undefined || known === undefined) continue;
    required = required.filter((each) => each !== field);
    // For a computed default the key is present with the value undefined: there is a default, but its value is unknown here.
    properties[field] = { ...known, default: literalValue(compiler, initializer) };
  }
  return { ...schema, properties, required };
}

function literalValue(compiler: Compiler, node: TypeScript.Expression): unknown {
  const { SyntaxKind } = compiler;
  if (compiler.isStringLiteralLike(node)) return node.text;
  if (compiler.isNumericLiteral(node)) return Number(node.text);
  if (node.kind === SyntaxKind.TrueKeyword) return true;
  if (node.kind === SyntaxKind.FalseKeyword) return false;
  if (compiler.isArrayLiteralExpression(node) && node.elements.length === 0) return [];
  if (compiler.isObjectLiteralExpression(node) && node.properties.length === 0) return {};
  const negative =
    compiler.isPrefixUnaryExpression(node) && node.operator === SyntaxKind.MinusToken ? literalValue(compiler, node.operand) : undefined;
  return typeof negative === "number" ? -negative : undefined;
}

/** The type that the promise resolves to, without deferrals, which callers never receive. */
function outputSchema(reader: TypeReader, signature: TypeScript.Signature): JsonSchema {
  const { compiler, checker } = reader;
  const returned = checker.getReturnTypeOfSignature(signature);
  const awaited = checker.getAwaitedType(returned) ?? returned;
  const types = awaited.isUnion() ? awaited.types.filter((each) => each.getProperty("longshore.deferral") === undefined) : [awaited];
  if (types.every((each) => (each.flags & (compiler.TypeFlags.Void | compiler.TypeFlags.Undefined)) !== 0)) {
    throw new Unconvertible("", "returns nothing");
  }
  if (awaited.isUnion() && types.length === 1) return typeSchema(reader, types[0] as TypeScript.Type);
  if (!awaited.isUnion() || types.length === awaited.types.length) return typeSchema(reader, awaited);
  return { anyOf: types.map((each) => typeSchema(reader, each)) };
}
