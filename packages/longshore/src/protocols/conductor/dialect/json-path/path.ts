// A parsed JSONPath. The language is the subset of Jayway's JsonPath that Conductor definitions use.

import type { Json } from "../../../../core/json/json.ts";
import type { Pattern } from "./pattern.ts";

export interface Path {
  /** `$` starts at the document, `@` at the item that a filter looks at. */
  readonly from: "$" | "@";
  readonly steps: readonly Step[];
  /** A definite path leads to one value; any other leads to a list. */
  readonly definite: boolean;
}

export type Step =
  | { readonly kind: "child"; readonly name: string }
  /** Several properties. At the end of a path they make one object; before the end, each is a separate value. */
  | { readonly kind: "children"; readonly names: readonly string[] }
  | { readonly kind: "index"; readonly at: number }
  | { readonly kind: "indexes"; readonly at: readonly number[] }
  | { readonly kind: "slice"; readonly from: number | null; readonly to: number | null }
  | { readonly kind: "each" }
  /** The step, tried at the value and at everything below it. */
  | { readonly kind: "deep"; readonly step: Step }
  | { readonly kind: "filter"; readonly test: Test }
  /** Applied to the value of the path before it; only a step that reads its result may follow. */
  | { readonly kind: "function"; readonly name: FunctionName; readonly args: readonly Operand[] };

export type Test =
  | { readonly kind: "and" | "or"; readonly tests: readonly Test[] }
  | { readonly kind: "not"; readonly test: Test }
  | { readonly kind: "exists"; readonly path: Path }
  | { readonly kind: "truth"; readonly value: boolean }
  | { readonly kind: "compare"; readonly operator: Operator; readonly left: Operand; readonly right: Operand };

export type Operand =
  | { readonly kind: "path"; readonly path: Path }
  | { readonly kind: "value"; readonly value: Json }
  | { readonly kind: "pattern"; readonly pattern: Pattern };

/** A longer one comes before one that it begins with, so that a parser may try them in this order. */
export const operators = ["===", "!==", "==", "!=", "<=", ">=", "=~", "<", ">"] as const;
export const wordOperators = ["in", "nin", "subsetof", "anyof", "noneof", "contains", "all", "size", "empty"] as const;
export type Operator = (typeof operators)[number] | (typeof wordOperators)[number];

export const functionNames = [
  "length",
  "size",
  "min",
  "max",
  "avg",
  "stddev",
  "sum",
  "keys",
  "concat",
  "append",
  "first",
  "last",
  "index",
] as const;
export type FunctionName = (typeof functionNames)[number];
