// Event handlers: README.md, "Events". A handler is a document, and a subscriber of its event.

import { writeExact } from "../../../core/json/json-exact.ts";
import type { EventStore } from "../../../engine/event/store.ts";
import type { DocumentStore } from "../../../engine/run/documents.ts";
import type { Reader } from "../../../engine/run/reader.ts";
import type { HttpReply, HttpRequest } from "../../../net/http/http.ts";
import { type EventHandler, parseHandler, readHandler } from "../dialect/event-handler.ts";
import { handlerLane } from "../dialect/operators.ts";
import { documentKinds } from "../dialect/settings.ts";
import { conflict, invalid, jsonText, notFound, nothing } from "./replies.ts";
import { bodyOf, checkedId, flagInQuery } from "./request.ts";

/** A handler has one version: storing it again replaces it. */
const only = 1;

export class EventHandlers {
  readonly #documents: DocumentStore;
  readonly #events: EventStore;
  readonly #reader: Pick<Reader, "listBody">;

  constructor(documents: DocumentStore, events: EventStore, reader: Pick<Reader, "listBody">) {
    this.#documents = documents;
    this.#events = events;
    this.#reader = reader;
  }

  create = async (request: HttpRequest): Promise<HttpReply> => {
    const handler = checked(request, "addEventHandler.arg0");
    if ((await this.#find(handler.name)) !== undefined) throw conflict(`EventHandler with name ${handler.name} already exists!`);
    await this.#keep(handler);
    return nothing;
  };

  change = async (request: HttpRequest): Promise<HttpReply> => {
    const handler = checked(request, "updateEventHandler.arg0");
    const before = await this.#find(handler.name);
    if (before === undefined) throw unknown(handler.name);
    await this.#keep(handler);
    if (before.event !== handler.event) await this.#events.unsubscribe(before.event, subscriberOf(handler.name));
    return nothing;
  };

  remove = async (request: HttpRequest): Promise<HttpReply> => {
    const name = request.params.name as string;
    const handler = await this.#find(name);
    if (handler === undefined) throw unknown(name);
    await this.#events.unsubscribe(handler.event, subscriberOf(name));
    await this.#documents.removeDocument(documentKinds.eventHandler, name);
    return nothing;
  };

  all = (): Promise<HttpReply> => this.#list(() => true);

  ofEvent = (request: HttpRequest): Promise<HttpReply> => {
    const activeOnly = flagInQuery(request, "activeOnly", true);
    return this.#list(({ event, active }) => event === request.params.event && (active || !activeOnly));
  };

  /** Subscribed first: a task of a handler that does not exist does nothing. */
  async #keep(handler: EventHandler): Promise<void> {
    await this.#events.subscribe(handler.event, subscriberOf(handler.name));
    const document = { kind: documentKinds.eventHandler, name: handler.name, version: only, body: writeExact(handler) };
    await this.#documents.keepDocument(document);
  }

  async #find(name: string): Promise<EventHandler | undefined> {
    const document = await this.#documents.document(documentKinds.eventHandler, name);
    return document === undefined ? undefined : readHandler(document.body);
  }

  async #list(wanted: (handler: EventHandler) => boolean): Promise<HttpReply> {
    return jsonText(await this.#reader.listBody(() => this.#texts(wanted)));
  }

  async *#texts(wanted: (handler: EventHandler) => boolean): AsyncGenerator<string, void, void> {
    for await (const { body } of this.#documents.eachDocument(documentKinds.eventHandler)) {
      const handler = readHandler(body);
      if (wanted(handler)) yield writeExact(handler);
    }
  }
}

function subscriberOf(name: string): { lane: string; name: string } {
  return { lane: handlerLane, name };
}

function checked(request: HttpRequest, path: string): EventHandler {
  const parsed = parseHandler(bodyOf(request), path);
  if ("violations" in parsed) throw invalid(parsed.violations);
  checkedId(parsed.value.name, `${path}.name`);
  checkedId(parsed.value.event, `${path}.event`);
  return parsed.value;
}

function unknown(name: string): Error {
  return notFound(`EventHandler with name ${name} not found!`);
}
