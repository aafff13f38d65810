// A node's side of the link: sends calls to the owner. When the link breaks, it sends the unanswered calls again on the next link.

import { backoffMs } from "../../core/backoff.ts";
import { type Clock, pause, systemClock } from "../../core/clock.ts";
import { LongshoreError, toError } from "../../core/errors.ts";
import type { Logger } from "../../core/logger.ts";
import { LoopTurns } from "../../core/slices/loop-turns.ts";
import { untilAborted } from "../../core/until-aborted.ts";
import { errorFrom } from "./carried-error.ts";
import { dial, type LinkOwner, type LinkTls } from "./dial.ts";
import { BadFrame, exceeds } from "./frames.ts";
import { type LinkLimits, linkLimits, linkTurnUnits } from "./limits.ts";
import { kinds, requestOf, signOf, spokenVersions } from "./messages.ts";
import { PendingCalls } from "./pending-calls.ts";
import { checkSecret, newLife } from "./proof.ts";
import { tooLarge } from "./served-link.ts";
import type { Wire } from "./wire.ts";

export interface LinkClientOptions {
  /** 32 bytes, which all nodes of the cluster read from the database. */
  readonly secret: Uint8Array;
  /** The name of this node. */
  readonly node: string;
  /** Finds the owner; called before each try to connect. Returns null when there is none now. */
  readonly owner: () => Promise<LinkOwner | null>;
  readonly clock?: Clock;
  readonly limits?: Partial<LinkLimits>;
  readonly tls?: LinkTls;
  readonly logger?: Logger;
  /** The versions that this side speaks. Tests give others. */
  readonly speaks?: readonly number[];
  /** Returns a random number in [0, 1), for the pauses between tries. */
  readonly random?: () => number;
}

export interface CallOptions {
  /**
   * Aborts the call. The owner is notified, and its answer still counts, because it may have carried out the call in the same moment.
   * Without a link, the call is rejected at once with the signal's reason.
   */
  readonly signal?: AbortSignal;
  /** False for a call that must not be sent twice: it is rejected when the link breaks before the answer. Default: true. */
  readonly repeat?: boolean;
}

export interface StreamListener {
  event(event: unknown): void;
  /** The stream is open at this owner, for the first time or again. Events before this moment may be missing. */
  opened?(owner: string): void;
  /** The owner has ended the stream, and it is not opened again. */
  ended?(error?: Error): void;
}

export interface LinkClientFigures {
  /** Calls since the start. */
  readonly calls: number;
  /** Calls that were sent again. */
  readonly resent: number;
  /** Calls that wait for their answer now. */
  readonly unanswered: number;
  /** Handshakes that succeeded. */
  readonly connects: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

interface Link {
  readonly wire: Wire;
  readonly owner: LinkOwner;
  readonly sinceMs: number;
}

interface OpenStream {
  readonly text: string;
  readonly on: StreamListener;
}

export class LinkClient {
  readonly #options: LinkClientOptions;
  readonly #secret: Uint8Array;
  readonly #clock: Clock;
  readonly #limits: LinkLimits;
  readonly #life = newLife();
  readonly #closing = new AbortController();
  readonly #calls: PendingCalls;
  readonly #streams = new Map<number, OpenStream>();
  readonly #counts = { bytesIn: 0, bytesOut: 0 };
  readonly #turns = new LoopTurns(linkTurnUnits);
  #lastId = 0;
  #connects = 0;
  #link: Link | undefined;
  #connecting: Promise<void> | undefined;
  /** Tries to connect since the last link that lasted for some time. */
  #tries = 0;
  #wake: AbortController | undefined;
  #reason = "No link was tried yet.";

  constructor(options: LinkClientOptions) {
    this.#options = options;
    this.#secret = checkSecret(options.secret);
    this.#clock = options.clock ?? systemClock;
    this.#limits = { ...linkLimits, ...options.limits };
    this.#calls = new PendingCalls(
      this.#clock,
      this.#limits,
      () => this.#reason,
      (id) => this.#link?.wire.send(signOf(kinds.abort, id)),
    );
  }

