// From a job to the call of a handler, with its input: README.md, "Handlers". Which handler a command means is read in command.ts.

import { refusal } from "../../errors.ts";
import { deeperThan, isObject, jsonDepthMax } from "../../json.ts";
import type { Call } from "../../runner/transport.ts";
import type { Task } from "../../task.ts";
import { handlerOf, type NamedHandler } from "./command.ts";
import type { QueuedJob } from "./wire.ts";

type Upstream = QueuedJob["upstream_outputs"];

/** How many handler names an error lists. */
const namesMax = 20;

/** Throws a TerminalError when the command names no handler of this worker, or is a shell command and `shell` is undefined. */
export function dispatch(job: QueuedJob, tasks: ReadonlyMap<string, Task>, shell: Task | undefined): Call {
  const { command, upstream_outputs: upstream } = job;
  const named = handlerOf(command);
  if (named === undefined) return shellCall(job, shell);
  const input = inputOf(named);
  const found = tasks.get(named.name);
  if (found === undefined) throw unknownHandler(named.name, tasks);
  return { task: found, input: withUpstream(input, upstream), upstream };
}

function inputOf(named: NamedHandler): unknown {
  if (!("text" in named)) return named.input;
  const { name, text } = named;
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

/** Nothing counts as an empty object. */
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
