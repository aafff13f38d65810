// What happens inside a worker, for metrics, logs and listeners. An event is delivered in two ways: to the worker's own components at once
// (`watch`), and to listeners through a bounded queue of their own (`on`), so that a listener that is slow, never settles or throws can
// neither delay the worker nor break it. What did not fit into a listener's queue is counted.

import type { Clock } from "../core/clock.ts";
import type { ContextIds, OutputStream } from "../core/context.ts";
import type { LongshoreError } from "../core/errors.ts";
import type { SpanIds } from "../core/trace.ts";
import type { Verdict } from "../core/verdict.ts";
import { ListenerQueue } from "./listener-queue.ts";
import type { Logger } from "./notices.ts";
import type { Failure, Outcome } from "./transport.ts";

/** The events of a worker by name, for `worker.on()` and the `listeners` of `work()`. */
export interface WorkerEvents {
  /** A transport polls for work. `count` is how many tasks it could take. */
  pollStarted: PollEvent & { readonly count: number };
  pollCompleted: PollEvent & { readonly durationMs: number; readonly received: number };
  pollFailed: PollEvent & { readonly durationMs: number; readonly error: Error };
  /** A task of this name is not polled for until it is resumed. */
  paused: PollEvent;
  resumed: PollEvent;
  /** A task came though every slot was taken; it waits for one. */
  slotsFull: PollEvent;
  /** The input of a task was too large to come with it, and was fetched from where it is kept. */
  inputFetched: TaskEvent & { readonly bytes: number };
  /** The handler is about to be called. */
  executionStarted: TaskEvent;
  /** The handler has returned a value (`done`) or requested to be called again (`deferred`). `outputBytes` is the length of its JSON. */
  executionCompleted: TaskEvent & { readonly kind: "done" | "deferred"; readonly durationMs: number; readonly outputBytes: number };
  /** The handler threw, was stopped, or could not be called at all (then no `executionStarted` came before). */
  executionFailed: TaskEvent & { readonly durationMs: number; readonly error: Failure; readonly retryable: boolean };
  /** The orchestrator has answered the report of an outcome. */
  updateCompleted: TaskEvent & { readonly durationMs: number };
  /** One try of a report failed; `tries` counts from 1. Another may follow. */
  updateTryFailed: TaskEvent & { readonly durationMs: number; readonly error: Error; readonly tries: number };
  /** No try of a report got through, and none follows. `result` is what was to be reported: here is the chance to keep it. */
  updateFailed: TaskEvent & { readonly durationMs: number; readonly error: Error; readonly tries: number; readonly result: Outcome };
  /** Everything about this task is over. `kind` is `lost` when the hold was over before a report could arrive. */
  taskEnded: TaskEvent & {
    readonly kind: Outcome["kind"] | "lost";
    readonly durationMs: number;
    readonly error?: Failure;
    /** The verdict on the report; absent when there was no report or no answer. */
    readonly verdict?: Verdict;
  };
  /** The handler has written to its log: a text, or fields. */
  logged: TaskEvent & { readonly entry: string | { readonly [field: string]: unknown }; readonly stream: OutputStream };
  /** The handler's signal was aborted. */
  taskStopped: TaskEvent & { readonly reason: LongshoreError };
  /** A handler did not end within the grace period after its signal aborted; its slot was given to other work. */
  taskAbandoned: TaskEvent & { readonly graceMs: number };
  progress: TaskEvent & { readonly value: unknown };
  /** Log lines that were thrown away because they could not be sent in time. */
  logsDropped: TaskEvent & { readonly lines: number };
  /** The event loop was blocked, so heartbeats and timers were late. */
  loopBlocked: { readonly blockedMs: number; readonly tasks: readonly string[] };
  /** A thread or a process of handlers ended by itself. `tasks` ran in it and have failed; another one takes its place. */
  isolateCrashed: { readonly isolate: "thread" | "process"; readonly tasks: readonly string[]; readonly error: Error };
  /** The process of a worker had ended and was started again. */
  workerRestarted: { readonly task: string; readonly restarts: number };
  /** One request of a transport has ended. `uri` is the path with names in place of ids; `status` is 0 when no answer came. */
  requestEnded: RequestEvent;
  /** A transport's peer has answered for the first time, and lets this worker in. */
  connected: { readonly transport: string };
  /** Something repeatable began to fail, and works again. */
  failing: { readonly transport: string; readonly what: string; readonly error: Error };
  working: { readonly transport: string; readonly what: string; readonly failedMs: number };
}

/** The fields of every event about asking an orchestrator for tasks. */
export interface PollEvent {
  /** `*` where a protocol polls for all of the worker's tasks at once. */
  readonly task: string;
  readonly transport: string;
  /** How the orchestrator calls this worker, where it has a name for it. */
  readonly worker: string | undefined;
}

/** The fields of every event about one task. */
export interface TaskEvent {
  readonly task: string;
  readonly transport: string;
  readonly worker: string | undefined;
  readonly ids: ContextIds;
  readonly attempt: number;
  /** The span of this execution; that of its caller without a tracer. */
  readonly trace?: SpanIds | undefined;
  /** What the protocol adds to every log record about this work. */
  readonly fields?: Readonly<Record<string, string>> | undefined;
}

/** One request of a transport that has ended. */
export interface RequestEvent {
  readonly transport: string;
  readonly method: string;
  readonly uri: string;
  readonly status: number;
  readonly durationMs: number;
}

