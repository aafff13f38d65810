// The client of a server in the program's own process: the same interface as over HTTP, without a socket.

import type {
  CallOptions,
  Client,
  DefinitionFilter,
  EmitOptions,
  EmittedEvent,
  ExecuteOptions,
  RunFilter,
  RunHandle,
  RunStatus,
  StartOptions,
  WorkflowVersion,
} from "../client/client.ts";
import { withDeadline } from "../client/deadline.ts";
import { taskOutputOf } from "../client/run-failed.ts";
import type { ScheduleFilter, ScheduleHandle, ScheduleInfo } from "../client/schedule.ts";
import { callingRun } from "../core/calling-run.ts";
import { durationMs } from "../core/duration.ts";
import { idOfUuid } from "../core/ids.ts";
import { toJson } from "../core/json/to-json.ts";
import { checkStartInput } from "../core/schema/schema.ts";
import type { Task } from "../core/task.ts";
import { untilAborted } from "../core/until-aborted.ts";
import { looseTask } from "../engine/board/loose-task.ts";
import { checkEvent } from "../engine/event/store.ts";
import type { Definition } from "../engine/run/dialect.ts";
import type { Workflow } from "../workflow-value.ts";
import type { Engine } from "./engine.ts";
import { LocalRun, statusOf } from "./local-run.ts";
import { LocalSchedule, type LocalScheduleDeps, scheduleInfo } from "./local-schedule.ts";
import { type Define, defining } from "./program-definitions.ts";

/** The page size: few reads for a long list, and little in memory. */
const pageItems = 200;

export interface LocalClientDeps extends LocalScheduleDeps, Pick<Engine, "events"> {}

export class LocalClient implements Client {
  readonly #deps: LocalClientDeps;
  readonly define: Define;

  constructor(deps: LocalClientDeps) {
    this.#deps = deps;
    const { runs, schedules } = deps;
    this.define = defining({ define: (definition) => runs.define(definition), put: (wanted) => schedules.put(wanted) });
  }

  async start<Output>(workflow: string | Workflow, input?: unknown, options: StartOptions = {}): Promise<RunHandle<Output>> {
    options.signal?.throwIfAborted();
    if (typeof workflow !== "string") await checkStartInput(workflow, input);
    const name = typeof workflow === "string" ? workflow : (await this.define(workflow)).name;
    const { key, delay, priority } = options;
    const delayMs = delay === undefined ? 0 : durationMs(delay, "delay");
    const { run } = await this.#deps.runs.start({ workflow: name, input: JSON.stringify(toJson(input)), key, delayMs, priority });
    return this.run(run.id);
  }

  execute<Output>(workflow: string | Workflow, input?: unknown, options: ExecuteOptions = {}): Promise<Output> {
    const what = `The run of ${typeof workflow === "string" ? workflow : workflow.name}`;
    return withDeadline(options, { clock: this.#deps.clock, what }, async (signal) => {
      const run = await this.start<Output>(workflow, input, { ...options, ...(signal === undefined ? {} : { signal }) });
      return run.result({ ...(signal === undefined ? {} : { signal }) });
    });
  }

  async emit(event: string, payload?: unknown, { key, signal }: EmitOptions = {}): Promise<EmittedEvent> {
    signal?.throwIfAborted();
    const { events, makeId, clock } = this.#deps;
    const newId = () => makeId(clock.now());
    checkEvent(event, key);
    const sent = { name: event, payload: JSON.stringify(toJson(payload)), key: key ?? newId(), runId: callingRun() };
    const started = await events.emit(sent, newId);
    return { event, runs: started.map(({ run, created }) => ({ workflow: run.workflow, id: run.id, created })) };
  }

  run<Output>(id: string): RunHandle<Output> {
    return new LocalRun<Output>(this.#deps, idOfUuid(id) ?? id);
  }

  async *runs({ workflow, state, signal }: RunFilter = {}): AsyncGenerator<RunStatus, void, void> {
    const { reader, shown } = this.#deps;
    for (let before: string | null | undefined; before !== null; ) {
      signal?.throwIfAborted();
      const page = await reader.runs({ workflow, state, limit: pageItems, ...(before === undefined ? {} : { before }) });
      for (const run of page.items) yield statusOf(await shown.run(run));
      before = page.next;
    }
  }

  async call<Output>(task: string | Task, input?: unknown, options: CallOptions = {}): Promise<Output> {
    const { board, makeId, clock } = this.#deps;
    const { delay, timeout, signal, labels, priority } = options;
    signal?.throwIfAborted();
    const { name, retry, timeoutMs } = typeof task === "string" ? { name: task } : task;
    // One object without spreads: this is done for every call.
    const performed = board.perform(
      looseTask({
        id: makeId(clock.now()),
        task: name,
        input: JSON.stringify(toJson(input)),
        labels,
        retry: options.retry ?? retry,
        priority,
        delayMs: delay === undefined ? undefined : durationMs(delay, "delay"),
        timeoutMs: timeout === undefined ? timeoutMs : durationMs(timeout, "timeout"),
      }),
    );
    const { step, state, error, output } = await (signal === undefined ? performed : untilAborted(performed, signal));
    return taskOutputOf({ step, state, error, output: JSON.parse(output ?? "null") }) as Output;
  }

  async *definitions({ dialect, signal }: DefinitionFilter = {}): AsyncGenerator<WorkflowVersion, void, void> {
    for (let offset = 0; ; offset += pageItems) {
      signal?.throwIfAborted();
      const page = await this.#deps.reader.definitions({ limit: pageItems, offset, dialect });
      for (const definition of page) yield versionOf(definition);
      if (page.length < pageItems) return;
    }
  }

  schedule(name: string): ScheduleHandle {
    return new LocalSchedule(this.#deps, name);
  }

  async *schedules({ workflow, signal }: ScheduleFilter = {}): AsyncGenerator<ScheduleInfo, void, void> {
    for (let after: string | null | undefined; after !== null; ) {
      signal?.throwIfAborted();
      const page = await this.#deps.schedules.list({ limit: pageItems, workflow, ...(after === undefined ? {} : { after }) });
      for (const row of page.items) yield scheduleInfo(row);
      after = page.next;
    }
  }
}

function versionOf({ id, name, version, dialect, createdAt }: Definition): WorkflowVersion {
  return { id, name, version, dialect, createdAt };
}
