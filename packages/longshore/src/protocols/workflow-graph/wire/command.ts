// Determines what a command text runs: a handler or a shell. The protocol has no task type, only a text, so there is a convention
// (README.md, "Handlers"):
//
//   1. A JSON object with a text `handler`:    {"handler":"greet","input":{"name":"Ada"}}
//   2. `@name`, then optional JSON:            @greet {"name":"Ada"}
//   3. Anything else is a shell command.
//
// A text that starts like one of the first two but is not valid is an error, never a shell command: its content may come from a run's
// input, and a shell would run it. The server determines the kind of a definition's text once, and sends the kind with each job. Only when
// the server sends no kind does a worker determine it from the text.

import { deeperThan, isObject, jsonDepthMax } from "../../../core/json/json.ts";
import { isTaskName } from "../../../core/task.ts";
import { handlerLabelPrefix } from "./shapes.ts";

export type Command = { readonly kind: "shell" } | HandlerCall | { readonly kind: "broken"; readonly why: string };

/** The handler that a command names. Its input is a value, or the text behind `@name`, which need not be JSON. */
export type HandlerCall = { readonly kind: "handler"; readonly name: string } & ({ readonly input: unknown } | { readonly text: string });

const shell: Command = { kind: "shell" };
/** A call wraps its input in one object, and the input alone may have the maximum depth of JSON. */
const callDepthMax = jsonDepthMax + 1;

export function readCommand(command: string): Command {
  const start = command.trimStart();
  if (start.startsWith("@")) return readAt(start);
  return beginsLikeJson(start) ? readObject(start) : shell;
}

/** The label of the workers that can run this command. Undefined for a shell command, and for a name that no handler can have. */
export function handlerLabelOf(command: Command): string | undefined {
  return command.kind === "handler" && isTaskName(command.name) ? handlerLabelPrefix + command.name : undefined;
}

/** In a shell a brace opens a group only with a space behind it: `{ make; }` is a command; `{"a":1}` and `{ "a": 1 }` are JSON. */
function beginsLikeJson(start: string): boolean {
  return start.startsWith("{") && (/^\{[^\s]/.test(start) || /^\{\s+"(?:[^"\\]|\\.)*"\s*:/s.test(start));
}

function readObject(command: string): Command {
  if (deeperThan(command, callDepthMax)) return broken(`The input of the handler nests deeper than ${jsonDepthMax} levels.`);
  let value: unknown;
  try {
    value = JSON.parse(command);
  } catch (error) {
    return broken(`The command begins like a JSON object but is not valid JSON: ${(error as Error).message}.`);
  }
  if (isObject(value) && typeof value.handler === "string") return { kind: "handler", name: value.handler, input: value.input };
  return broken('The command is a JSON object without a text `handler`. Expected for example: {"handler":"greet","input":{"name":"Ada"}}');
}

function readAt(command: string): Command {
  const end = command.search(/\s/);
  const name = command.slice(1, end === -1 ? undefined : end);
  if (!/^[\w./:-]+$/.test(name)) {
    return broken(`The command begins with @, but ${JSON.stringify(name.slice(0, 100))} is not a valid handler name.`);
  }
  return { kind: "handler", name, text: end === -1 ? "" : command.slice(end).trim() };
}

function broken(why: string): Command {
  return { kind: "broken", why };
}
