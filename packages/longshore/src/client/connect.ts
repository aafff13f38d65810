// The client over HTTP. It uses only `fetch`, so it works in Node, Deno, Bun and browsers.

import { callingRun } from "../core/calling-run.ts";
import type { Clock } from "../core/clock.ts";
import { type Duration, durationMs } from "../core/duration.ts";
import { LongshoreError } from "../core/errors.ts";
import { toJson } from "../core/json/to-json.ts";
import { checkStartInput } from "../core/schema/schema.ts";
import type { Task } from "../core/task.ts";
import { workflowFamily } from "../core/workflow-family.ts";
import type { Schedule } from "../schedule.ts";
import type { Workflow } from "../workflow-value.ts";
import { isSchedule, scheduledWorkflow } from "./checked-schedule.ts";
import type {
  CallOptions,
  Client,
  DefinitionFilter,
  EmitOptions,
  EmittedEvent,
  ExecuteOptions,
  RequestOptions,
  RunFilter,
  RunHandle,
  RunStatus,
  StartOptions,
  WorkflowVersion,
} from "./client.ts";
import { withDeadline } from "./deadline.ts";
import { type Ending, endWaitMs, untilEnded } from "./end-poll.ts";
import { newId } from "./new-id.ts";
import { pagesOf } from "./pages.ts";
import { Requests } from "./requests.ts";
import { outputOf, taskOutputOf } from "./run-failed.ts";
import { HttpRun } from "./run-handle.ts";
import type { DefinedSchedule, ScheduleFilter, ScheduleHandle, ScheduleInfo } from "./schedule.ts";
import { HttpSchedule, schedulePath } from "./schedule-handle.ts";
import { timers } from "./timers.ts";

/** The options of `connect()`. */
export interface ConnectOptions {
  /** The token of the server, where it requires one. */
  token?: string;
  /** How long a request is repeated while no server responds, such as during a restart. Default: 30s. */
  retryFor?: Duration;
  /** Replaces the `fetch` of the runtime, for example to trust a certificate. */
  fetch?: typeof fetch;
}

const retryForDefault: Duration = "30s";

/**
 * Connects to a server. Sends nothing yet: with a wrong address or token, the first request fails. Throws LONGSHORE_BAD_CONFIG for a text that
 * is not the URL of a server.
 */
export function connect(url: string | URL, options: ConnectOptions = {}): Client {
  return connectBy(url, options, timers);
}

/** The same with another clock, for tests. */
export function connectBy(
  url: string | URL,
  { token, retryFor = retryForDefault, fetch = globalThis.fetch }: ConnectOptions,
  clock: Clock,
): Client {
  const patienceMs = durationMs(retryFor, "retryFor");
  // In browsers, `fetch` fails when it is called as a method of an object other than the window.
  const send: typeof fetch = (input, init) => fetch(input, init);
  return new HttpClient(new Requests({ base: parseUrl(url), token, fetch: send, clock, patienceMs }));
}

/** The fields of a task that are read here, as the API returns them. */
interface TaskBody extends Ending {
  readonly id: string;
  readonly step: string;
  readonly state: string;
  readonly output: unknown;
  readonly error: string | null;
}

class HttpClient implements Client {
  readonly #requests: Requests;
  /** Workflow values that this client has already defined: a start of one of them is a single request. */
  readonly #defined = new WeakMap<Workflow, Promise<WorkflowVersion>>();

  constructor(requests: Requests) {
    this.#requests = requests;
  }

