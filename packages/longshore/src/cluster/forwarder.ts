// Runs on a node that does not own the data: passes requests to the owner, and its replies to the clients. If the owner dies before it has
// replied, the next owner performs the request, and the client notices only a pause.

import { Readable } from "node:stream";
import type { Clock } from "../core/clock.ts";
import { LongshoreError } from "../core/errors.ts";
import type { MakeId } from "../core/ids.ts";
import type { GrpcCall, GrpcMethod, GrpcSink } from "../net/grpc/service.ts";
import type { EventSink, HttpReply, HttpRequest, Route, ServerSentEvent } from "../net/http/http.ts";
import { problemError } from "../net/listener/problems.ts";
import type { CarriedCall } from "./carried-call.ts";
import { type CarriedReply, type CarriedStatus, statusFrom } from "./carried-reply.ts";
import { type CarriedRequest, carriedCaller, carriedHeaders, routeName } from "./carried-request.ts";
import { Confirmations } from "./confirmations.ts";
import { errorFrom } from "./link/carried-error.ts";
import type { CallOptions } from "./link/client.ts";
import type { Pulled } from "./reply-streams.ts";

/** The methods of the link that forwarding uses. */
export interface CallOwner {
  call(name: string, args: unknown, options?: CallOptions): Promise<unknown>;
}

export interface ForwarderDeps {
  readonly owner: CallOwner;
  readonly makeId: MakeId;
  readonly clock: Clock;
}

/**
 * For a request with a longer body, the node does not watch whether the client disconnects. The watch would release the bytes of the body
 * from the budget of the listener while they are still in memory. Such requests do not wait for events, so they end soon.
 */
const watchedCharsMax = 65_536;
/** A streamed body up to this length is sent together with its request, so that both can be sent again. */
const inlineBytesMax = 1_048_576;
/** A longer one is sent in pieces of this length. */
const pieceBytes = 262_144;
/** How often in a row a stream is opened again, after its owner was lost, without receiving a piece. */
const reopenedMax = 20;
/** How often a request is performed again because its owner was lost in the middle of a long reply. */
const refetchedMax = 3;

export class Forwarder {
  readonly #deps: ForwarderDeps;
  readonly #confirmations: Confirmations;

  constructor(deps: ForwarderDeps) {
    this.#deps = deps;
    this.#confirmations = new Confirmations(deps.owner, deps.clock);
  }

  /** `begunAs` is the id of a request that this node began to perform as the owner, before it lost the data. */
  async request(route: Route, request: HttpRequest, begunAs?: string): Promise<HttpReply> {
    const carried = this.#carried(route, request, begunAs);
    if (route.body === "stream") return this.#upload(carried, request);
    const signal = carried.text.length <= watchedCharsMax ? request.gone : undefined;
    try {
      return await this.#ask(carried, signal);
    } catch (error) {
      if (!signal?.aborted) throw error;
      // The link broke and the client has disconnected. What the owner granted reaches no worker, so the owner takes it back. No client
      // receives this reply.
      this.#confirmations.undelivered(carried.id);
      return { status: 503 };
    }
  }

  /** This node closes: its requests must not wait at the owner any more. */
  dismiss(): void {
    // An owner of an earlier version does not know this call; then the requests wait until the listener ends them.
    this.#deps.owner.call("dismiss", null).catch(() => {});
  }

  async #ask(carried: CarriedRequest, signal: AbortSignal | undefined): Promise<HttpReply> {
    const ask = async (again: CarriedRequest) => (await this.#deps.owner.call("request", again, { signal })) as CarriedReply;
    let reply = await ask(carried);
    for (let fetched = 0; reply.length !== undefined; fetched++) {
      try {
        return this.#reply({ ...reply, body: undefined }, carried, await this.#whole(reply));
      } catch (error) {
        if (fetched === refetchedMax || signal?.aborted) throw error;
      }
      reply = await ask({ ...carried, isRepeat: true });
    }
    return this.#reply(reply, carried);
  }

