// Checks a flow against JSON Schemas: paths against the values that they read, examples and defaults against their schemas. On request also
// checks values against the schemas of their receivers.

import type { Json } from "../../../core/json/json.ts";
import type { JsonPath } from "../../../core/json/json-position.ts";
import { type SchemaPlace, violations } from "../../../core/schema/violations.ts";
import { eachInSlices, type Sliced } from "../../../core/slices/slice-work.ts";
import { type Diagnostic, diagnostic } from "./diagnostic.ts";
import type { Expression } from "./expression.ts";
import type { Flow } from "./flow.ts";
import { type Path, pathText } from "./path.ts";
import { inputSchemaOf, type RouteFacts } from "./route-facts.ts";
import { resolve, typesAt, type Walked, walk } from "./schema-walk.ts";
import { declaredVariables, type Variable } from "./variables.ts";
import { everyRoot, visitExpressions } from "./visit.ts";

export interface Known {
  readonly flow: Flow;
  /** The schema of each step's output; null when it is unknown. */
  readonly outputs: ReadonlyMap<string, Json>;
}

/** The value that an expression reads: its schema, the path into it, and its name for messages. */
interface Reading {
  readonly schema: Json;
  readonly path: Path;
  readonly name: string;
}

export class TypeChecker {
  readonly #flow: Flow;
  readonly #outputs: ReadonlyMap<string, Json>;
  /** Computed once, because many expressions may read variables. */
  readonly #variables: ReadonlyMap<string, Variable> | null;

  constructor({ flow, outputs }: Known) {
    this.#variables = declaredVariables(flow.schemas);
    this.#flow = flow;
    this.#outputs = outputs;
  }

