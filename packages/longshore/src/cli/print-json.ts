// JSON on standard output. JSON.stringify escapes the control characters up to U+001F and leaves those from U+007F to U+009F as they are; a
// terminal takes some of them for commands, and what workers report is in this JSON. Escaped they mean the same to every reader of JSON.

import { writeExact } from "../core/json/json-exact.ts";

const rawControls = /[\u007f-\u009f]/g;

export function printJson(value: unknown, space?: number): void {
  process.stdout.write(`${jsonText(value, space)}\n`);
}

export function jsonText(value: unknown, space?: number): string {
  return writeExact(value, space).replace(rawControls, (found) => `\\u00${found.charCodeAt(0).toString(16)}`);
}
