// Value expressions: JSON in which some objects stand for a computed value. Their kinds are determined once, when a flow is read. The order
// of the checks below is part of the language.

import { isObject, type Json } from "../../../core/json/json.ts";
import type { JsonPath } from "../../../core/json/json-position.ts";
import { type Path, parsePath } from "./path.ts";

export type Expression =
  | { readonly kind: "literal"; readonly value: Json }
  | { readonly kind: "if"; readonly condition: Expression; readonly yes: Expression; readonly no: Expression }
  | { readonly kind: "coalesce"; readonly values: readonly Expression[] }
  | { readonly kind: "step"; readonly step: string; readonly path: Path }
  | { readonly kind: "input"; readonly path: Path }
  | { readonly kind: "variable"; readonly path: Path; readonly default: Expression | null }
  | { readonly kind: "object"; readonly fields: readonly (readonly [string, Expression])[] }
  | { readonly kind: "list"; readonly items: readonly Expression[] };

/** A value that is not a valid expression. */
export interface ExpressionFault {
  readonly path: JsonPath;
  readonly message: string;
  readonly expected: string;
}

export const nothing: Expression = { kind: "literal", value: null };

const migration =
  'The form {"$from": ...} is not supported any more. Write {"$step": "id", "path": "..."} for {"$from": {"step": "id"}, "path": "..."}, ' +
  'and {"$input": "field"} for {"$from": {"workflow": "input"}, "path": "field"}. ' +
  'An object that is meant to have a key "$from" is written {"$literal": {"$from": ...}}';

/** Adds errors to `faults`; an invalid value is read as null. */
export function readExpression(value: Json, at: JsonPath, faults: ExpressionFault[]): Expression {
  if (Array.isArray(value)) return readList(value, at, faults);
  if (!isObject(value)) return { kind: "literal", value };
  const fault = (path: JsonPath, message: string, expected: string): Expression => {
    faults.push({ path, message, expected });
    return nothing;
  };
  if (Object.hasOwn(value, "$literal")) return { kind: "literal", value: value.$literal as Json };
  if (Object.hasOwn(value, "$if")) {
    if (!Object.hasOwn(value, "then")) return fault(at, "`$if` has no `then`.", "{$if: a condition, then: a value, else: a value}");
    return {
      kind: "if",
      condition: readExpression(value.$if as Json, [...at, "$if"], faults),
      yes: readExpression(value.then as Json, [...at, "then"], faults),
      no: Object.hasOwn(value, "else") ? readExpression(value.else as Json, [...at, "else"], faults) : nothing,
    };
  }
  if (Object.hasOwn(value, "$coalesce")) {
    const values = value.$coalesce;
    if (!Array.isArray(values)) return fault([...at, "$coalesce"], "`$coalesce` is not a list.", "a list of values");
    const read = values.map((item: Json, index) => readExpression(item, [...at, "$coalesce", index], faults));
    return { kind: "coalesce", values: read };
  }
  if (Object.hasOwn(value, "$from")) return fault([...at, "$from"], migration, "$step, $input or $variable");
  if (Object.hasOwn(value, "$step")) {
    const { $step: step } = value;
    if (typeof step !== "string") return fault([...at, "$step"], "`$step` is not a text.", "the id of a step");
    const path = readPath(Object.hasOwn(value, "path") ? value.path : "", [...at, "path"], faults);
    return path === null ? nothing : { kind: "step", step, path };
  }
  if (Object.hasOwn(value, "$input")) {
    const path = readPath(value.$input, [...at, "$input"], faults);
    return path === null ? nothing : { kind: "input", path };
  }
  if (Object.hasOwn(value, "$variable")) {
    const path = readPath(value.$variable, [...at, "$variable"], faults);
    const fallback = Object.hasOwn(value, "default") ? readExpression(value.default as Json, [...at, "default"], faults) : null;
    return path === null ? nothing : { kind: "variable", path, default: fallback };
  }
  return readObject(value as { [key: string]: Json }, at, faults);
}

/** A list of constants is a literal, so that it is not evaluated for every run. */
function readList(value: readonly Json[], at: JsonPath, faults: ExpressionFault[]): Expression {
  const items = value.map((item, index) => readExpression(item, [...at, index], faults));
  return items.every((item, index) => isItself(item, value[index])) ? { kind: "literal", value: value as Json } : { kind: "list", items };
}

function readObject(value: { [key: string]: Json }, at: JsonPath, faults: ExpressionFault[]): Expression {
  const fields = Object.keys(value).map((key) => [key, readExpression(value[key] as Json, [...at, key], faults)] as const);
  return fields.every(([key, field]) => isItself(field, value[key])) ? { kind: "literal", value } : { kind: "object", fields };
}

function isItself(expression: Expression, value: Json | undefined): boolean {
  return expression.kind === "literal" && expression.value === value;
}

/** Returns null when `value` is not a path. The value null is a path: that of the whole value. */
function readPath(value: unknown, at: JsonPath, faults: ExpressionFault[]): Path | null {
  const parsed = typeof value === "string" ? parsePath(value) : value === null ? { path: [] } : { fault: "it is not a text" };
  if ("path" in parsed) return parsed.path;
  faults.push({ path: at, message: `This is not a path: ${parsed.fault}.`, expected: "a field name, or a path such as $.a.b[0]" });
  return null;
}

/** The expression and all expressions inside it. */
export function* everyExpression(expression: Expression): Generator<Expression> {
  yield expression;
  for (const inner of innerOf(expression)) yield* everyExpression(inner);
}

function innerOf(expression: Expression): readonly Expression[] {
  switch (expression.kind) {
    case "if":
      return [expression.condition, expression.yes, expression.no];
    case "coalesce":
      return expression.values;
    case "variable":
      return expression.default === null ? [] : [expression.default];
    case "object":
      return expression.fields.map(([, field]) => field);
    case "list":
      return expression.items;
    default:
      return [];
  }
}
