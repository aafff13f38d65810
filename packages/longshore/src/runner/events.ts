// What happens inside a worker, for metrics and for logs. Listeners can neither slow the worker down nor break it: they are called
// synchronously, must return at once, and what they throw is swallowed.

import type { ContextIds } from "../context.ts";
import type { LongshoreError } from "../errors.ts";
import type { Failure, Outcome } from "./transport.ts";

export interface WorkerEvents {
  taskStarted: TaskEvent;
  /** `kind` is `lost` when the hold was over before a report could arrive. */
  taskEnded: TaskEvent & { readonly kind: Outcome["kind"] | "lost"; readonly durationMs: number; readonly error?: Failure };
  /** The handler's signal was aborted. */
  taskStopped: TaskEvent & { readonly reason: LongshoreError };
  /** A handler did not end within the grace period after its signal aborted; its slot went to other work. */
  taskAbandoned: TaskEvent;
  progress: TaskEvent & { readonly value: unknown };
  /** Log lines that were thrown away because they could not be sent in time. */
  logsDropped: TaskEvent & { readonly lines: number };
  /** The event loop stood still, so heartbeats and timers were late. */
  loopBlocked: { readonly blockedMs: number; readonly tasks: readonly string[] };
  /** A transport's peer has answered for the first time, and lets this worker in. */
  connected: { readonly transport: string };
  /** Something repeatable began to fail, and works again. */
  failing: { readonly transport: string; readonly what: string; readonly error: Error };
  working: { readonly transport: string; readonly what: string; readonly failedMs: number };
}

export interface TaskEvent {
  readonly task: string;
  readonly transport: string;
  readonly ids: ContextIds;
  readonly attempt: number;
}

export type EventName = keyof WorkerEvents;
export type Listener<Name extends EventName> = (event: WorkerEvents[Name]) => void;

/** More listeners than this for one event is a leak in the caller. */
const listenersMax = 100;

export class Events {
  readonly #listeners = new Map<EventName, Set<Listener<EventName>>>();

  /** The returned function removes the listener. */
  on<Name extends EventName>(name: Name, listener: Listener<Name>): () => void {
    const all = this.#listeners.get(name) ?? new Set();
    if (all.size >= listenersMax) throw new RangeError(`More than ${listenersMax} listeners for ${name}: remove them when done.`);
    this.#listeners.set(name, all.add(listener as Listener<EventName>));
    return () => all.delete(listener as Listener<EventName>);
  }

  /** Whether anybody listens: on the path of every task an event nobody wants is not even made. */
  wants(name: EventName): boolean {
    return (this.#listeners.get(name)?.size ?? 0) > 0;
  }

  emit<Name extends EventName>(name: Name, event: WorkerEvents[Name]): void {
    const all = this.#listeners.get(name);
    if (all === undefined) return;
    for (const listener of all) {
      try {
        listener(event as never);
      } catch {
        // A listener watches; its mistakes are not the worker's.
      }
    }
  }
}
