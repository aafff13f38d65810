// Converts the query of the list of runs from the text that people write to parameters of the API:
//   workflow:billing state:failed,timed-out after:2h error:"ECONN" input.customer:cust-77 some text

import { parseSpan } from "./span.ts";

export interface Term {
  /** Empty for free text. */
  readonly key: string;
  readonly value: string;
}

/** The meaning of each key, for suggestions. `scans`: the server has to read every run. */
export const keys: Readonly<Record<string, { readonly what: string; readonly scans: boolean }>> = {
  state: { what: "running, failed, ... with commas between them", scans: false },
  workflow: { what: "name of the workflow", scans: false },
  after: { what: "created after: 15m, 2h, 7d ago, or a date", scans: false },
  before: { what: "created before: 2h ago, or a date", scans: false },
  longer: { what: "took at least: 30s, 5m", scans: true },
  dialect: { what: "the language of the workflow", scans: true },
  alias: { what: "the id of the run in its protocol", scans: false },
  parent: { what: "started by this run", scans: false },
  error: { what: "text in the error", scans: true },
  "input.": { what: "a value in the input: input.customer.id:17", scans: true },
  "output.": { what: "a value in the output", scans: true },
};

export function parseQuery(text: string): Term[] {
  const terms: Term[] = [];
  let at = 0;
  while (at < text.length) {
    if (text[at] === " ") {
      at++;
      continue;
    }
    const [part, end] = readPart(text, at);
    at = end;
    if (part !== undefined) terms.push(part);
  }
  return terms;
}

/** One term: a key, a colon and a value, or a text; the value may be in quotes. */
function readPart(text: string, start: number): [Term | undefined, number] {
  let at = start;
  let colon = -1;
  while (at < text.length && text[at] !== " " && text[at] !== '"') {
    if (text[at] === ":" && colon < 0) colon = at;
    at++;
  }
  const isKnown = colon > start && isKey(text.slice(start, colon));
  const key = isKnown ? text.slice(start, colon) : "";
  const from = isKnown ? colon + 1 : start;
  if (text[at] === '"') {
    const end = text.indexOf('"', at + 1);
    const to = end < 0 ? text.length : end;
    return [{ key, value: text.slice(from, at) + text.slice(at + 1, to) }, to + 1];
  }
  const value = text.slice(from, at);
  return [value === "" ? undefined : { key, value }, at];
}

function isKey(key: string): boolean {
  return Object.hasOwn(keys, key) || key.startsWith("input.") || key.startsWith("output.");
}

export function queryText(terms: readonly Term[]): string {
  return terms
    .map(({ key, value }) => {
      const quoted = /[\s"]/.test(value) ? `"${value.replaceAll('"', "")}"` : value;
      return key === "" ? quoted : `${key}:${quoted}`;
    })
    .join(" ");
}

/** Sets a term, or removes it with an empty value. */
export function withTerm(terms: readonly Term[], key: string, value: string): Term[] {
  const rest = terms.filter((term) => term.key !== key);
  return value === "" ? rest : [...rest, { key, value }];
}

export function termOf(terms: readonly Term[], key: string): string {
  return terms.find((term) => term.key === key)?.value ?? "";
}

/** The parameters of `GET /runs?view=summary`. */
export function parameters(terms: readonly Term[], now: number): URLSearchParams {
  const found = new URLSearchParams({ view: "summary" });
  const texts: string[] = [];
  for (const { key, value } of terms) {
    if (key === "") texts.push(value);
    else if (key === "after" || key === "before") {
      const at = momentOf(value, now);
      if (at !== undefined) found.set(key === "after" ? "createdAfter" : "createdBefore", String(at));
    } else if (key === "longer") found.set("minMs", String(parseSpan(value) ?? 0));
    else if (key.startsWith("input.") || key.startsWith("output.")) found.append("where", `${key}:${value}`);
    else found.set(key, value);
  }
  if (texts.length > 0) found.set("text", texts.join(" "));
  return found;
}

/** `2h` means two hours ago; other texts are dates. */
function momentOf(value: string, now: number): number | undefined {
  const span = parseSpan(value);
  if (span !== undefined) return now - span;
  const at = Date.parse(value);
  return Number.isNaN(at) ? undefined : at;
}

/** True when the server has to read every run. */
export function scans(terms: readonly Term[]): boolean {
  return terms.some(({ key }) => key === "" || key.startsWith("input.") || key.startsWith("output.") || keys[key]?.scans === true);
}
