// Texts of a report as a row keeps them.

import { parseExact, writeExact } from "../../core/json/json-exact.ts";
import { cutMiddle } from "../../core/text.ts";
import type { Report } from "./store.ts";
import type { TaskRow } from "./task.ts";

/** Of an error. Lists of runs and attempts have the error of each, whatever a worker reports; outputs, which may be large, are counted there. */
const errorCharsMax = 16_384;

/** The error of a program as a row keeps it: head and tail of a long one, and without NUL, at which SQLite's texts end when they are read back. */
export function keptError(text: string): string {
  const readable = text.includes("\0") ? text.replaceAll("\0", "\ufffd") : text;
  // Copied: a part of a text keeps the whole of it in memory.
  return readable.length <= errorCharsMax ? readable : Buffer.from(cutMiddle(readable, errorCharsMax)).toString();
}

export function merged(task: TaskRow, report: Report & { verb: "complete" }): string {
  if (!report.merge || task.output === null) return report.output;
  return writeExact({ ...(parseExact(task.output) as object), ...(parseExact(report.output) as object) });
}
