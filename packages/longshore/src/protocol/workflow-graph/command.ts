// Which handler a command means. The protocol has no task type, only a command text, so there is a convention (README.md, "Handlers"):
//
//   1. A JSON object with a text `handler`:    {"handler":"greet","input":{"name":"Ada"}}
//   2. `@name`, then optional JSON:            @greet {"name":"Ada"}
//   3. Anything else is a shell command.
//
// Workers go by it to find their handler, the server to find a worker that has it.

import { deeperThan, isObject } from "../../json.ts";
import { isTaskName } from "../../task.ts";
import { handlerLabelPrefix } from "./wire.ts";

/** The handler that a command names. Its input is a value, or what stands behind `@name`, which need not be JSON. */
export type NamedHandler = { readonly name: string; readonly input: unknown } | { readonly name: string; readonly text: string };

/** Undefined for a shell command. */
export function handlerOf(command: string): NamedHandler | undefined {
  return parseObject(command) ?? parseAt(command);
}

/** The label of the workers that can run this command; undefined for a shell command and for a name that no handler can have. */
export function handlerLabelOf(command: string): string | undefined {
  const name = handlerOf(command)?.name;
  return name === undefined || !isTaskName(name) ? undefined : handlerLabelPrefix + name;
}

function parseObject(command: string): NamedHandler | undefined {
  if (!command.trimStart().startsWith("{")) return undefined;
  let value: unknown;
  try {
    value = deeperThan(command) ? undefined : JSON.parse(command);
  } catch {
    // `{ make; }` is a shell command that happens to begin with a brace.
    return undefined;
  }
  return isObject(value) && typeof value.handler === "string" ? { name: value.handler, input: value.input } : undefined;
}

function parseAt(command: string): NamedHandler | undefined {
  const match = /^\s*@([\w./:-]+)(?:\s+([\s\S]*))?$/.exec(command);
  return match === null ? undefined : { name: match[1] as string, text: (match[2] ?? "").trim() };
}