  async unary(method: GrpcMethod, message: unknown, call: GrpcCall, begunAs?: string): Promise<unknown> {
    const carried = this.#carriedCall(method, message, call, begunAs);
    const { status, message: bytes } = (await this.#deps.owner.call("grpc", carried, { signal: call.gone })) as Answer;
    if (status !== undefined) throw statusFrom(status);
    return method.response.decode(Buffer.from(bytes as string, "base64"));
  }

  async stream(method: GrpcMethod, message: unknown, call: GrpcCall, sink: GrpcSink<unknown>): Promise<void> {
    const carried = this.#carriedCall(method, message, call);
    const open = async () => ((await this.#deps.owner.call("grpc", carried, { signal: call.gone })) as { stream: string }).stream;
    await this.#follow(open, call.gone, async (piece) => {
      const { status, message: bytes } = piece as Answer;
      if (status !== undefined) throw statusFrom(status);
      await sink.send(method.response.decode(Buffer.from(bytes as string, "base64")));
    });
  }

  #carried(route: Route, request: HttpRequest, begunAs: string | undefined): CarriedRequest {
    const { path, params, query, headers, text, caller } = request;
    return {
      ...{ route: routeName(route), path, params, query: query.toString(), text },
      headers: carriedHeaders(headers),
      caller: carriedCaller(caller),
      ...this.#idOf(begunAs),
    };
  }

