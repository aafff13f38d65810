// Shortens texts of a report for storage in a row.

import { parseExact, writeExact } from "../../core/json/json-exact.ts";
import { cutMiddle } from "../../core/text.ts";
import type { Report } from "./store.ts";
import type { TaskRow } from "./task.ts";

/**
 * Maximum length of an error. Lists of runs and attempts contain the error of each entry, so the size of errors is limited here. Outputs
 * may be large: the lists count their size.
 */
const errorCharsMax = 16_384;

/**
 * Returns an error as a row stores it. A long error is cut in the middle. NUL is removed, because SQLite reads a text only up to its first
 * NUL.
 */
export function keptError(text: string): string {
  const readable = text.includes("\0") ? text.replaceAll("\0", "\ufffd") : text;
  // A copy: a substring keeps the whole text in memory.
  return readable.length <= errorCharsMax ? readable : Buffer.from(cutMiddle(readable, errorCharsMax)).toString();
}

export function merged(task: TaskRow, report: Report & { verb: "complete" }): string {
  if (!report.merge || task.output === null) return report.output;
  return writeExact({ ...(parseExact(task.output) as object), ...(parseExact(report.output) as object) });
}