  get figures(): LinkClientFigures {
    const { begun, resent, size } = this.#calls;
    return { calls: begun, resent, unanswered: size, connects: this.#connects, ...this.#counts };
  }

  /** The owner at the other end of the link; undefined while there is no link. */
  get owner(): LinkOwner | undefined {
    return this.#link?.owner;
  }

  /**
   * Resolves with the owner's answer. A call without an answer when the link broke is sent again to the next owner, in its order and with
   * the same key. Rejects with LONGSHORE_STORE_UNAVAILABLE when there was no link for `waitMs` of the limits. Rejects with LONGSHORE_LIMIT
   * when too many calls wait.
   */
  call(name: string, args: unknown, options: CallOptions = {}): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const { signal, repeat = true } = options;
      if (this.#closing.signal.aborted) return reject(closed());
      if (signal?.aborted) return reject(signal.reason);
      const id = ++this.#lastId;
      // Throws for a value that JSON cannot carry; the promise is then rejected.
      const text = requestOf(kinds.call, id, name, args);
      if (exceeds(text, args, this.#limits.frameBytes)) return reject(tooLarge(`The call ${name}`, this.#limits.frameBytes));
      const wire = this.#link?.wire;
      const call = { text, resolve, reject, repeat, signal, sent: wire !== undefined, waitsFromMs: 0, onAbort: undefined };
      this.#calls.add(id, call);
      if (wire === undefined) this.#connect();
      else wire.send(text);
    });
  }

  /** Opens a stream, and opens it again after the link broke. The returned function closes it, and may be called twice. */
  open(name: string, args: unknown, on: StreamListener): () => void {
    if (this.#closing.signal.aborted) throw closed();
    if (this.#streams.size >= this.#limits.calls) {
      throw new LongshoreError("LONGSHORE_LIMIT", `More than ${this.#limits.calls} streams of this node are open; close some first.`);
    }
    const id = ++this.#lastId;
    const text = requestOf(kinds.open, id, name, args);
    if (exceeds(text, args, this.#limits.frameBytes)) throw tooLarge(`The stream ${name}`, this.#limits.frameBytes);
    this.#streams.set(id, { text, on });
    if (this.#link === undefined) this.#connect();
    else this.#link.wire.send(text);
    return () => {
      if (this.#streams.delete(id)) this.#link?.wire.send(signOf(kinds.close, id));
    };
  }

  /**
   * Call this when the owner may have changed. It ends the pause before the next try. It cuts a link to a node that is not the owner any
   * more; the calls of that link are sent to the new owner.
   */
  async ownerChanged(): Promise<void> {
    this.#tries = 0;
    this.#wake?.abort();
    const link = this.#link;
    if (link === undefined) return;
    // When the owner cannot be found now, the link stays. It breaks by itself when the other node is gone.
    const owner = await this.#findOwner().catch(() => link.owner);
    if (owner !== null && owner.node === link.owner.node && owner.epoch === link.owner.epoch) return;
    link.wire.cut("Another node owns the data.");
  }

  /** Rejects all waiting calls with LONGSHORE_CLOSED, and ends the link. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#wake?.abort();
    this.#streams.clear();
    this.#calls.rejectAll(closed());
    this.#link?.wire.cut("This node closes.");
    await this.#connecting;
  }

  get #isWanted(): boolean {
    return !this.#closing.signal.aborted && (this.#calls.size > 0 || this.#streams.size > 0);
  }

  #connect(): void {
    this.#connecting ??= this.#tryUntilConnected().finally(() => {
      this.#connecting = undefined;
      // The link may have broken again before this promise settled.
      if (this.#link === undefined && this.#isWanted) this.#connect();
    });
  }

  async #tryUntilConnected(): Promise<void> {
    while (this.#isWanted && this.#link === undefined) {
      if (this.#tries > 0) await this.#pauseBefore(this.#tries);
      if (!this.#isWanted) return;
      this.#tries++;
      try {
        const owner = await this.#findOwner();
        if (owner === null) this.#reason = "No node owns the data now.";
        else await this.#dial(owner);
      } catch (error) {
        this.#reason = toError(error).message;
        this.#options.logger?.debug("The owner could not be reached", { reason: this.#reason });
      }
    }
  }

  /** A database that does not respond must neither end the tries nor prevent this node from closing. */
  async #findOwner(): Promise<LinkOwner | null> {
    const { handshakeMs } = this.#limits;
    const late = new AbortController();
    const cancel = this.#clock.at(this.#clock.now() + handshakeMs, () => {
      late.abort(new Error(`The owner of the data could not be found within ${handshakeMs} ms.`));
    });
    try {
      return await untilAborted(this.#options.owner(), AbortSignal.any([late.signal, this.#closing.signal]));
    } finally {
      cancel();
    }
  }

  async #pauseBefore(retry: number): Promise<void> {
    const { retryMs, retryMsMax } = this.#limits;
    const random = (this.#options.random ?? Math.random)();
    const wake = new AbortController();
    this.#wake = wake;
    const policy = { kind: "exponential", delayMs: retryMs, maxMs: retryMsMax, jitter: 0.5 } as const;
    await pause(this.#clock, backoffMs(policy, retry, random), wake.signal);
    this.#wake = undefined;
  }

  #dial(owner: LinkOwner): Promise<void> {
    const { node, tls, speaks = spokenVersions } = this.#options;
    return dial(owner, {
      ...{ secret: this.#secret, node, life: this.#life, speaks, tls, clock: this.#clock, limits: this.#limits, counts: this.#counts },
      turns: this.#turns,
      // No limit: only unanswered calls wait here, and they have a limit of their own. If a link were cut because of them, the next link would be
      // cut as well.
      sendingBytesMax: Number.POSITIVE_INFINITY,
      signal: this.#closing.signal,
      connected: (wire) => {
        this.#connected({ wire, owner, sinceMs: this.#clock.now() });
        return { message: (message) => this.#message(message), broken: (reason) => this.#broken(reason) };
      },
    });
  }

  #connected(link: Link): void {
    this.#link = link;
    this.#connects++;
    // Streams first, so that they show the changes that the calls make.
    for (const { text } of this.#streams.values()) link.wire.send(text);
    this.#calls.sendAll((text) => link.wire.send(text));
    this.#options.logger?.info("This node is linked to the owner", { owner: link.owner.node });
  }

  #broken(reason: string): void {
    const link = this.#link as Link;
    this.#link = undefined;
    this.#reason = reason;
    // The pauses between tries end only after a link has lasted for some time, because some links break again at once.
    if (this.#clock.now() - link.sinceMs >= this.#limits.retryMsMax) this.#tries = 0;
    if (!this.#closing.signal.aborted) this.#options.logger?.info("The link to the owner broke", { owner: link.owner.node, reason });
    this.#calls.linkBroke(reason);
    if (this.#isWanted) this.#connect();
  }

  #message([kind, id, value]: readonly unknown[]): void {
    if (kind === kinds.answer) return this.#calls.take(id as number)?.resolve(value);
    if (kind === kinds.failure) return this.#calls.take(id as number)?.reject(errorFrom(value));
    if (kind !== kinds.event && kind !== kinds.opened && kind !== kinds.ended) {
      throw new BadFrame(`The owner sends no message of kind ${JSON.stringify(kind)}.`);
    }
    const stream = this.#streams.get(id as number);
    // The stream was closed here before this message arrived.
    if (stream === undefined) return;
    if (kind === kinds.ended) this.#streams.delete(id as number);
    try {
      if (kind === kinds.event) stream.on.event(value);
      else if (kind === kinds.opened) stream.on.opened?.(this.#link?.owner.node as string);
      else stream.on.ended?.(value === undefined ? undefined : errorFrom(value));
    } catch (error) {
      this.#options.logger?.error("A listener to events of the owner failed", { error });
    }
  }
}

function closed(): LongshoreError {
  return new LongshoreError("LONGSHORE_CLOSED", "The link to the owner was closed: this node is shutting down.");
}