  #carriedCall(method: GrpcMethod, message: unknown, call: GrpcCall, begunAs?: string): CarriedCall {
    const { authority, peer, deadline } = call;
    const bytes = Buffer.from(method.request.encode(message)).toString("base64");
    return {
      path: method.path,
      message: bytes,
      metadata: carriedHeaders(call.metadata),
      caller: carriedCaller(call.caller),
      authority,
      peer,
      deadline,
      ...this.#idOf(begunAs),
    };
  }

  #idOf(begunAs: string | undefined): { id: string; isRepeat?: true } {
    return begunAs === undefined ? { id: this.#newId() } : { id: begunAs, isRepeat: true };
  }

  #newId(): string {
    return this.#deps.makeId(this.#deps.clock.now());
  }

  #reply(reply: CarriedReply, carried: CarriedRequest, whole?: Buffer): HttpReply {
    const { status, headers, text, bytes, body, events, confirm, problem } = reply;
    if (problem !== undefined) throw problemError(problem);
    const { id } = carried;
    const confirmed = confirm
      ? { delivered: () => this.#confirmations.delivered(id), undelivered: () => this.#confirmations.undelivered(id) }
      : {};
    const head = headers === undefined ? { status, ...confirmed } : { status, headers, ...confirmed };
    if (events !== undefined) return { ...head, events: (sink) => void this.#events(events, carried, sink) };
    if (whole !== undefined) return { ...head, body: whole };
    if (body !== undefined) return { ...head, body: Readable.from(this.#pieces(body), { objectMode: false }) };
    if (bytes !== undefined) return { ...head, body: Buffer.from(bytes, "base64") };
    return text === undefined ? head : { ...head, body: text };
  }

  /** Fetches all pieces of a long body whose length is known, and joins them. */
  async #whole({ body, length }: CarriedReply): Promise<Buffer> {
    const pieces: Buffer[] = [];
    for await (const piece of this.#pieces(body as string)) pieces.push(piece);
    const whole = Buffer.concat(pieces);
    if (whole.length === length) return whole;
    throw new LongshoreError("LONGSHORE_STORE_UNAVAILABLE", `The owner sent ${whole.length} bytes of a reply of ${length}.`);
  }

  /** The body of a reply. When its owner is lost in the middle, the client is disconnected: the rest is not known. */
  async *#pieces(name: string): AsyncGenerator<Buffer, void, void> {
    let isOver = false;
    try {
      while (!isOver) {
        const pulled = (await this.#deps.owner.call("pull", name, { repeat: false })) as Pulled;
        for (const piece of pulled.pieces) yield Buffer.from(piece as string, "base64");
        isOver = pulled.end === true;
        if (pulled.error !== undefined) throw errorFrom(pulled.error);
      }
    } finally {
      if (!isOver) this.#drop(name);
    }
  }

  /** When the owner is lost, the next owner continues with the events after the last one that was sent. */
  async #events(first: string, carried: CarriedRequest, sink: EventSink): Promise<void> {
    let lastId: string | undefined;
    let name: string | undefined = first;
    const open = async () => {
      if (name !== undefined) {
        const opened = name;
        name = undefined;
        return opened;
      }
      const headers = lastId === undefined ? carried.headers : { ...carried.headers, "last-event-id": lastId };
      const again = { ...carried, headers, id: this.#newId() };
      const { events } = (await this.#deps.owner.call("request", again, { signal: sink.gone })) as CarriedReply;
      if (events === undefined) throw new LongshoreError("LONGSHORE_NOT_FOUND", "The events have ended.");
      return events;
    };
    try {
      await this.#follow(open, sink.gone, async (piece) => {
        const event = piece as ServerSentEvent;
        while (!sink.send(event) && !sink.gone.aborted) await sink.drained();
        if (event.id !== undefined) lastId = event.id;
      });
    } catch {
      // The client connects again, and gets the reason then.
    }
    sink.end();
  }

  /** Takes the pieces of a stream until its end, and opens it again when its owner is lost. */
  async #follow(open: () => Promise<string>, gone: AbortSignal, take: (piece: unknown) => Promise<void>): Promise<void> {
    for (let opened = 0; opened < reopenedMax && !gone.aborted; opened++) {
      const name = await open();
      for (;;) {
        const pulled = await this.#pull(name, gone);
        // The owner is lost, or does not know the stream any more.
        if (pulled === null) break;
        for (const piece of pulled.pieces) await take(piece);
        if (pulled.pieces.length > 0) opened = 0;
        if (gone.aborted) return this.#drop(name);
        if (pulled.error !== undefined) throw errorFrom(pulled.error);
        if (pulled.end) return;
      }
    }
  }

  async #pull(name: string, gone: AbortSignal): Promise<Pulled | null> {
    try {
      return (await this.#deps.owner.call("pull", name, { repeat: false, signal: gone })) as Pulled;
    } catch {
      return null;
    }
  }

  #drop(name: string): void {
    // An owner that cannot be reached drops the stream by itself.
    this.#deps.owner.call("drop", name, { repeat: false }).catch(() => {});
  }

  async #upload(carried: CarriedRequest, request: HttpRequest): Promise<HttpReply> {
    const { owner } = this.#deps;
    const pieces = piecesOf(request.stream)[Symbol.asyncIterator]();
    const { value: first, done } = await pieces.next();
    const second = done || first.length >= inlineBytesMax ? undefined : await pieces.next();
    if (first === undefined || second?.done) {
      const bytes = (first ?? Buffer.alloc(0)).toString("base64");
      return this.#reply((await owner.call("request", { ...carried, bytes })) as CarriedReply, carried);
    }
    const upload = carried.id;
    let isReplied = false;
    const replied = owner.call("request", { ...carried, upload }, { repeat: false }).finally(() => {
      isReplied = true;
    });
    const send = (piece?: Buffer) => owner.call("piece", { upload, bytes: piece?.toString("base64") }, { repeat: false });
    const sent = (async () => {
      await send(first);
      if (second !== undefined) await send(second.value);
      // A route may reply without reading all of it; the listener discards the rest.
      for (let next = await pieces.next(); !next.done && !isReplied; next = await pieces.next()) await send(next.value);
      if (!isReplied) await send();
    })();
    sent.catch(() => owner.call("piece", { upload, isBroken: true }, { repeat: false }).catch(() => {}));
    return this.#reply((await replied) as CarriedReply, carried);
  }
}

interface Answer {
  readonly message?: string;
  readonly status?: CarriedStatus;
}

/** The bytes of a stream in larger pieces. The first has `inlineBytesMax` bytes, and the others `pieceBytes`, or a little more. */
async function* piecesOf(stream: Readable): AsyncGenerator<Buffer, undefined, void> {
  let gathered: Buffer[] = [];
  let length = 0;
  let wanted = inlineBytesMax;
  for await (const chunk of stream) {
    gathered.push(chunk as Buffer);
    length += (chunk as Buffer).length;
    if (length < wanted) continue;
    yield Buffer.concat(gathered);
    [gathered, length, wanted] = [[], 0, pieceBytes];
  }
  if (length > 0) yield Buffer.concat(gathered);
  return undefined;
}