  /** Reports paths that find nothing, and paths that cannot be checked. */
  *accesses(): Sliced<Diagnostic[]> {
    const found: Diagnostic[] = [];
    yield* everyRoot(this.#flow, (root, at) => {
      visitExpressions(root, at, (expression, path) => {
        const reading = this.#readingOf(expression);
        if (reading === null || reading.path.length === 0) return;
        const access = this.#access(reading, path);
        if (access !== null) found.push(access);
      });
    });
    return found;
  }

  /** Checks examples of inputs, and default values. */
  *examples(): Sliced<Diagnostic[]> {
    const { examples, schemas, steps } = this.#flow;
    const violated = (schema: Json, value: Json, at: JsonPath, what: string) =>
      violations(this.#place(schema), value).map(({ path, message }) =>
        diagnostic("schemaViolation", [...at, ...path], `Schema violation in ${what}: ${message}`),
      );
    const found = examples.flatMap(({ name, input, path }) => violated(schemas.input, input, [...path, "input"], `example '${name}'`));
    yield* eachInSlices(steps, ({ id, onError }, index) => {
      const schema = this.#outputs.get(id) ?? null;
      if (onError.action === "useDefault")
        found.push(...violated(schema, onError.value, ["steps", index, "onError", "defaultValue"], `the default of step '${id}'`));
    });
    for (const { name, schema, default: value } of this.#variables?.values() ?? []) {
      const at = ["schemas", "properties", "variables", "properties", name, "default"];
      if (value !== undefined) found.push(...violated(schema, value, at, `the default of variable '${name}'`));
    }
    return found;
  }

  /** Reports values that do not fit their receiver, and values that cannot be checked. */
  *values(routes: RouteFacts | undefined): Sliced<Diagnostic[]> {
    const { steps, output, schemas } = this.#flow;
    const found: Diagnostic[] = [];
    yield* eachInSlices(steps, (step, index) => {
      if (this.#outputs.get(step.id) == null)
        found.push(
          diagnostic("untypedComponentOutput", ["steps", index], `Component '${step.component}' in step '${step.id}' has no output schema`),
        );
      if (routes !== undefined) this.#fits(step.input, inputSchemaOf(step.component, routes), ["steps", index, "input"], found);
    });
    this.#fits(output, schemas.output, ["output"], found);
    return found;
  }

  #access(reading: Reading, at: JsonPath): Diagnostic | null {
    const { schema, path, name } = reading;
    const field = pathText(path);
    if (resolve(this.#place(schema)) === null) {
      const message = `Field access '${field}' on ${name} cannot be validated: no schema available`;
      return diagnostic("unvalidatedFieldAccess", at, message, { experimental: true });
    }
    return wrongAccess(walk(this.#place(schema), path), at, `'${field}' on ${name}`);
  }

  #fits(expression: Expression, expected: Json, at: JsonPath, found: Diagnostic[]): void {
    const place = this.#place(expected);
    const schema = resolve(place);
    if (schema === null) return;
    if (expression.kind === "literal") {
      for (const { path, message } of violations(place, expression.value)) found.push(mismatch([...at, ...path], message));
    } else if (expression.kind === "if") {
      this.#fits(expression.yes, expected, [...at, "then"], found);
      this.#fits(expression.no, expected, [...at, "else"], found);
    } else if (expression.kind === "coalesce") {
      expression.values.forEach((value, index) => {
        // Any value except the last may be null: then the next one is used.
        if (value.kind !== "literal" || value.value !== null) this.#fits(value, expected, [...at, "$coalesce", index], found);
      });
    } else if (expression.kind === "object") this.#objectFits(expression, place, at, found);
    else if (expression.kind === "list") {
      if (this.#isA("array", place, at, found))
        for (const [index, item] of expression.items.entries()) this.#fits(item, walkedSchema(walk(place, [index])), [...at, index], found);
    } else this.#readingFits(expression, place, at, found);
  }

  #objectFits({ fields }: Expression & { kind: "object" }, place: SchemaPlace, at: JsonPath, found: Diagnostic[]): void {
    if (!this.#isA("object", place, at, found)) return;
    const { required } = resolve(place) ?? {};
    const given = new Map(fields);
    for (const name of Array.isArray(required) ? required : [])
      if (typeof name === "string" && !given.has(name)) found.push(mismatch(at, `the required property '${name}' is missing`));
    for (const [name, field] of fields) {
      const walked = walk(place, [name]);
      if (walked.kind === "unknown") found.push(mismatch([...at, name], `there is no property '${name}'`));
      else this.#fits(field, walkedSchema(walked), [...at, name], found);
    }
  }

  #readingFits(expression: Expression, expected: SchemaPlace, at: JsonPath, found: Diagnostic[]): void {
    const reading = this.#readingOf(expression);
    if (reading === null) return;
    const walked = walk(this.#place(reading.schema), reading.path);
    const [wanted, actual] = [typesAt(expected), walked.kind === "found" ? typesAt(walked.place) : null];
    if (wanted === null || actual === null) {
      if (wanted !== null && walked.kind !== "unknown" && walked.kind !== "wrong")
        found.push(diagnostic("typeCheckIndeterminate", at, `Type check indeterminate: no schema is known for ${reading.name}`));
    } else if (!actual.some((type) => accepts(wanted, type)))
      found.push(mismatch(at, `expected ${wanted.join(" or ")}, got ${actual.join(" or ")}`));
  }

  #isA(type: "object" | "array", place: SchemaPlace, at: JsonPath, found: Diagnostic[]): boolean {
    const types = typesAt(place);
    if (types === null || types.includes(type)) return true;
    found.push(mismatch(at, `expected ${types.join(" or ")}, got ${type}`));
    return false;
  }

  #readingOf(expression: Expression): Reading | null {
    const { schemas } = this.#flow;
    if (expression.kind === "step")
      return { schema: this.#outputs.get(expression.step) ?? null, path: expression.path, name: `step '${expression.step}'` };
    if (expression.kind === "input") return { schema: schemas.input, path: expression.path, name: "the flow's input" };
    if (expression.kind !== "variable") return null;
    const name = String(expression.path[0] ?? "");
    const schema = this.#variables?.get(name)?.schema ?? null;
    return { schema, path: expression.path.slice(1), name: `variable '${name}'` };
  }

  #place(schema: Json): SchemaPlace {
    return { schema, defs: this.#flow.schemas.defs };
  }
}

function wrongAccess(walked: Walked, at: JsonPath, what: string): Diagnostic | null {
  if (walked.kind === "unknown") return diagnostic("unknownPropertyInPath", at, `Unknown property '${walked.property}' in ${what}`);
  if (walked.kind !== "wrong") return null;
  const part = typeof walked.part === "number" ? `index ${walked.part}` : `field '${walked.part}'`;
  return diagnostic("invalidFieldAccess", at, `Invalid field access ${what}: ${part} of a value of type ${walked.type}`);
}

function walkedSchema(walked: Walked): Json {
  return walked.kind === "found" ? walked.place.schema : null;
}

function mismatch(at: JsonPath, detail: string): Diagnostic {
  return diagnostic("typeMismatch", at, `Type mismatch: ${detail}`);
}

/** An integer fits a number, and a number may fit an integer, because it may be whole. */
function accepts(wanted: readonly string[], type: string): boolean {
  return wanted.includes(type) || (type === "integer" && wanted.includes("number")) || (type === "number" && wanted.includes("integer"));
}
