// The words that hold a reader up, and what to write instead. Checked are documents, comments, titles of tests, and the texts that
// programs print.
import { createRequire } from "node:module";
import type * as TypeScript from "typescript-6";

interface Word {
  readonly pattern: RegExp;
  readonly instead: string;
}

const WORDS: readonly Word[] = [
  { pattern: /\bunless (?:told|set|said)\b/gi, instead: "Default: ..." },
  { pattern: /\b(?:whoever|whomever)\b/gi, instead: "the caller, the client, the worker" },
  { pattern: /\b(?:nobody|somebody|anybody|everybody)\b/gi, instead: "no worker, another client, a caller" },
  { pattern: /\banew\b/gi, instead: "again" },
  { pattern: /\bfor (?:ever|good)\b/gi, instead: "permanently, without a limit" },
  { pattern: /\bin vain\b/gi, instead: "without a result" },
  { pattern: /\bwhatever becomes\b/gi, instead: "also when ... fails" },
  { pattern: /\b(?:stands?|stood) (?:in|on|at|below|beside|behind|before|still|there)\b/gi, instead: "is, waits, is stored" },
  { pattern: /\b(?:lies|lie|lay) (?:in|on|at|below|beside|behind|side|there|open)\b/gi, instead: "is, is stored" },
  { pattern: /\b(?:is|are) met\b/gi, instead: "is received, is reached" },
  { pattern: /\bcomes? to (?:an end|nothing|pass)\b/gi, instead: "ends, fails, happens" },
  { pattern: /\b(?:hears?|tells?|told) of\b/gi, instead: "is notified of, reports" },
  { pattern: /\bsigns? of life\b/gi, instead: "heartbeat" },
  { pattern: /\bwait for company\b/gi, instead: "wait for a batch" },
];

/** Lines that keep a word, with the reason. */
const KEPT: readonly RegExp[] = [
  // A text that earlier versions wrote into data files, where it is recognised.
  /error\?\.includes\("nobody took it"\)/,
  // The SQL of the schema is stored in data files with its comments.
  /^\s*-- /,
];

/** Returns one line for each word of the list in a Markdown or TypeScript file. */
export function findWordProblems(path: string, text: string): string[] {
  const found = WORDS.flatMap(({ pattern, instead }) => [...text.matchAll(pattern)].map((match) => ({ match, instead })));
  if (found.length === 0) return [];
  const isChecked = placesOf(path, text);
  return found
    .filter(({ match }) => isChecked(match.index) && !KEPT.some((kept) => kept.test(lineAt(text, match.index))))
    .map(({ match, instead }) => `${path}:${text.slice(0, match.index).split("\n").length}: "${match[0]}"; write ${instead}`);
}

/** A function that returns whether the text at an offset is checked. */
function placesOf(path: string, text: string): (offset: number) => boolean {
  if (path.endsWith(".md")) return not(fencesOf(text));
  const { strings, code } = tokensOf(text);
  // A string in a test is data, except for its title.
  return not(isTest(path) ? [...code, ...strings.filter(([from]) => !TITLE.test(lineAt(text, from)))] : code);
}

function isTest(path: string): boolean {
  return /\.test\.ts$|\/test\/|^packages\/conformance\//.test(path);
}

const TITLE = /^\s*(?:it|test|describe)\b/;

function lineAt(text: string, index: number): string {
  const end = text.indexOf("\n", index);
  return text.slice(text.lastIndexOf("\n", index) + 1, end === -1 ? text.length : end);
}

type Range = readonly [from: number, to: number];

function not(ranges: readonly Range[]): (offset: number) => boolean {
  return (offset) => !ranges.some(([from, to]) => offset >= from && offset < to);
}

/** Fenced blocks are programs and their output. */
function fencesOf(text: string): Range[] {
  return [...text.matchAll(/^( *)(`{3,})[^\n]*\n[\s\S]*?^\1\2 *$/gm)].map(({ index, 0: block }) => [index, index + block.length]);
}

/** Everything that is neither a string nor code is a comment. */
function tokensOf(text: string): { strings: Range[]; code: Range[] } {
  // Only files with a word of the list are parsed, so the compiler is loaded only when there is something to look at.
  const ts = createRequire(import.meta.url)("typescript-6") as typeof TypeScript;
  const source = ts.createSourceFile("text.ts", text, ts.ScriptTarget.Latest, true);
  const strings: Range[] = [];
  const code: Range[] = [];
  const visit = (node: TypeScript.Node): void => {
    const isString = ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node);
    const children = node.getChildren(source).filter((child) => !ts.isJSDoc(child));
    if (isString) strings.push([node.getStart(source), node.end]);
    else if (children.length === 0) code.push([node.getStart(source), node.end]);
    else for (const child of children) visit(child);
  };
  visit(source);
  return { strings, code };
}
