// Prints JSON on standard output. JSON.stringify escapes the control characters up to U+001F but not those from U+007F to U+009F. A
// terminal executes some of them as commands, and the JSON contains text from workers. JSON parsers read the escaped form as the same text.

import { writeExact } from "../core/json/json-exact.ts";

const rawControls = /[\u007f-\u009f]/g;

export function printJson(value: unknown, space?: number): void {
  process.stdout.write(`${jsonText(value, space)}\n`);
}

export function jsonText(value: unknown, space?: number): string {
  return writeExact(value, space).replace(rawControls, (found) => `\\u00${found.charCodeAt(0).toString(16)}`);
}
