// Regular expressions of `=~ /.../i`. As in Jayway, a pattern is Java's and must match the whole text.

import { type LinearPattern, linearPattern, PatternError } from "../../../../core/pattern/linear-pattern.ts";
import { PathError } from "./path-error.ts";

export type Pattern = LinearPattern;

export function compilePattern(source: string, flags: string): Pattern {
  for (const flag of flags) if (!"imsuxUd".includes(flag)) throw new PathError(`the flag ${flag} of /${source}/ is not known`);
  try {
    return linearPattern(source, { ignoreCase: flags.includes("i"), dotAll: flags.includes("s"), whole: true });
  } catch (error) {
    throw error instanceof PatternError ? new PathError(error.message) : error;
  }
}
