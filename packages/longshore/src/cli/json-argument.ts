// A JSON value from the command line, a file, or standard input.

import { readFileSync } from "node:fs";
import { parseExact } from "../core/json/json-exact.ts";
import { readNamedFile } from "../core/read-named-file.ts";
import { CommandFailure } from "./failure.ts";

/** `text` is JSON, `@FILE` for a file, or `-` for standard input. `what` is the name of the argument in errors. */
export function jsonOf(text: string, what: string): unknown {
  const json = text === "-" ? readFileSync(0, "utf8") : text.startsWith("@") ? readInput(text.slice(1)) : text;
  try {
    return parseExact(json);
  } catch (cause) {
    const message = `${what} is not JSON: ${(cause as Error).message}. Expected for example '{"name":"Ada"}' or '"a text"'.`;
    throw new CommandFailure(message, undefined, { cause });
  }
}

function readInput(path: string): string {
  try {
    return readNamedFile(path).toString();
  } catch (cause) {
    throw new CommandFailure(`the input file ${path} cannot be read: ${(cause as Error).message}.`, undefined, { cause });
  }
}
