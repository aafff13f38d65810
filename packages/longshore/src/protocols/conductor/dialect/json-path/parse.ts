// Reads a JSONPath. Paths and filters hold each other, so one parser reads both.

import type { Json } from "../../../../core/json/json.ts";
import {
  type FunctionName,
  functionNames,
  type Operand,
  type Operator,
  operators,
  type Path,
  type Step,
  type Test,
  wordOperators,
} from "./path.ts";
import { PathError } from "./path-error.ts";
import { compilePattern } from "./pattern.ts";

/** A path that long was made by a machine, and a filter that long costs as much on every item. */
const pathCharsMax = 4_096;
/** Parentheses, filters and functions inside each other: the parser calls itself for each. */
const deepMax = 30;

/** Throws a PathError. A path that begins neither with `$` nor with `@` begins at the document. */
export function parsePath(text: string): Path {
  if (text.length > pathCharsMax) throw new PathError(`the path has ${text.length} characters, at most ${pathCharsMax} are allowed`);
  const trimmed = text.trim();
  const parser = new PathParser(/^[$@]/.test(trimmed) ? trimmed : `$.${trimmed}`);
  const path = parser.path();
  parser.end();
  return path;
}

class PathParser {
  readonly #text: string;
  #at = 0;
  #deep = 0;

  constructor(text: string) {
    this.#text = text;
  }

  end(): void {
    this.#blanks();
    if (this.#at < this.#text.length) throw this.#bad("something that no path can go on with");
  }

  path(): Path {
    const from = this.#text[this.#at++] as "$" | "@";
    const steps: Step[] = [];
    for (let step = this.#step(); step !== null; step = this.#step()) steps.push(step);
    return { from, steps, definite: steps.every((step, at) => isDefinite(step, at === steps.length - 1)) };
  }

  #step(): Step | null {
    if (this.#text[this.#at] === "[" && this.#at === this.#text.length - 1) {
      // Jayway takes a bracket at the very end for nothing, so definitions with one are out there.
      this.#at++;
      return null;
    }
    if (this.#text[this.#at] === "[") return this.#bracket();
    if (this.#text[this.#at] !== ".") return null;
    this.#at++;
    const deep = this.#text[this.#at] === ".";
    if (deep) this.#at++;
    const step = this.#text[this.#at] === "[" ? this.#bracket() : this.#named();
    return deep ? { kind: "deep", step } : step;
  }

  #named(): Step {
    if (this.#text[this.#at] === "*") {
      this.#at++;
      return { kind: "each" };
    }
    const name = this.#while(/[^.[\]()\s,'"&|=<>!~]/);
    if (name === "") throw this.#bad("no name where one was expected");
    if (this.#text[this.#at] !== "(") return { kind: "child", name };
    if (!functionNames.includes(name as FunctionName)) throw this.#bad(`the function ${name}(), which is not known`);
    return this.#inside(() => ({ kind: "function", name: name as FunctionName, args: this.#list("(", ")", () => this.#operand()) }));
  }

  #bracket(): Step {
    this.#expect("[");
    this.#blanks();
    const char = this.#text[this.#at] ?? "";
    let step: Step;
    if (char === "*") {
      this.#at++;
      step = { kind: "each" };
    } else if (char === "?") step = this.#filter();
    else if (char === "'" || char === '"') step = this.#children();
    else step = this.#indexes();
    this.#blanks();
    this.#expect("]");
    return step;
  }

  #filter(): Step {
    this.#expect("?");
    this.#blanks();
    this.#expect("(");
    const test = this.#inside(() => this.#or());
    this.#blanks();
    this.#expect(")");
    return { kind: "filter", test };
  }

  #children(): Step {
    const names = [this.#string()];
    for (this.#blanks(); this.#text[this.#at] === ","; this.#blanks()) {
      this.#at++;
      this.#blanks();
      names.push(this.#string());
    }
    return names.length === 1 ? { kind: "child", name: names[0] as string } : { kind: "children", names };
  }

  #indexes(): Step {
    const inside = this.#while(/[-\d:,\s]/);
    const [from = "", to, ...more] = inside.split(":").map((part) => part.trim());
    if (to !== undefined && more.length === 0 && [from, to].every((part) => /^(?:-?\d{1,10})?$/.test(part)))
      return { kind: "slice", from: numberOr(from), to: numberOr(to) };
    if (!/^\s*-?\d{1,10}\s*(,\s*-?\d{1,10}\s*)*$/.test(inside)) throw this.#bad("brackets that hold no index");
    const at = inside.split(",").map(Number);
    return at.length === 1 ? { kind: "index", at: at[0] as number } : { kind: "indexes", at };
  }

  #or(): Test {
    const tests = [this.#and()];
    while (this.#taken("||")) tests.push(this.#and());
    return tests.length === 1 ? (tests[0] as Test) : { kind: "or", tests };
  }

  #and(): Test {
    const tests = [this.#single()];
    while (this.#taken("&&")) tests.push(this.#single());
    return tests.length === 1 ? (tests[0] as Test) : { kind: "and", tests };
  }

  #single(): Test {
    this.#blanks();
    if (this.#text[this.#at] === "!" && this.#text[this.#at + 1] !== "=") {
      this.#at++;
      return this.#inside(() => ({ kind: "not", test: this.#single() }));
    }
    if (this.#text[this.#at] === "(") {
      this.#at++;
      const test = this.#inside(() => this.#or());
      this.#blanks();
      this.#expect(")");
      return test;
    }
    return this.#comparison();
  }

  #comparison(): Test {
    const left = this.#operand();
    this.#blanks();
    const operator = this.#operator();
    if (operator !== null) return { kind: "compare", operator, left, right: this.#operand() };
    if (left.kind === "path") return { kind: "exists", path: left.path };
    if (left.kind === "value" && typeof left.value === "boolean") return { kind: "truth", value: left.value };
    throw this.#bad("a value that is compared with nothing");
  }

  #operator(): Operator | null {
    const rest = this.#text.slice(this.#at, this.#at + 10);
    const sign = operators.find((known) => rest.startsWith(known));
    const word = /^[a-z]+/i.exec(rest)?.[0];
    const named = sign ?? wordOperators.find((known) => known === word?.toLowerCase());
    if (named !== undefined) this.#at += named.length;
    return named ?? null;
  }

  #operand(): Operand {
    this.#blanks();
    const char = this.#text[this.#at] ?? "";
    if (char === "$" || char === "@") return this.#inside(() => ({ kind: "path", path: this.path() }));
    if (char === "/") return this.#pattern();
    return { kind: "value", value: this.#value() };
  }

  #value(): Json {
    this.#blanks();
    const char = this.#text[this.#at] ?? "";
    if (char === "'" || char === '"') return this.#string();
    if (char === "[") return this.#inside(() => this.#list("[", "]", () => this.#value()));
    if (char === "{") return this.#inside(() => this.#object());
    const word = this.#while(/[-+.\w]/);
    if (word === "true" || word === "false") return word === "true";
    if (word === "null") return null;
    if (word !== "" && Number.isFinite(Number(word))) return Number(word);
    throw this.#bad("no value where one was expected");
  }

