// Finds the files that match a pattern such as `workers/**/*.ts`. Most shells do not expand `**`, and none expands a quoted pattern.

import { type Dirent, existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { CommandFailure } from "./failure.ts";

/** A pattern that reads more folders than this probably begins at the wrong folder. */
const foldersMax = 10_000;
const ignored = /^(node_modules|\..+)$/;
const source = /\.[cm]?[jt]sx?$/;
/** Type declarations that a compiler has written. */
const declarations = /\.d\.[cm]?[jt]sx?$/;

export interface FoundFile {
  readonly file: string;
  /** True for a file that a pattern matched: it need not export a task. */
  readonly byPattern: boolean;
}

/** All files of the arguments, each once. Throws for a pattern that matches no file. */
export function findFiles(patterns: readonly string[]): FoundFile[] {
  const found = new Map<string, FoundFile>();
  for (const pattern of patterns) {
    const matches = isPattern(pattern) ? matching(pattern) : [{ file: pattern, byPattern: false }];
    if (matches.length === 0) throw new CommandFailure(`no file matches ${pattern} (looked below ${baseOf(pattern)}).`);
    for (const match of matches) if (found.get(match.file)?.byPattern !== false) found.set(match.file, match);
  }
  return [...found.values()];
}

/** A name with a wildcard is not a pattern when a file has this name, such as `[id].ts`. */
function isPattern(text: string): boolean {
  return /[*?[{]/.test(text) && !existsSync(text);
}

function matching(pattern: string): FoundFile[] {
  const expression = toExpression(normal(pattern));
  const files = filesBelow(baseOf(pattern)).filter((file) => source.test(file) && !declarations.test(file) && expression.test(file));
  return files.sort().map((file) => ({ file, byPattern: true }));
}

/** The folder before the first part with a wildcard. */
function baseOf(pattern: string): string {
  const pieces = normal(pattern).split("/");
  const first = pieces.findIndex((piece) => /[*?[{]/.test(piece));
  return pieces.slice(0, first).join("/") || (pattern.startsWith("/") ? "/" : ".");
}

function normal(pattern: string): string {
  return pattern.replaceAll("\\", "/").replace(/^(\.\/)+/, "");
}

function filesBelow(base: string): string[] {
  const folders = [base];
  const files: string[] = [];
  for (const folder of folders) {
    for (const entry of entriesOf(folder)) {
      if (ignored.test(entry.name)) continue;
      const path = folder === "." ? entry.name : join(folder, entry.name).replaceAll("\\", "/");
      if (entry.isDirectory()) folders.push(path);
      else files.push(path);
    }
    if (folders.length > foldersMax)
      throw new CommandFailure(`more than ${foldersMax} folders are below ${base}: name a folder further down.`);
  }
  return files;
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    // The folder does not exist or cannot be read, so there is nothing to load.
    return [];
  }
}

/** `**` matches any folders, `*` and `?` anything but a slash, `{a,b}` one of them, `[ab]` one of the characters. */
function toExpression(pattern: string): RegExp {
  const pieces = pattern.match(/\*\*\/|\*\*|\*|\?|\[[^\]]+\]|\{[^}]*\}|[^*?[{]+|[[{]/g) ?? [];
  return new RegExp(`^${pieces.map(pieceExpression).join("")}$`);
}

function pieceExpression(piece: string): string {
  if (piece === "**/") return "(?:[^/]+/)*";
  if (piece === "**") return ".*";
  if (piece === "*") return "[^/]*";
  if (piece === "?") return "[^/]";
  if (piece.startsWith("[") && piece.endsWith("]")) return piece.replace(/^\[!/, "[^").replaceAll("\\", "\\\\");
  if (piece.startsWith("{") && piece.endsWith("}")) return `(?:${piece.slice(1, -1).split(",").map(literal).join("|")})`;
  return literal(piece);
}

function literal(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}
