// The grammar of searches: conditions joined by AND, each a field, an operator and a value. Unknown fields are ignored, as in Conductor. So are
// parentheses: there is no OR, so they change nothing.

import { badRequest } from "./replies.ts";

export type Operator = "=" | ">" | "<" | "IN";

export interface Condition {
  readonly field: string;
  readonly operator: Operator;
  /** One value, or several for IN. `*` in a value of `=` matches any text. */
  readonly values: readonly string[];
}

/** Maximum length. A person does not write a longer query. */
const queryCharsMax = 10_000;

export function parseQuery(text: string | undefined): Condition[] {
  const query = (text ?? "").trim();
  if (query === "" || query === "*") return [];
  if (query.length > queryCharsMax) throw badRequest(`The query is longer than ${queryCharsMax} characters, which is the limit.`);
  return conditionsIn(query).map(parseCondition);
}

/** The text between the words AND. */
function conditionsIn(query: string): string[] {
  const pieces: string[] = [];
  let from = 0;
  for (const { index } of query.matchAll(/\sAND\s/gi)) {
    pieces.push(query.slice(from, index).trim());
    from = index + " AND".length;
  }
  return [...pieces, query.slice(from).trim()];
}

function parseCondition(text: string): Condition {
  const open = /^[(\s]*/.exec(text)?.[0].length ?? 0;
  const field = /^\w+/.exec(text.slice(open))?.[0];
  const rest = text.slice(open + (field?.length ?? 0)).trimStart();
  // A space is required between a field and IN. Otherwise IN would be part of the field.
  const operator = /^(?:[=><]|IN)/i.exec(rest)?.[0].toUpperCase();
  if (field === undefined || operator === undefined) throw badRequest(`Incorrectly formatted query string: ${text.slice(0, 200)}`);
  const bare = rest.slice(operator.length).replace(/["'()]/g, "");
  return {
    field,
    operator: operator as Operator,
    values: operator === "IN" ? bare.split(",").map((each) => each.trim()) : [bare.trim()],
  };
}

/** Whether a value satisfies a condition. Times compare as numbers. */
export function satisfies(condition: Condition, value: string | number | undefined): boolean {
  const [wanted = ""] = condition.values;
  if (condition.operator === ">") return Number(value ?? 0) > Number(wanted);
  if (condition.operator === "<") return Number(value ?? 0) < Number(wanted);
  if (condition.operator === "IN") return condition.values.includes(String(value ?? ""));
  return matches(wanted, String(value ?? ""));
}

function matches(pattern: string, value: string): boolean {
  if (!pattern.includes("*")) return pattern === value;
  const pieces = pattern.toLowerCase().split("*");
  const text = value.toLowerCase();
  const first = pieces[0] as string;
  const last = pieces.at(-1) as string;
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length) return false;
  let at = first.length;
  for (const piece of pieces.slice(1, -1)) {
    const found = text.indexOf(piece, at);
    if (found < 0 || found + piece.length > text.length - last.length) return false;
    at = found + piece.length;
  }
  return true;
}

export interface Sort {
  readonly field: string;
  readonly down: boolean;
}

/** `field:ASC` or `field:DESC`, several joined by `|`. Only the first is used, and only with a direction. */
export function parseSort(text: string | undefined): Sort | undefined {
  const match = /^(\w+):(ASC|DESC)/i.exec(text ?? "");
  return match === null ? undefined : { field: match[1] as string, down: (match[2] as string).toUpperCase() === "DESC" };
}
