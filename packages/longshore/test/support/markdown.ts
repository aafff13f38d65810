// Reads the parts of a document that tests compare with the code: its sections and the tables in them.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export interface Section {
  readonly title: string;
  /** Everything below the heading, up to the next one. */
  readonly text: string;
  /** The cells of its table rows, without the head. */
  readonly rows: readonly (readonly string[])[];
}

/** A file of the repository, by its path. */
export function readDocument(path: string): string {
  return readFileSync(fileURLToPath(new URL(`../../../../${path}`, import.meta.url)), "utf8");
}

/** The sections of one level of headings; deeper headings belong to their section. */
export function sectionsOf(text: string, level = 2): Section[] {
  const mark = `${"#".repeat(level)} `;
  return `\n${text}`
    .split(`\n${mark}`)
    .slice(1)
    .map((part) => {
      const [title = "", ...lines] = part.split("\n");
      return { title: title.trim(), text: lines.join("\n"), rows: rowsOf(lines) };
    });
}

export function section(text: string, title: string): Section {
  const found = sectionsOf(text).find((one) => one.title === title);
  if (found === undefined) throw new Error(`There is no section "${title}".`);
  return found;
}

/** The rows of all tables among these lines. A table begins with its head and a line of dashes. */
function rowsOf(lines: readonly string[]): string[][] {
  const rows: string[][] = [];
  for (const [at, line] of lines.entries()) {
    const isHead = /^\|[\s|:-]+\|$/.test(lines[at + 1] ?? "");
    if (line.startsWith("|") && !isHead && !/^\|[\s|:-]+\|$/.test(line)) rows.push(cellsOf(line));
  }
  return rows;
}

function cellsOf(line: string): string[] {
  return line
    .slice(1, -1)
    .split("|")
    .map((cell) => cell.trim());
}

/** The content of `...` in a cell that holds nothing else; the cell itself otherwise. */
export function unquoted(cell: string): string {
  return /^`([^`]*)`$/.exec(cell)?.[1] ?? cell;
}
