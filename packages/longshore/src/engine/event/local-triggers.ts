// Which workflows an event starts, as documents: one for each event, and one for each workflow that listens. They change in the transaction
// that stores the definition. The subscribers of an event are another document.

import { LongshoreError } from "../../core/errors.ts";
import type { EventTrigger } from "../../core/event-trigger.ts";
import type { LocalDocuments } from "../run/local-documents.ts";
import type { ReadTx, Tx } from "../tx.ts";
import { eventConditionsCharsMax, eventSubscribersMax, eventWorkflowsMax, type Subscriber, triggerKinds } from "./store.ts";

/** A workflow that an event starts. */
export interface Listener extends Pick<EventTrigger, "match"> {
  readonly workflow: string;
}

export class LocalTriggers {
  readonly #documents: LocalDocuments;

  constructor(documents: LocalDocuments) {
    this.#documents = documents;
  }

  listeners(tx: ReadTx, event: string): readonly Listener[] {
    return this.#read<Listener>(tx, triggerKinds.event, event);
  }

  /** Replaces the events that start a workflow. */
  declare(tx: Tx, workflow: string, triggers: readonly EventTrigger[]): void {
    const before = this.#read<string>(tx, triggerKinds.workflow, workflow);
    const events = [...new Set(triggers.map(({ event }) => event))];
    if (before.length === 0 && events.length === 0) return;
    for (const event of new Set([...before, ...events])) {
      const others = this.listeners(tx, event).filter((each) => each.workflow !== workflow);
      const own = triggers.filter((each) => each.event === event).map(({ match }) => ({ workflow, ...(match && { match }) }));
      if (own.length > 0 && new Set(others.map((each) => each.workflow)).size >= eventWorkflowsMax) throw tooMany(event);
      const all = [...others, ...own];
      if (own.length > 0 && JSON.stringify(all).length > eventConditionsCharsMax) throw tooLong(event);
      this.#write(tx, triggerKinds.event, event, all);
    }
    this.#write(tx, triggerKinds.workflow, workflow, events);
  }

  subscribers(tx: ReadTx, event: string): readonly Subscriber[] {
    return this.#read<Subscriber>(tx, triggerKinds.subscriber, event);
  }

  subscribe(tx: Tx, event: string, { lane, name }: Subscriber): void {
    const others = this.#othersThan(tx, event, { lane, name });
    if (others.length >= eventSubscribersMax) throw tooManySubscribers(event);
    this.#write(tx, triggerKinds.subscriber, event, [...others, { lane, name }]);
  }

  unsubscribe(tx: Tx, event: string, subscriber: Subscriber): void {
    this.#write(tx, triggerKinds.subscriber, event, this.#othersThan(tx, event, subscriber));
  }

  #othersThan(tx: Tx, event: string, { lane, name }: Subscriber): Subscriber[] {
    return this.subscribers(tx, event).filter((each) => each.lane !== lane || each.name !== name);
  }

  #read<T>(tx: ReadTx, kind: string, name: string): readonly T[] {
    const document = this.#documents.find(tx, kind, name, 0);
    return document === null ? [] : (JSON.parse(document.body) as T[]);
  }

  #write(tx: Tx, kind: string, name: string, list: readonly unknown[]): void {
    if (list.length === 0) this.#documents.removeNow(tx, kind, name, 0);
    else this.#documents.keepNow(tx, { kind, name, version: 0, body: JSON.stringify(list) });
  }
}

function tooMany(event: string): LongshoreError {
  const message = `The event ${event} starts ${eventWorkflowsMax} workflows already: let one workflow start the others.`;
  return new LongshoreError("LONGSHORE_LIMIT", message, { detail: { field: "on", expected: `at most ${eventWorkflowsMax} workflows` } });
}

function tooLong(event: string): LongshoreError {
  const message = `What workflows compare in the event ${event} has more than ${eventConditionsCharsMax} characters: compare less, or compare it in a workflow.`;
  const expected = `at most ${eventConditionsCharsMax} characters of names and values together`;
  return new LongshoreError("LONGSHORE_LIMIT", message, { detail: { field: "on", expected } });
}

function tooManySubscribers(event: string): LongshoreError {
  const message = `The event ${event} has ${eventSubscribersMax} subscribers already: join some of them.`;
  return new LongshoreError("LONGSHORE_LIMIT", message, {
    detail: { field: "event", expected: `at most ${eventSubscribersMax} subscribers` },
  });
}
