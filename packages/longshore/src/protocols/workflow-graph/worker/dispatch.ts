// Turns a job into the call of a handler, with its input: README.md, "Handlers". command.ts finds the handler of a command.

import { refusal } from "../../../core/errors.ts";
import { deeperThan, isObject, jsonDepthMax } from "../../../core/json/json.ts";
import type { Task } from "../../../core/task.ts";
import type { Call } from "../../../runner/transport.ts";
import { type Command, type HandlerCall, readCommand } from "../wire/command.ts";
import type { QueuedJob } from "../wire/shapes.ts";

type Upstream = QueuedJob["upstream_outputs"];

/** How many handler names an error lists. */
const namesMax = 20;

/** Throws a TerminalError when the command names no handler of this worker, or is a shell command and `shell` is undefined. */
export function dispatch(job: QueuedJob, tasks: ReadonlyMap<string, Task>, shell: Task | undefined): Call {
  const command = commandOf(job);
  if (command.kind === "broken") throw badInput(command.why);
  if (command.kind === "shell") return shellCall(job, shell);
  const input = inputOf(command);
  const found = tasks.get(command.name);
  if (found === undefined) throw unknownHandler(command.name, tasks);
  const { upstream_outputs: upstream } = job;
  return { task: found, input: withUpstream(input, upstream), upstream };
}

/** The `kind` of the job decides. A server that sends no kind puts no data into commands, so their text can decide. */
function commandOf(job: QueuedJob): Command {
  const { kind, command } = job;
  if (kind === "shell") return { kind };
  if (kind !== undefined && kind !== "handler") {
    throw badInput(
      `Job ${job.job_id} is of the kind ${JSON.stringify(kind)}, expected "shell" or "handler". Is this worker older than its server?`,
    );
  }
  const read = readCommand(command);
  if (kind === undefined || read.kind !== "shell") return read;
  return { kind: "broken", why: `Job ${job.job_id} is a handler call, and its command names no handler.` };
}

function inputOf(call: HandlerCall): unknown {
  if (!("text" in call)) return call.input;
  const { name, text } = call;
  if (text === "") return undefined;
  if (deeperThan(text)) throw badInput(`The input after @${name} nests deeper than ${jsonDepthMax} levels.`);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw badInput(`The text after @${name} is not JSON: ${(error as Error).message}. Expected for example: @${name} {"name":"Ada"}`);
  }
}

function badInput(message: string): Error {
  return refusal("LONGSHORE_BAD_INPUT", message, "command");
}

/** A missing input counts as an empty object. */
function withUpstream(input: unknown, upstream: Upstream): unknown {
  if (input !== undefined && !isObject(input)) return input;
  const base = input ?? {};
  if (Object.keys(upstream).length === 0 || Object.hasOwn(base, "upstreamOutputs")) return base;
  return { ...base, upstreamOutputs: upstream };
}

function shellCall(job: QueuedJob, shell: Task | undefined): Call {
  if (shell !== undefined) return { task: shell, input: job, upstream: job.upstream_outputs };
  const message = `Job ${job.job_id} is a shell command and this worker runs none: start it with --shell (or shell: true), or write the command as @name {"input":"as JSON"}.`;
  throw refusal("LONGSHORE_SHELL_OFF", message, "command");
}

function unknownHandler(name: string, tasks: ReadonlyMap<string, Task>): Error {
  const known = [...tasks.keys()].sort();
  const listed = known.slice(0, namesMax).join(", ") + (known.length > namesMax ? ` and ${known.length - namesMax} more` : "");
  const message = `No handler is named "${name}" here; this worker knows ${known.length === 0 ? "none" : listed}.`;
  return refusal("LONGSHORE_NO_HANDLER", message, "handler");
}
