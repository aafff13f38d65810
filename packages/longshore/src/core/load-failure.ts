// Explains why a module of the user could not be loaded: the place in the user's file and the reason, without stack frames of other files.

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** The message for people about an error that was thrown while `file` was imported. */
export function loadFailure(file: string, error: Error): string {
  const found = mistakeOf(error) ?? (isUnplacedSyntaxError(error) ? searchMistake(resolve(file)) : undefined);
  if (found !== undefined) return `${file} could not be loaded.\n${textOf(found)}`;
  return `${file} could not be loaded: ${[headOf(error), ...ownFrames(error)].join("\n")}`;
}

interface Mistake {
  readonly path: string;
  readonly line: number;
  readonly column: number | undefined;
  readonly message: string;
  /** The line of the file with a mark below the mistake. */
  readonly excerpt: readonly string[];
}

function textOf({ path, line, column, message, excerpt }: Mistake): string {
  return [`${shownPath(path)}:${line}${column === undefined ? "" : `:${column}`}: ${message}`, ...excerpt].join("\n");
}

/** The place that an error names itself. */
function mistakeOf(error: Error): Mistake | undefined {
  return placeAbove(error.stack ?? "") ?? placeInside(error.message);
}

/** Node puts the place and the line of the file above the message of some syntax errors. */
function placeAbove(text: string): Mistake | undefined {
  const lines = text.split("\n");
  const place = /^(file:\/\/\S+|(?:\/|[A-Za-z]:\\).+):(\d+)$/.exec(lines[0] ?? "");
  const end = lines.findIndex((each) => each.startsWith("SyntaxError"));
  if (place === null || end === -1) return undefined;
  const [, where = "", line] = place;
  const message = lines[end] as string;
  const excerpt = lines.slice(1, end).filter((each) => each.trim() !== "");
  const mark = excerpt.findIndex((each) => /^\s*\^+\s*$/.test(each));
  const column = mark === -1 ? undefined : (excerpt[mark] as string).indexOf("^") + 1;
  const shown = mark === -1 ? excerpt : excerpt.slice(Math.max(0, mark - 1), mark + 1);
  return { path: pathOf(where), line: Number(line), column, message: message.replace(/ \[\w+\]/, ""), excerpt: shown };
}

const tsxMark = ": ERROR: ";

/** tsx names the place in the message: `/folder/app.ts:3:12: ERROR: Unexpected ";"`. Its columns begin at 0. */
function placeInside(text: string): Mistake | undefined {
  const found = text.split("\n").find((each) => each.includes(tsxMark)) ?? "";
  const mark = found.indexOf(tsxMark);
  const place = /:(\d{1,9}):(\d{1,9})$/.exec(found.slice(0, Math.max(0, mark)));
  if (place === null) return undefined;
  const [, line, column] = place;
  const path = found.slice(0, place.index);
  const message = found.slice(mark + tsxMark.length);
  const source = existsSync(path) ? readFileSync(path, "utf8").split("\n")[Number(line) - 1] : undefined;
  const excerpt = source === undefined ? [] : [source, `${" ".repeat(Number(column))}^`];
  return { path, line: Number(line), column: Number(column) + 1, message: `SyntaxError: ${message}`, excerpt };
}

function isUnplacedSyntaxError(error: Error): boolean {
  return error.name === "SyntaxError" && ownFrames(error).length === 0;
}

/** How many files are checked for the mistake. */
const checkedMax = 50;

/** For a mistake in a module Node reports no place. So each file is checked by itself: this one, then the files that it imports. */
function searchMistake(start: string): Mistake | undefined {
  const files = [start];
  for (const file of files) {
    if (!/\.[cm]?js$/.test(file) || !existsSync(file)) continue;
    const { stderr } = spawnSync(process.execPath, ["--check", file], { encoding: "utf8" });
    const found = placeAbove(stderr);
    if (found !== undefined) return found;
    for (const next of importedBy(file)) if (!files.includes(next) && files.length < checkedMax) files.push(next);
  }
  return undefined;
}

function importedBy(file: string): string[] {
  const specifiers = readFileSync(file, "utf8").matchAll(/\b(?:from|import)\s{0,9}\(?\s{0,9}["'](\.{1,2}\/[^"']+)["']/g);
  return [...specifiers].map(([, specifier = ""]) => resolve(dirname(file), specifier));
}

function headOf(error: Error): string {
  const name = error.name || "Error";
  return error.message === "" ? name : `${name}: ${error.message}`;
}

/** The folder of this package's own code. */
const ownFolder = resolve(dirname(fileURLToPath(import.meta.url)), "..");

/** The frames of the stack in files of the user. */
function ownFrames(error: Error): string[] {
  const frames = (error.stack ?? "").split("\n").filter((line) => /^\s+at /.test(line));
  return frames.filter((frame) => /[/\\]/.test(frame) && !/\bnode:|[/\\]node_modules[/\\]/.test(frame) && !frame.includes(ownFolder));
}

function pathOf(where: string): string {
  return where.startsWith("file:") ? fileURLToPath(where) : where;
}

/** Relative to the working folder, if it is below that. */
function shownPath(path: string): string {
  const below = relative(process.cwd(), path);
  return below === "" || below.startsWith("..") ? path : below;
}
