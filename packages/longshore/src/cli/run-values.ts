// The input and the outputs of a run for people: short values on one line, long ones as indented JSON. A terminal shows only the beginning
// of a long one.

import type { Run } from "./api.ts";
import { jsonText } from "./print-json.ts";
import { fit, type Paint } from "./terminal.ts";

/** The limit of lines of one value in a terminal. */
const linesMax = 40;
/** A longer value takes several lines, also in a file. */
const lineCharsMax = 100;

/** `input  {"a":1}`, or a heading and indented lines. Empty for null, which is also the value of a run without input. */
export function valueLines(name: "input" | "output", value: Run["input"], width: number, paint: Paint): string[] {
  if (value === null) return [];
  const heading = paint("dim", name.padEnd("output".length));
  const short = jsonText(value);
  if (short.length + "output  ".length <= Math.min(width, lineCharsMax)) return [`${heading}  ${short}`];
  const lines = jsonText(value, 2).split("\n");
  const shown = lines.slice(0, width === Infinity ? lines.length : linesMax);
  const more = lines.length - shown.length;
  return [
    heading,
    ...shown.map((line) => fit(`  ${line}`, width)),
    ...(more > 0 ? [paint("dim", `  … ${more} more lines; --json prints all`)] : []),
  ];
}

/** The output of a step on one line; nothing for null. */
export function outputLine(value: Run["output"], width: number, paint: Paint): string[] {
  return value === null ? [] : [paint("dim", fit(`    → ${jsonText(value)}`, width))];
}
