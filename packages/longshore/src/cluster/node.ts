// The life of a node. Every node serves every client. One of them owns the data and performs all requests; the others pass theirs on to it.
//
//   member -> taking over -> owner -> stepping down -> member
//
// A member checks every tenth of a second whether the data is free, and then takes over. The data is free when the owner was killed, hangs, or
// has stopped. An owner that has lost the data steps down: the next owner performs the requests that the old one has not answered, and the old
// one's own results do not count.

import type { Action } from "../core/actions.ts";
import { type Clock, pause, systemClock } from "../core/clock.ts";
import { isClosing, isTransient, LongshoreError, toError } from "../core/errors.ts";
import type { MakeId } from "../core/ids.ts";
import type { Logger } from "../core/logger.ts";
import type { GrpcCall, GrpcMethod, GrpcSink } from "../net/grpc/service.ts";
import { GrpcCode, GrpcError } from "../net/grpc/status.ts";
import type { HttpReply, HttpRequest, Route } from "../net/http/http.ts";
import { routeName } from "./carried-request.ts";
import type { Members, Ownership } from "./members.ts";

/** The data while this node owns it. */
export interface OwnedData {
  readonly routes: ReadonlyMap<string, Route>;
  readonly methods: ReadonlyMap<string, GrpcMethod>;
  program(verb: string, given: readonly unknown[]): Promise<unknown>;
  /** Performs `work`. If the action makes a change that must not be made twice, the change is marked with this id. */
  track<T>(action: Action, id: string, work: () => Promise<T>): Promise<T>;
  /** Why this node does not own the data any more; null while it does. */
  lost(): Error | null;
  /** Hands the data over when the requests in progress have ended, or at once when the data is already lost. */
  close(): Promise<void>;
}

/** How requests reach another owner. `begunAs` is the id of a request that this node has begun to perform itself, and perhaps completed. */
export interface Elsewhere {
  request(route: Route, request: HttpRequest, begunAs?: string): Promise<HttpReply>;
  unary(method: GrpcMethod, message: unknown, call: GrpcCall, begunAs?: string): Promise<unknown>;
  stream(method: GrpcMethod, message: unknown, call: GrpcCall, sink: GrpcSink<unknown>): Promise<void>;
  program(verb: string, given: readonly unknown[], begunAs?: string): Promise<unknown>;
  /** Another node may own the data now. */
  ownerChanged(): void;
  /** No node is left that could perform requests. */
  noNodeLeft(): void;
}

export interface ClusterNodeDeps {
  readonly id: string;
  readonly members: Members;
  readonly elsewhere: Elsewhere;
  readonly logger: Logger;
  /** Rejects with LONGSHORE_CONFLICT when another node was faster. */
  takeOver(): Promise<OwnedData>;
  announce(): Promise<void>;
  readonly makeId: MakeId;
  readonly clock?: Clock;
  readonly random?: () => number;
}

export type NodeState = "member" | "taking over" | "owner" | "stepping down";

/** How often a node checks who owns the data. With this interval, a killed owner is replaced in 0.2 to 0.5 s. */
const lookMs = 100;
/** How often a node renews its row. */
const announceMs = 1_000;

export class ClusterNode {
  readonly #deps: ClusterNodeDeps;
  readonly #clock: Clock;
  readonly #closing = new AbortController();
  #state: NodeState = "member";
  #owned: OwnedData | null = null;
  #ownership: Ownership = { owner: null, isFree: false };
  #announcedAt = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | null = null;
  #ready: { resolve: () => void; reject: (error: Error) => void }[] = [];
  #takingOver: Promise<void> | null = null;
  #steppingDown: Promise<void> | null = null;
  #failing = false;
  /** Times that this node took over the data. */
  #takeovers = 0;
  #resigned = false;
  /** Functions that end the event streams that are being sent. */
  readonly #sinks = new Set<() => void>();

  constructor(deps: ClusterNodeDeps) {
    this.#deps = deps;
    this.#clock = deps.clock ?? systemClock;
  }

  get state(): NodeState {
    return this.#state;
  }

  get takeovers(): number {
    return this.#takeovers;
  }

  /** The owner at the last check; null while no node owns the data. */
  get owner(): Ownership["owner"] {
    return this.#ownership.owner;
  }

  /** Whether this node can have requests performed, as far as it knows. */
  get isServing(): boolean {
    return this.#owned !== null || (this.#ownership.owner !== null && !this.#ownership.isFree);
  }

