// Schemas of any library that follows Standard Schema (zod, valibot, arktype, ...). None of them is a dependency: the shape below is
// the part of the public specification that is used here.

import { LongshoreError, TerminalError } from "../errors.ts";
import { libraryOptions } from "./dates.ts";
import { fitInput } from "./fit-input.ts";

/** A schema that accepts `Input` from outside and returns `Output` (they differ by defaults and transforms). */
export interface Schema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    /** Newer libraries can also describe the values that they accept as JSON Schema. */
    readonly jsonSchema?: {
      readonly input: (options: JsonSchemaOptions) => Record<string, unknown>;
      readonly output: (options: JsonSchemaOptions) => Record<string, unknown>;
    };
  };
}

interface JsonSchemaOptions {
  readonly target: string;
  /** Options that only the schema's own library understands. */
  readonly libraryOptions?: Record<string, unknown> | undefined;
}

/** The result of a schema: the parsed value, or the mistakes of the input. */
export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: ReadonlyArray<SchemaIssue> };

/** One mistake of a value, and its place. */
export interface SchemaIssue {
  readonly message: string;
  readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined;
}

/** An error text names at most this many wrong fields. */
const issuesNamedMax = 5;

/**
 * Returns the validated value, or throws a TerminalError that names the field: a retry would have the same input. Its cause carries the
 * code (LONGSHORE_BAD_INPUT or LONGSHORE_BAD_OUTPUT) and the field for programs.
 */
export function validate<Output>(
  schema: Schema<unknown, Output>,
  value: unknown,
  what: "input" | "output",
  where = `The ${what} does not fit the task's schema`,
): Output | Promise<Output> {
  const judge = (result: SchemaResult<Output>) =>
    what === "input" && result.issues !== undefined ? secondLook(schema, value, { first: result, where }) : accept(result, what, where);
  const result = schema["~standard"].validate(value);
  return result instanceof Promise ? result.then(judge) : judge(result);
}

/** Adapts an input that was refused to its schema and validates it again. An input that is accepted at first costs nothing extra. */
function secondLook<Output>(
  schema: Schema<unknown, Output>,
  value: unknown,
  { first, where }: { first: SchemaResult<Output>; where: string },
): Output | Promise<Output> {
  const fitted = fitInput(value, jsonSchemaOf(schema, "input"));
  if (fitted === value) return accept(first, "input", where);
  const result = schema["~standard"].validate(fitted);
  return result instanceof Promise ? result.then((settled) => accept(settled, "input", where)) : accept(result, "input", where);
}

function accept<Output>(result: SchemaResult<Output>, what: "input" | "output", where: string): Output {
  if (result.issues === undefined) return result.value;
  const mistake = mistakeIn(result.issues, { what, where });
  throw new TerminalError(mistake.message, { cause: mistake });
}

/** Rejects with LONGSHORE_BAD_INPUT when a workflow has a schema for its input and this one does not fit. */
export async function checkStartInput({ name, input }: { readonly name: string; readonly input?: Schema }, value: unknown): Promise<void> {
  if (input !== undefined) await parseWorkflowInput(name, input, value);
}

/** The input of a workflow as its schema returns it. Throws LONGSHORE_BAD_INPUT when it does not fit. */
export function parseWorkflowInput<Output>(name: string, schema: Schema<unknown, Output>, value: unknown): Output | Promise<Output> {
  const judge = (result: SchemaResult<Output>) => {
    if (result.issues !== undefined) throw badWorkflowInput(name, result.issues);
    return result.value;
  };
  const result = schema["~standard"].validate(value);
  return result instanceof Promise ? result.then(judge) : judge(result);
}

/** The error for an input that does not fit the schema of its workflow. */
export function badWorkflowInput(name: string, issues: readonly SchemaIssue[]): LongshoreError {
  return mistakeIn(issues, { what: "input", where: `The input of workflow ${name} does not fit its schema` });
}

/** The error for the value of a signal that does not fit the schema of the step that waits for it. */
export function badSignalValue(name: string, issues: readonly SchemaIssue[]): LongshoreError {
  return mistakeIn(issues, { what: "input", where: `The value of signal ${name} does not fit its schema` });
}

/** The error that names the first wrong fields. */
function mistakeIn(issues: readonly SchemaIssue[], { what, where }: { what: "input" | "output"; where: string }): LongshoreError {
  const named = issues.slice(0, issuesNamedMax).map((issue) => `${fieldOf(issue, what)}: ${issue.message}`);
  const more = issues.length - named.length;
  const code = what === "input" ? "LONGSHORE_BAD_INPUT" : "LONGSHORE_BAD_OUTPUT";
  const first = issues[0];
  const detail = first === undefined ? {} : { field: fieldOf(first, what), expected: first.message };
  return new LongshoreError(code, `${where}: ${named.join("; ")}${more > 0 ? `; and ${more} more` : ""}`, { detail });
}

/** A path as people write it: `items[2].name`. For the value itself, `what`. */
function fieldOf(issue: SchemaIssue, what: string): string {
  let field = "";
  for (const segment of issue.path ?? []) {
    const key = typeof segment === "object" ? segment.key : segment;
    field += typeof key === "number" ? `[${key}]` : field === "" ? String(key) : `.${String(key)}`;
  }
  return field === "" ? what : field;
}

/** The JSON Schema of the schema's library, or undefined when it offers none or cannot express it. */
export function jsonSchemaOf(schema: Schema | undefined, side: "input" | "output"): Record<string, unknown> | undefined {
  const standard = schema?.["~standard"];
  const convert = standard?.jsonSchema?.[side];
  if (standard === undefined || convert === undefined) return undefined;
  try {
    return convert({ target: "draft-07", libraryOptions: libraryOptions(standard.vendor, side) });
  } catch {
    // A library throws for a type that JSON Schema cannot express (a transform, a custom check). Then nothing is published.
    return undefined;
  }
}