  #object(): Json {
    const pairs = this.#list("{", "}", () => {
      this.#blanks();
      const name = this.#string();
      this.#blanks();
      this.#expect(":");
      return [name, this.#value()] as const;
    });
    return Object.fromEntries(pairs);
  }

  #list<Item>(open: string, close: string, item: () => Item): Item[] {
    this.#expect(open);
    const items: Item[] = [];
    this.#blanks();
    while (this.#text[this.#at] !== close) {
      if (items.length > 0) this.#expect(",");
      items.push(item());
      this.#blanks();
    }
    this.#at++;
    return items;
  }

  #string(): string {
    const quote = this.#text[this.#at];
    if (quote !== "'" && quote !== '"') throw this.#bad("no quoted text where one was expected");
    let text = "";
    for (this.#at++; this.#at < this.#text.length; this.#at++) {
      const char = this.#text[this.#at] as string;
      if (char === quote) {
        this.#at++;
        return text;
      }
      text += char === "\\" ? (escapes[this.#text[++this.#at] ?? ""] ?? this.#text[this.#at] ?? "") : char;
    }
    throw this.#bad("a quote that is never closed");
  }

  #pattern(): Operand {
    let source = "";
    for (this.#at++; this.#text[this.#at] !== "/"; this.#at++) {
      const char = this.#text[this.#at];
      if (char === undefined) throw this.#bad("a pattern that is never closed");
      if (char !== "\\") source += char;
      // A slash is escaped only because of the path; any other escape is the pattern's own.
      else if (this.#text[++this.#at] === "/") source += "/";
      else source += `\\${this.#text[this.#at] ?? ""}`;
    }
    this.#at++;
    return { kind: "pattern", pattern: compilePattern(source, this.#while(/[a-zA-Z]/)) };
  }

  #inside<Result>(read: () => Result): Result {
    if (++this.#deep > deepMax) throw this.#bad("more nesting than is allowed");
    const result = read();
    this.#deep--;
    return result;
  }

  #taken(sign: string): boolean {
    this.#blanks();
    if (!this.#text.startsWith(sign, this.#at)) return false;
    this.#at += sign.length;
    return true;
  }

  #while(wanted: RegExp): string {
    const from = this.#at;
    while (this.#at < this.#text.length && wanted.test(this.#text[this.#at] as string)) this.#at++;
    return this.#text.slice(from, this.#at);
  }

  #blanks(): void {
    this.#while(/\s/);
  }

  #expect(char: string): void {
    if (this.#text[this.#at] !== char) throw this.#bad(`no ${char} where one was expected`);
    this.#at++;
  }

  #bad(what: string): PathError {
    return new PathError(`the path ${this.#text} has ${what}, at character ${this.#at + 1}`);
  }
}

const escapes: { [char: string]: string } = { n: "\n", r: "\r", t: "\t", b: "\b", f: "\f" };

function numberOr(text: string): number | null {
  return text === "" ? null : Number(text);
}

function isDefinite(step: Step, last: boolean): boolean {
  if (step.kind === "children") return last;
  return step.kind === "child" || step.kind === "index" || step.kind === "function";
}