  async start<Output>(workflow: string | Workflow, input?: unknown, options: StartOptions = {}): Promise<RunHandle<Output>> {
    return this.run((await this.#started(workflow, input, options)).id);
  }

  execute<Output>(workflow: string | Workflow, input?: unknown, options: ExecuteOptions = {}): Promise<Output> {
    const { clock } = this.#requests;
    const what = `The run of ${typeof workflow === "string" ? workflow : workflow.name}`;
    return withDeadline(options, { clock, what }, async (signal) => {
      const askedAt = clock.now();
      const run = await this.#started(workflow, input, { ...options, signal }, endWaitMs);
      const path = `/runs/${encodeURIComponent(run.id)}`;
      return outputOf(await untilEnded(this.#requests, path, signal, { body: run, askedAt })) as Output;
    });
  }

  /** The run as the server replies to its start, or within `waitMs` to its end. */
  async #started(workflow: string | Workflow, input: unknown, options: StartOptions, waitMs = 0): Promise<RunStatus> {
    if (typeof workflow !== "string") {
      await checkStartInput(workflow, input);
      await this.#defineOnce(workflow, options);
    }
    const name = typeof workflow === "string" ? workflow : workflow.name;
    const start = () => this.#start(name, input, options, waitMs);
    return start().catch(async (error: unknown) => {
      if (typeof workflow === "string" || !isForgotten(error)) throw error;
      // The server has other data than before.
      this.#defined.delete(workflow);
      await this.#defineOnce(workflow, options);
      return start();
    });
  }

  #start(workflow: string, input: unknown, { key, delay, priority, signal }: StartOptions, waitMs: number): Promise<RunStatus> {
    const delayMs = delay === undefined ? undefined : durationMs(delay, "delay");
    // With a key, a request that is sent again after a broken connection starts nothing twice.
    const body = { workflow, input: toJson(input), key: key ?? this.#newId(), delayMs, priority };
    const wait = waitMs === 0 ? {} : { query: { waitMs }, waitMs };
    return this.#requests.post("/runs", { body, signal, ...wait });
  }

  emit(event: string, payload?: unknown, { key, signal }: EmitOptions = {}): Promise<EmittedEvent> {
    // With a key, an event that is sent again after a broken connection starts nothing twice.
    const body = { name: event, payload: toJson(payload), key: key ?? this.#newId(), run: callingRun() };
    return this.#requests.post("/events", { body, signal });
  }

  run<Output>(id: string): RunHandle<Output> {
    return new HttpRun<Output>(this.#requests, id);
  }

  runs({ workflow, state, signal }: RunFilter = {}): AsyncIterable<RunStatus> {
    return pagesOf(this.#requests, "/runs", { query: { workflow, state }, cursor: "before", signal });
  }

  async call<Output>(task: string | Task, input?: unknown, options: CallOptions = {}): Promise<Output> {
    const { priority, delay, timeout, labels, signal } = options;
    const { name, retry, timeoutMs } = typeof task === "string" ? { name: task } : task;
    const body = {
      ...{ task: name, input: toJson(input), id: this.#newId(), priority, labels, retry: options.retry ?? retry },
      delayMs: delay === undefined ? undefined : durationMs(delay, "delay"),
      timeoutMs: timeout === undefined ? timeoutMs : durationMs(timeout, "timeout"),
    };
    const queued = await this.#requests.post<TaskBody>("/tasks", { body, signal });
    return taskOutputOf(await untilEnded<TaskBody>(this.#requests, `/tasks/${queued.id}`, signal)) as Output;
  }

  define(workflow: Workflow, options?: RequestOptions): Promise<WorkflowVersion>;
  define(schedule: Schedule, options?: RequestOptions): Promise<DefinedSchedule>;
  define(value: Workflow | Schedule, options: RequestOptions = {}): Promise<WorkflowVersion | DefinedSchedule> {
    return isSchedule(value) ? this.#defineSchedule(value, options) : this.#defineFamily(value, options);
  }

  async #defineSchedule(schedule: Schedule, options: RequestOptions): Promise<DefinedSchedule> {
    const { name, rules, input } = schedule;
    const workflow = await scheduledWorkflow(schedule);
    if (workflow !== undefined) await this.#defineOnce(workflow, options);
    const body = { ...rules, input: toJson(input) };
    const { answer, isNew } = await this.#requests.put<ScheduleInfo>(schedulePath(name), { body, signal: options.signal });
    return { name, created: isNew, nextAt: answer.nextAt };
  }

  async #defineFamily(workflow: Workflow, { signal }: RequestOptions): Promise<WorkflowVersion> {
    let defined: WorkflowVersion | undefined;
    for (const { source } of workflowFamily([workflow])) {
      const answer = await this.#requests.post<{ definition: WorkflowVersion }>("/definitions", { body: { source }, signal });
      defined = answer.definition;
    }
    return defined as WorkflowVersion;
  }

  definitions({ dialect, signal }: DefinitionFilter = {}): AsyncIterable<WorkflowVersion> {
    return pagesOf(this.#requests, "/definitions", { query: { dialect }, cursor: "after", signal });
  }

  schedule(name: string): ScheduleHandle {
    return new HttpSchedule(this.#requests, name);
  }

  schedules({ workflow, signal }: ScheduleFilter = {}): AsyncIterable<ScheduleInfo> {
    return pagesOf(this.#requests, "/schedules", { query: { workflow }, cursor: "after", signal });
  }

  #defineOnce(workflow: Workflow, options: RequestOptions): Promise<WorkflowVersion> {
    const known = this.#defined.get(workflow);
    if (known !== undefined) return known;
    const defining = this.#defineFamily(workflow, options);
    this.#defined.set(workflow, defining);
    // The next start tries again.
    defining.catch(() => this.#defined.delete(workflow));
    return defining;
  }

  #newId(): string {
    return newId(this.#requests.clock.now());
  }
}

/** The server does not know the workflow. */
function isForgotten(error: unknown): boolean {
  return error instanceof LongshoreError && error.code === "LONGSHORE_NOT_FOUND" && error.detail.field === "workflow";
}

function parseUrl(given: string | URL): URL {
  const url = URL.canParse(String(given)) ? new URL(given) : undefined;
  if (url?.protocol === "http:" || url?.protocol === "https:") return url;
  throw new LongshoreError(
    "LONGSHORE_BAD_CONFIG",
    `${JSON.stringify(given)} is not the URL of a server, expected for example http://127.0.0.1:4500.`,
    {
      detail: { field: "url", expected: "http://host:port" },
    },
  );
}
