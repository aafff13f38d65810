// Walks an expression and tracks its path in the flow.

import type { JsonPath } from "../../../core/json/json-position.ts";
import { eachInSlices, type Sliced } from "../../../core/slices/slice-work.ts";
import type { Expression } from "./expression.ts";
import type { Flow } from "./flow.ts";

export function visitExpressions(expression: Expression, at: JsonPath, visit: (expression: Expression, at: JsonPath) => void): void {
  visit(expression, at);
  for (const [key, inner] of innerOf(expression)) visitExpressions(inner, [...at, ...key], visit);
}

/** The top-level expressions of a flow. */
export function* everyRoot({ steps, output }: Flow, visit: (root: Expression, at: JsonPath) => void): Sliced<void> {
  yield* eachInSlices(steps, ({ input }, index) => {
    visit(input, ["steps", index, "input"]);
  });
  visit(output, ["output"]);
}

function innerOf(expression: Expression): readonly (readonly [JsonPath, Expression])[] {
  switch (expression.kind) {
    case "if":
      return [
        [["$if"], expression.condition],
        [["then"], expression.yes],
        [["else"], expression.no],
      ];
    case "coalesce":
      return expression.values.map((value, index) => [["$coalesce", index], value]);
    case "variable":
      return expression.default === null ? [] : [[["default"], expression.default]];
    case "object":
      return expression.fields.map(([key, field]) => [[key], field]);
    case "list":
      return expression.items.map((item, index) => [[index], item]);
    default:
      return [];
  }
}
