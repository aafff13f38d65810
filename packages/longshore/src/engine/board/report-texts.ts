// Texts of a report as a row keeps them.

import { parseExact, writeExact } from "../../json-exact.ts";
import type { Report } from "./store.ts";
import type { Task } from "./task.ts";

/** SQLite's texts end at the first NUL when they are read back. So the text of a program stays readable. */
export function withoutNul(text: string): string {
  return text.replaceAll("\u0000", "\ufffd");
}

export function merged(task: Task, report: Report & { verb: "complete" }): string {
  if (!report.merge || task.output === null) return report.output;
  return writeExact({ ...(parseExact(task.output) as object), ...(parseExact(report.output) as object) });
}