  /** Resolves when requests can be performed, here or elsewhere. Rejects when the database cannot be used or refuses this node. */
  async start(): Promise<void> {
    await this.#look();
    const ready = new Promise<void>((resolve, reject) => this.#ready.push({ resolve, reject }));
    this.#running = this.#live();
    await ready;
  }

  /** Performs a request here or at the owner. A request that was in progress when this node lost the data is performed by the next owner. */
  handle(route: Route, request: HttpRequest): HttpReply | Promise<HttpReply> {
    const owned = this.#owned;
    if (owned === null) return this.#deps.elsewhere.request(route, request);
    const own = owned.routes.get(routeName(route));
    if (own === undefined) throw new LongshoreError("LONGSHORE_NOT_FOUND", `There is no route ${routeName(route)}.`);
    // The route may release the body, and the next owner needs it.
    const { text } = request;
    const id = this.#newId();
    request.id = id;
    return this.#unlessLost(
      owned,
      () => owned.track(own.action, id, async () => this.#ending(await own.handle(request))),
      () => this.#deps.elsewhere.request(route, withText(request, text), id),
    );
  }

  unary(method: GrpcMethod, message: unknown, call: GrpcCall): Promise<unknown> {
    const owned = this.#owned;
    if (owned === null) return this.#deps.elsewhere.unary(method, message, call);
    const id = this.#newId();
    call.id = id;
    return this.#unlessLost(
      owned,
      () => owned.track(method.action, id, async () => owned.methods.get(method.path)?.unary?.(message, call)),
      () => this.#deps.elsewhere.unary(method, message, call, id),
    );
  }

  stream(method: GrpcMethod, message: unknown, call: GrpcCall, sink: GrpcSink<unknown>): void | Promise<void> {
    const owned = this.#owned;
    if (owned === null) return this.#deps.elsewhere.stream(method, message, call, sink);
    const elsewhere = () => this.#deps.elsewhere.stream(method, message, call, sink);
    const end = (error?: Error) => {
      if (!this.#isOver(owned)) return sink.end(error);
      elsewhere().then(
        () => sink.end(),
        (reason: unknown) => sink.end(toError(reason)),
      );
    };
    const own: GrpcSink<unknown> = {
      send: (each) => sink.send(each),
      get idle() {
        return sink.idle;
      },
      end,
    };
    const done = owned.methods.get(method.path)?.stream?.(message, call, own);
    if (!(done instanceof Promise)) return;
    return this.#unlessLost(owned, () => done, elsewhere).then(() => (this.#isOver(owned) && !call.gone.aborted ? elsewhere() : undefined));
  }

  program(verb: string, given: readonly unknown[]): Promise<unknown> {
    const owned = this.#owned;
    if (owned === null) return this.#deps.elsewhere.program(verb, given);
    const id = this.#newId();
    return this.#unlessLost(
      owned,
      () => owned.track("run.start", id, () => owned.program(verb, given)),
      () => this.#deps.elsewhere.program(verb, given, id),
    );
  }

  /** Hands the data over. Until `close`, this node still passes requests to the next owner. */
  async resign(): Promise<void> {
    this.#resigned = true;
    // The loop in `#live` handles its failure.
    await this.#takingOver?.catch(() => {});
    await this.#stepDown();
    // Removed from the list, so that the other nodes do not wait for this one to take over.
    await this.#deps.members.leave(this.#deps.id).catch(() => {});
  }

  async close(): Promise<void> {
    this.#resigned = true;
    this.#closing.abort();
    await this.#running;
    await this.#takingOver?.catch(() => {});
    await this.#stepDown();
    const closed = new LongshoreError("LONGSHORE_CLOSED", "This node was closed before any node owned the data.");
    for (const { reject } of this.#ready.splice(0)) reject(closed);
    await this.#deps.members.leave(this.#deps.id).catch(() => {});
  }

  #newId(): string {
    return this.#deps.makeId(this.#clock.now());
  }

  async #unlessLost<T>(owned: OwnedData, here: () => Promise<T>, elsewhere: () => Promise<T>): Promise<T> {
    try {
      const done = await here();
      if (!isRefused(done) || !this.#isOver(owned)) return done;
    } catch (error) {
      if (!isOfTheStore(error) || !this.#isOver(owned)) throw error;
    }
    return elsewhere();
  }

  /** When this node loses the data, its event streams must end, so that their readers connect again. `gone` aborts then. */
  #ending(reply: HttpReply): HttpReply {
    const { events } = reply;
    if (events === undefined) return reply;
    return {
      ...reply,
      events: (sink) => {
        const lost = new AbortController();
        const forget = () => {
          this.#sinks.delete(stop);
          sink.gone.removeEventListener("abort", forget);
        };
        const end = () => {
          forget();
          sink.end();
        };
        const stop = () => {
          end();
          lost.abort();
        };
        this.#sinks.add(stop);
        sink.gone.addEventListener("abort", forget, { once: true });
        events({
          send: (event) => sink.send(event),
          get full() {
            return sink.full;
          },
          drained: () => sink.drained(),
          end,
          gone: AbortSignal.any([sink.gone, lost.signal]),
        });
      },
    };
  }