/** The name of an event of a worker. */
export type EventName = keyof WorkerEvents;

/** Every name; the type makes sure that none is missing. */
const named: { readonly [Name in EventName]: true } = {
  pollStarted: true,
  pollCompleted: true,
  pollFailed: true,
  paused: true,
  resumed: true,
  slotsFull: true,
  inputFetched: true,
  executionStarted: true,
  executionCompleted: true,
  executionFailed: true,
  updateCompleted: true,
  updateTryFailed: true,
  updateFailed: true,
  taskEnded: true,
  logged: true,
  taskStopped: true,
  taskAbandoned: true,
  progress: true,
  logsDropped: true,
  loopBlocked: true,
  isolateCrashed: true,
  workerRestarted: true,
  requestEnded: true,
  connected: true,
  failing: true,
  working: true,
};
export const eventNames = Object.keys(named) as readonly EventName[];

/** An event as listeners get it, with the moment it happened. */
export type Told<Name extends EventName> = WorkerEvents[Name] & { readonly atMs: number };
/** May be asynchronous; the next event of the same listener then waits for it, the worker never does. */
export type Listener<Name extends EventName> = (event: Told<Name>) => unknown;
/** One object that listens to several events; each method may be absent. */
export type Listeners = { readonly [Name in EventName]?: Listener<Name> };

/** An event of a transport; its own name is added. */
export type TransportEventName =
  | "pollStarted"
  | "pollCompleted"
  | "pollFailed"
  | "paused"
  | "resumed"
  | "slotsFull"
  | "inputFetched"
  | "updateCompleted"
  | "updateTryFailed"
  | "updateFailed"
  | "requestEnded";
/** An event as a transport passes it to `host.emit`; the runner adds the name of the transport. */
export type TransportEvent<Name extends TransportEventName> = Omit<WorkerEvents[Name], "transport">;

/** More listeners than this for one event is a leak in the caller. */
const listenersMax = 100;

type Watcher<Name extends EventName> = (event: WorkerEvents[Name]) => void;

export class Events {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #watchers = new Map<EventName, Watcher<EventName>[]>();
  readonly #queues = new Map<EventName, Map<Listener<never>, ListenerQueue>>();
  #dropped = 0;
  #onDropped: () => void = () => {};

  constructor(clock: Clock, logger: Logger) {
    this.#clock = clock;
    this.#logger = logger;
  }

  /** How many events found no place in a listener's queue. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Calls `listener` for each of them; one listener at a time. */
  onDropped(listener: () => void): void {
    this.#onDropped = listener;
  }

  /** For who passes events on and could not. */
  countDropped(): void {
    this.#dropped++;
    this.#onDropped();
  }

  /** For the worker's own parts: called at once, for the whole life of the worker, and must not wait or throw. */
  watch<Name extends EventName>(name: Name, watcher: Watcher<Name>): void {
    const all = this.#watchers.get(name) ?? [];
    all.push(watcher as Watcher<EventName>);
    this.#watchers.set(name, all);
  }

  /** The returned function removes the listener. A listener that is there already is not added again. */
  on<Name extends EventName>(name: Name, listener: Listener<Name>): () => void {
    const all = this.#queues.get(name) ?? new Map<Listener<never>, ListenerQueue>();
    this.#queues.set(name, all);
    if (!all.has(listener)) {
      if (all.size >= listenersMax) throw new RangeError(`More than ${listenersMax} listeners for ${name}: remove them when done.`);
      all.set(listener, this.#queueFor(name, listener));
    }
    return () => {
      all.get(listener)?.close();
      all.delete(listener);
    };
  }

  /** Every method of the object; the returned function removes them all. */
  onAll(listeners: Listeners): () => void {
    const removals = eventNames.flatMap((name) => {
      const listener = listeners[name] as Listener<EventName> | undefined;
      // Bound, so that the methods of a class instance may use `this`.
      return typeof listener === "function" ? [this.on(name, listener.bind(listeners))] : [];
    });
    return () => {
      for (const remove of removals) remove();
    };
  }

  /** Whether there is a listener: on the path of every task an event without a listener is not even made. */
  wants(name: EventName): boolean {
    return this.#watchers.has(name) || (this.#queues.get(name)?.size ?? 0) > 0;
  }

  emit<Name extends EventName>(name: Name, event: WorkerEvents[Name]): void {
    for (const watcher of this.#watchers.get(name) ?? []) watcher(event);
    const queues = this.#queues.get(name);
    if (queues === undefined || queues.size === 0) return;
    const stamped = { ...event, atMs: this.#clock.now() };
    for (const queue of queues.values()) queue.add(stamped);
  }

  /** Resolves when every listener has got everything; a listener that never settles is not waited for longer than the caller does. */
  async settled(): Promise<void> {
    await Promise.all([...this.#queues.values()].flatMap((all) => [...all.values()].map((queue) => queue.settled())));
  }

  #queueFor(name: EventName, listener: Listener<never>): ListenerQueue {
    let reported = false;
    const dropped = () => {
      this.countDropped();
      if (reported) return;
      reported = true;
      this.#logger({ level: "warn", message: `A listener of "${name}" is too slow: events are dropped for it until it keeps up.` });
    };
    const failed = (error: Error) =>
      this.#logger({ level: "warn", message: `A listener of "${name}" threw, which changes nothing for the worker: ${error.message}` });
    return new ListenerQueue(listener as (event: unknown) => unknown, { dropped, failed });
  }
}
