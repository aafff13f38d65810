// The handlers' side: loads the modules, calls handlers on request, and sends back how they ended. Leases, reports and slots stay with the
// runner.

import { isDeferral, isEnding, withContext } from "../../core/context.ts";
import { LongshoreError, refusal, toError } from "../../core/errors.ts";
import { toJson } from "../../core/json/to-json.ts";
import { declaredTasks, exportedTasks, importForTasks } from "../../core/load.ts";
import { validate } from "../../core/schema/schema.ts";
import type { Task } from "../../core/task.ts";
import { type FromHandlers, type HandlerModules, packError, type ToHandlers } from "./messages.ts";
import { type Line, RemoteCall } from "./remote-context.ts";

export class Handlers {
  readonly #line: Line;
  readonly #tasks = new Map<string, Task>();
  readonly #calls = new Map<number, RemoteCall>();

  constructor(line: Line) {
    this.#line = line;
  }

  /** Loads the modules and reports whether that succeeded. */
  async load({ files }: HandlerModules): Promise<void> {
    try {
      const exported: Task[] = [];
      for (const file of files) exported.push(...exportedTasks(await importForTasks(file)));
      for (const task of [...declaredTasks(), ...exported]) this.#tasks.set(task.name, task);
      this.#line.post({ kind: "ready", tasks: [...this.#tasks.keys()] });
    } catch (error) {
      this.#line.post({ kind: "refused", error: packError(error) });
    }
  }

  take(message: ToHandlers): void {
    if (message.kind === "call") void this.#call(message);
    else if (message.kind === "stop") this.#calls.get(message.call)?.stop(message.reason);
    else this.#calls.get(message.call)?.answer(message.ask, message.value, message.error);
  }

  async #call({ call, task: name, input, context }: Extract<ToHandlers, { kind: "call" }>): Promise<void> {
    const remote = new RemoteCall(call, name, context, this.#line);
    this.#calls.set(call, remote);
    const ended = await this.#perform(name, input, remote, call);
    this.#calls.delete(call);
    remote.end();
    this.#line.post(ended);
  }

  async #perform(name: string, input: unknown, remote: RemoteCall, call: number): Promise<FromHandlers> {
    try {
      const task = this.#tasks.get(name);
      if (task === undefined)
        throw new LongshoreError("LONGSHORE_NO_HANDLER", `No task named "${name}" is exported by the loaded modules.`);
      const valid = task.input === undefined ? input : await validate(task.input, input, "input");
      const value = await withContext(remote.context, async () => task.handle(valid, remote.context));
      return { kind: "returned", call, value: await sendable(task, value) };
    } catch (error) {
      return { kind: "threw", call, error: packError(error) };
    }
  }
}

/** The handler's value after validation, as plain data. */
async function sendable(task: Task, value: unknown): Promise<unknown> {
  if (isDeferral(value)) return { ...value, output: value.output === undefined ? undefined : json(value.output) };
  if (isEnding(value) && value.outcome.kind === "failed") {
    const { output } = value.outcome;
    return { ...value, outcome: { ...value.outcome, ...(output === undefined ? {} : { output: json(output) }) } };
  }
  const result = isEnding(value) ? value.outcome.output : value;
  return json(task.output === undefined ? result : await validate(task.output, result, "output"));
}

function json(value: unknown): unknown {
  try {
    return toJson(value);
  } catch (error) {
    throw refusal("LONGSHORE_BAD_OUTPUT", `The handler's result is not JSON: ${toError(error).message}`);
  }
}
