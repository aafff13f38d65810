// Evaluates a value expression from the results of the steps that it reads. Pure. Only what is needed is evaluated: one branch of a
// condition, and a coalesce up to its first value. Steps that are not loaded yet are requested: at once, as many as are known to be needed.

import { type Json, type JsonObject, setOwn } from "../../../core/json/json.ts";
import { grownText } from "../../../engine/run/growth.ts";
import type { Expression } from "./expression.ts";
import { follow, type Path, pathText } from "./path.ts";
import { type FlowError, type FlowResult, orchestratorError } from "./result.ts";

export interface Values {
  input(): Json;
  /** Undefined when there is neither such a variable nor a default. */
  variable(name: string): Json | undefined;
  /** All of them. */
  variables(): JsonObject;
  /** The result of a step; a number is the node that must be loaded first. */
  step(id: string): FlowResult | number;
  /** Counts the value of a reference. Returns false when all references together are too large. */
  took(value: Json): boolean;
}

export type Evaluated = { readonly value: Json } | { readonly failed: FlowError } | { readonly needs: readonly number[] };

export function evaluate(expression: Expression, values: Values): Evaluated {
  switch (expression.kind) {
    case "literal":
      return { value: expression.value };
    case "if": {
      const taken = isTrue(evaluate(expression.condition, values));
      if (typeof taken !== "boolean") return taken;
      return evaluate(taken ? expression.yes : expression.no, values);
    }
    case "coalesce":
      return firstThere(expression.values, values);
    case "step":
      return readStep(expression.step, expression.path, values);
    case "input":
      return at(values.input(), expression.path, "the input of the flow", values);
    case "variable":
      return readVariable(expression, values);
    case "list":
      return together(expression.items, values);
    case "object": {
      const fields = together(
        expression.fields.map(([, field]) => field),
        values,
      );
      if (!("value" in fields)) return fields;
      const value: JsonObject = {};
      for (const [index, [key]] of expression.fields.entries()) setOwn(value, key, fields.value[index] as Json);
      return { value };
    }
  }
}

/** Null, false and a failure are false. All other values are true, even 0, an empty text and an empty list. */
export function isTrue(condition: Evaluated): boolean | { readonly needs: readonly number[] } {
  if ("needs" in condition) return condition;
  return "value" in condition && condition.value !== null && condition.value !== false;
}

/** Whether a coalesce continues with its next value. A failure ends it, as a value does. */
export function isAbsent(evaluated: Evaluated): boolean | { readonly needs: readonly number[] } {
  if ("needs" in evaluated) return evaluated;
  return "value" in evaluated && evaluated.value === null;
}

/** The variable that a path begins with; null when the path means all variables. */
export function variableIn(path: Path): string | null {
  return path.length === 0 ? null : String(path[0]);
}

function firstThere(options: readonly Expression[], values: Values): Evaluated {
  for (const option of options) {
    const evaluated = evaluate(option, values);
    if (isAbsent(evaluated) !== true) return evaluated;
  }
  return { value: null };
}

function readStep(id: string, path: Path, values: Values): Evaluated {
  const result = values.step(id);
  if (typeof result === "number") return { needs: [result] };
  if (result.outcome === "failed") return { failed: result.error };
  // When the output of a step is null, every path into it is null too.
  return result.result === null ? { value: null } : at(result.result, path, `the output of step ${JSON.stringify(id)}`, values);
}

function readVariable({ path, default: fallback }: Expression & { kind: "variable" }, values: Values): Evaluated {
  const name = variableIn(path);
  if (name === null) return at(values.variables(), [], "the variables", values);
  const value = values.variable(name);
  if (value !== undefined) return at(value, path.slice(1), `the variable ${JSON.stringify(name)}`, values);
  if (fallback !== null) return evaluate(fallback, values);
  return { failed: expressionFailure(`the variable ${JSON.stringify(name)} is not defined`) };
}

function at(value: Json, path: Path, where: string, values: Values): Evaluated {
  const found = follow(value, path);
  if ("value" in found) return values.took(found.value) ? found : { failed: expressionFailure(tooLarge) };
  return { failed: expressionFailure(`${where} has nothing at ${pathText(found.missing)}`) };
}

const tooLarge = `its references together contain more than ${grownText}: keep large values as blobs and refer to them`;

function expressionFailure(message: string): FlowError {
  return orchestratorError("EXPRESSION_FAILURE", message);
}

/** Visits all parts, so that all missing steps are requested at once. When there are several failures, the first counts. */
function together(items: readonly Expression[], values: Values): { readonly value: Json[] } | Exclude<Evaluated, { readonly value: Json }> {
  const value: Json[] = [];
  const needs: number[] = [];
  let failed: FlowError | undefined;
  for (const item of items) {
    const evaluated = evaluate(item, values);
    if ("needs" in evaluated) needs.push(...evaluated.needs);
    else if ("failed" in evaluated) failed ??= evaluated.failed;
    else value.push(evaluated.value);
  }
  if (needs.length > 0) return { needs };
  return failed === undefined ? { value } : { failed };
}