  #isOver(owned: OwnedData): boolean {
    return this.#owned !== owned || owned.lost() !== null;
  }

  async #live(): Promise<void> {
    const { random = Math.random } = this.#deps;
    while (!this.#closing.signal.aborted) {
      try {
        await this.#look();
        if (this.#failing) this.#deps.logger.info("This node sees the database again");
        this.#failing = false;
      } catch (error) {
        if (!this.#failing) this.#deps.logger.warn("This node cannot see who owns the data", { error: toError(error) });
        this.#failing = true;
      }
      if (this.isServing) for (const { resolve } of this.#ready.splice(0)) resolve();
      await pause(this.#clock, lookMs * (0.75 + random() / 2), this.#closing.signal);
    }
  }

  async #look(): Promise<void> {
    const lost = this.#owned?.lost() ?? null;
    if (lost !== null) {
      this.#deps.logger.warn("This node has lost the data, and steps down", { error: lost });
      await this.#stepDown();
    }
    if (!this.#resigned) await this.#announce();
    if (this.#owned !== null) return;
    const ownership = await this.#deps.members.look();
    this.#seen(ownership);
    if (!ownership.isFree) return;
    if (!this.#resigned) await this.#takeOverOnce();
    else if ((await this.#deps.members.list()).length === 0) this.#deps.elsewhere.noNodeLeft();
  }

  #seen(ownership: Ownership): void {
    const before = this.#ownership.owner;
    this.#ownership = ownership;
    if (before?.node !== ownership.owner?.node || before?.epoch !== ownership.owner?.epoch) this.#deps.elsewhere.ownerChanged();
  }

  async #announce(): Promise<void> {
    const now = performance.now();
    if (now - this.#announcedAt < announceMs) return;
    await this.#deps.announce();
    this.#announcedAt = now;
  }

  async #takeOverOnce(): Promise<void> {
    this.#takingOver = this.#takeOver();
    try {
      await this.#takingOver;
    } finally {
      this.#takingOver = null;
    }
  }

  async #takeOver(): Promise<void> {
    this.#state = "taking over";
    const startedAt = performance.now();
    try {
      const owned = await this.#deps.takeOver();
      this.#takeovers++;
      this.#owned = owned;
      this.#state = "owner";
      // From now on, this node performs the requests that it had passed to the last owner. That owner may hang and never reply.
      this.#deps.elsewhere.ownerChanged();
      this.#deps.logger.info("This node owns the data now", { node: this.#deps.id, ms: Math.round(performance.now() - startedAt) });
    } catch (error) {
      this.#state = "member";
      // Another node was faster.
      if (error instanceof LongshoreError && error.code === "LONGSHORE_CONFLICT") return;
      throw error;
    }
  }

  /** A second caller waits for the first. */
  #stepDown(): Promise<void> {
    const owned = this.#owned;
    if (owned !== null) {
      this.#owned = null;
      this.#steppingDown = this.#handOver(owned).finally(() => {
        this.#steppingDown = null;
      });
    }
    return this.#steppingDown ?? Promise.resolve();
  }

  async #handOver(owned: OwnedData): Promise<void> {
    this.#state = "stepping down";
    for (const end of [...this.#sinks]) end();
    this.#ownership = { owner: null, isFree: false };
    try {
      await owned.close();
    } catch (error) {
      this.#deps.logger.warn("Stepping down failed in part", { error: toError(error) });
    }
    this.#state = "member";
  }
}

/** The request with its body, which its route has released. */
function withText(request: HttpRequest, text: string): HttpRequest {
  const { method, path, params, headers, caller } = request;
  return {
    ...{ method, path, params, headers, caller, text, parsed: undefined },
    get query() {
      return request.query;
    },
    get stream() {
      return request.stream;
    },
    streamText: (bytesMax) => request.streamText(bytesMax),
    get gone() {
      return request.gone;
    },
  };
}

/** True when the store could not be used, or was already closing. Then the next owner can perform the same request. */
function isOfTheStore(error: unknown): boolean {
  if (error instanceof GrpcError) return error.code === GrpcCode.UNAVAILABLE || error.code === GrpcCode.CANCELLED;
  return isClosing(error) || isTransient(error);
}

/** True when the reply of a protocol was made from such an error. */
function isRefused(done: unknown): boolean {
  return (done as { status?: unknown } | undefined)?.status === 503;
}
