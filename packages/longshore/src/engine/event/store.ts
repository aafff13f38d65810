// Events. An event starts a run of each workflow that listens for its name, and posts a task for each subscriber. Its payload is their
// input. Nothing else is stored of an event.

import { LongshoreError } from "../../core/errors.ts";
import { eventNameMax, isEventName } from "../../core/event-trigger.ts";
import type { Json } from "../../core/json/json.ts";
import { isName } from "../../core/names.ts";
import type { Run } from "../run/run.ts";

/** Maximum number of workflows that one event starts: all of them start in one transaction. */
export const eventWorkflowsMax = 100;
/** Maximum number of subscribers of one event: all of their tasks are posted in one transaction. */
export const eventSubscribersMax = 100;
/**
 * Maximum characters of all copies of the payload of one event, besides the first: each run and each task has its own, and one transaction
 * stores them all. They take about 20 ms.
 */
export const eventCopiesCharsMax = 4_194_304;
/** Maximum characters of what all workflows compare in one event: each event reads them all. */
export const eventConditionsCharsMax = 262_144;
/**
 * Maximum number of tasks of subscribers that wait for, or perform, events of one family of runs. A handler that starts the run that sends
 * its event would queue more tasks than are performed, without end. It is 300 times the number of handlers that work at once.
 */
export const familyEventTasksMax = 10_000;
/** The key is part of the start key of each run. */
export const eventKeyMax = 200;

/** The kinds of the documents: the workflows of an event, the events of a workflow, the subscribers of an event. */
export const triggerKinds = { event: "workflows of event", workflow: "events of workflow", subscriber: "subscribers of event" } as const;

export interface NewEvent {
  readonly name: string;
  /** JSON text. */
  readonly payload: string;
  /** A second event with the same name, key and payload starts no run a second time, and returns the first runs. */
  readonly key: string;
  /** The run that has sent it: the runs that it starts belong to the family of that run. Unknown or absent: no run has sent it. */
  readonly runId?: string | undefined;
}

export interface StartedByEvent {
  readonly run: Run;
  /** False when an earlier event with the same key has started it. */
  readonly created: boolean;
}

/** A lane that gets a task for each event of a name. The same lane may subscribe under several names. */
export interface Subscriber {
  readonly lane: string;
  readonly name: string;
}

/** The input of a task that an event posts for a subscriber. `payload` is any JSON value. */
export interface SubscribedEvent {
  readonly event: string;
  readonly key: string;
  readonly subscriber: string;
  readonly payload: Json;
  /** The root of the family whose run has sent the event. */
  readonly rootId?: string;
}

export interface EventStore {
  /**
   * Starts the runs and posts the tasks, all or none, before it resolves. Rejects with LONGSHORE_BAD_INPUT when the payload does not fit
   * the input schema of a workflow. Rejects with LONGSHORE_CONFLICT when an event with this key had another payload. Rejects with
   * LONGSHORE_LIMIT when the family of its run has too many open runs or tasks of subscribers, or when all copies of the payload are too
   * large.
   */
  emit(event: NewEvent, makeId: () => string): Promise<readonly StartedByEvent[]>;
  /** Rejects with LONGSHORE_LIMIT when the event has too many subscribers. */
  subscribe(event: string, subscriber: Subscriber): Promise<void>;
  unsubscribe(event: string, subscriber: Subscriber): Promise<void>;
}

/** Throws LONGSHORE_BAD_INPUT for a name or key that cannot be stored. */
export function checkEvent(name: unknown, key: unknown): void {
  if (!isEventName(name)) throw bad("name", name, eventNameMax);
  if (key === undefined || (typeof key === "string" && key.length > 0 && key.length <= eventKeyMax && isName(key))) return;
  throw bad("key", key, eventKeyMax);
}

function bad(field: string, given: unknown, max: number): LongshoreError {
  const shown = (JSON.stringify(given) ?? "absent").slice(0, 100);
  const expected = `a text of 1 to ${max} characters`;
  return new LongshoreError("LONGSHORE_BAD_INPUT", `The ${field} of an event is ${shown}, expected ${expected}.`, {
    detail: { field, expected },
  });
}
