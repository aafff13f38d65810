// The events of a worker, for metrics, logs and listeners. The worker's own components get an event at once (`watch`). Each listener (`on`)
// gets it through a bounded queue, so a slow or faulty listener cannot delay the worker. Events that do not fit into a queue are counted.

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
  /** A transport polls for work. `count` is the maximum number of tasks it accepts. */
  pollStarted: PollEvent & { readonly count: number };
  pollCompleted: PollEvent & { readonly durationMs: number; readonly received: number };
  pollFailed: PollEvent & { readonly durationMs: number; readonly error: Error };
  /** Polling for tasks of this name is paused until it is resumed. */
  paused: PollEvent;
  resumed: PollEvent;
  /** A task arrived while every slot was taken; it waits for a slot. */
  slotsFull: PollEvent;
  /** The input of a task was too large to be sent with it, and was fetched from its storage. */
  inputFetched: TaskEvent & { readonly bytes: number };
  /** The handler is about to be called. */
  executionStarted: TaskEvent;
  /** The handler has returned a value (`done`) or a deferral (`deferred`). `outputBytes` is the length of its JSON. */
  executionCompleted: TaskEvent & { readonly kind: "done" | "deferred"; readonly durationMs: number; readonly outputBytes: number };
  /** The handler threw, was stopped, or could not be called at all (then there was no `executionStarted`). */
  executionFailed: TaskEvent & { readonly durationMs: number; readonly error: Failure; readonly retryable: boolean };
  /** The orchestrator has replied to the report of an outcome. */
  updateCompleted: TaskEvent & { readonly durationMs: number };
  /** One try of a report failed; `tries` counts from 1. Another may follow. */
  updateTryFailed: TaskEvent & { readonly durationMs: number; readonly error: Error; readonly tries: number };
  /** All tries of a report failed, and none follows. `result` is the unreported outcome: a listener can store it. */
  updateFailed: TaskEvent & { readonly durationMs: number; readonly error: Error; readonly tries: number; readonly result: Outcome };
  /** The work on this task is over. `kind` is `lost` when the lease ended before a report could arrive. */
  taskEnded: TaskEvent & {
    readonly kind: Outcome["kind"] | "lost";
    readonly durationMs: number;
    readonly error?: Failure;
    /** The verdict on the report; absent when there was no report or no reply. */
    readonly verdict?: Verdict;
  };
  /** The handler has written to its log: a text, or fields. */
  logged: TaskEvent & { readonly entry: string | { readonly [field: string]: unknown }; readonly stream: OutputStream };
  /** The handler's signal was aborted. */
  taskStopped: TaskEvent & { readonly reason: LongshoreError };
  /** A handler did not end within the grace period after its signal aborted; its slot was given to other work. */
  taskAbandoned: TaskEvent & { readonly graceMs: number };
  progress: TaskEvent & { readonly value: unknown };
  /** Log lines that were dropped because they could not be sent in time. */
  logsDropped: TaskEvent & { readonly lines: number };
  /** The event loop was blocked, so heartbeats and timers were late. */
  loopBlocked: { readonly blockedMs: number; readonly tasks: readonly string[] };
  /** A thread or a process of handlers ended by itself. `tasks` ran in it and have failed; a new one replaces it. */
  isolateCrashed: { readonly isolate: "thread" | "process"; readonly tasks: readonly string[]; readonly error: Error };
  /** The process of a worker had ended and was started again. */
  workerRestarted: { readonly task: string; readonly restarts: number };
  /** One request of a transport has ended. `uri` is the path with placeholders for ids; `status` is 0 when no response arrived. */
  requestEnded: RequestEvent;
  /** A transport's peer has replied for the first time and accepts this worker. */
  connected: { readonly transport: string };
  /** An operation that is retried began to fail (`failing`), or works again (`working`). */
  failing: { readonly transport: string; readonly what: string; readonly error: Error };
  working: { readonly transport: string; readonly what: string; readonly failedMs: number };
}

/** The fields of every event about polling for tasks. */
export interface PollEvent {
  /** `*` when the protocol polls for all of the worker's tasks at once. */
  readonly task: string;
  readonly transport: string;
  /** The orchestrator's name for this worker, if it has one. */
  readonly worker: string | undefined;
}

/** The fields of every event about one task. */
export interface TaskEvent {
  readonly task: string;
  readonly transport: string;
  readonly worker: string | undefined;
  readonly ids: ContextIds;
  readonly attempt: number;
  /** The span of this execution; without a tracer, the caller's span. */
  readonly trace?: SpanIds | undefined;
  /** Fields that the protocol adds to every log record about this work. */
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

/** Every event name; the type ensures that none is missing. */
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

/** An event as listeners receive it, with its time. */
export type Told<Name extends EventName> = WorkerEvents[Name] & { readonly atMs: number };
/** May be asynchronous: the next event of the same listener then waits for it, but the worker does not. */
export type Listener<Name extends EventName> = (event: Told<Name>) => unknown;
/** One object that listens to several events; each method may be absent. */
export type Listeners = { readonly [Name in EventName]?: Listener<Name> };

/** The events that a transport may emit; the runner adds the transport's name. */
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

/** More listeners for one event mean a leak in the caller. */
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

  /** How many events did not fit into a listener's queue. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Calls `listener` for each dropped event; there is one such listener at a time. */
  onDropped(listener: () => void): void {
    this.#onDropped = listener;
  }

  /** For components that forward events: reports an event that could not be forwarded. */
  countDropped(): void {
    this.#dropped++;
    this.#onDropped();
  }

  /**
   * For the worker's own components. The watcher is called at once for each event, as long as the worker exists. It must not wait or throw.
   */
  watch<Name extends EventName>(name: Name, watcher: Watcher<Name>): void {
    const all = this.#watchers.get(name) ?? [];
    all.push(watcher as Watcher<EventName>);
    this.#watchers.set(name, all);
  }

  /** Adds a listener; the returned function removes it. Adding the same listener twice has no effect. */
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

  /** Adds every method of the object as a listener; the returned function removes them all. */
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

  /** Whether the event has a listener. Events of every task are not even created when they have no listener. */
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

  /**
   * Resolves when every listener has handled all its events. It does not limit the wait for a listener that never settles: the caller must.
   */
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
      this.#logger({
        level: "warn",
        message: `A listener of "${name}" threw an error, which has no effect on the worker: ${error.message}`,
      });
    return new ListenerQueue(listener as (event: unknown) => unknown, { dropped, failed });
  }
}
