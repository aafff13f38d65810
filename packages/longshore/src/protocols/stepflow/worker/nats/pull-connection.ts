// One connection to a NATS server and the pull requests on it. It survives disconnections: the client reconnects by itself and sends open
// requests again.

import { pause } from "../../../../core/clock.ts";
import { LongshoreError } from "../../../../core/errors.ts";
import type { Slot, TransportHost } from "../../../../runner/transport.ts";
import type { NatsConnection, NatsMessage } from "../../wire/nats/client.ts";
import { Pulls } from "./pulls.ts";

export interface PullConnectionOptions {
  readonly host: TransportHost;
  readonly stream: string;
  readonly consumer: string;
  /** This worker's own subject for answers. */
  readonly inbox: string;
  readonly receive: (message: NatsMessage, slot: Slot) => void;
  /** Gives back a message that this worker cannot work on now; another worker may take it at once. */
  readonly refuse: (message: NatsMessage) => void;
}

/** How long a request waits. A waiting request costs the server almost nothing, and a shorter wait only causes more requests. */
const pullMsMax = 30_000;
/** Messages per request. Servers may be configured to refuse larger batches. */
const pullBatchMax = 256;
/** How long the worker waits for messages that were in flight when it stopped. */
const unsubscribeMsMax = 2_000;
const nanosPerMs = 1_000_000;

/** Statuses that only end a request: there are no messages, or its time is over. */
const plainEnds = new Set([404, 408]);

export class PullConnection {
  readonly #connection: NatsConnection;
  readonly #options: PullConnectionOptions;
  readonly #pulls: Pulls<NatsMessage>;
  readonly #subscription: ReturnType<NatsConnection["subscribe"]>;
  #connected = true;
  #trouble: ((error: Error) => void) | undefined;
  #reconnected: (() => void) | undefined;

  constructor(connection: NatsConnection, options: PullConnectionOptions) {
    const { host, inbox, stream, consumer, refuse } = options;
    this.#connection = connection;
    this.#options = options;
    const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`;
    this.#pulls = new Pulls({
      clock: host.clock,
      expiresMs: Math.min(pullMsMax, host.waitMsMax),
      request: (id, batch, expiresMs) => {
        const request = JSON.stringify({ batch, expires: expiresMs * nanosPerMs });
        connection.publish(subject, request, { reply: `${inbox}.${id}` });
      },
      deliver: (message, slot) => this.#deliver(message, slot),
      surplus: refuse,
    });
    this.#subscription = connection.subscribe(`${inbox}.*`, { callback: (error, message) => this.#hear(error, message) });
    void this.#watch();
  }

  /**
   * Resolves when the worker drains or the connection is closed permanently. Rejects when the consumer must be checked or created again.
   */
  async pull(): Promise<void> {
    const { slots, draining } = this.#options.host;
    const ended = new AbortController();
    let trouble: Error | undefined;
    this.#trouble = (error) => {
      trouble ??= error;
      ended.abort();
    };
    while (!ended.signal.aborted && !draining.aborted && !this.#connection.isClosed()) {
      const first = await slots.take(ended.signal);
      if (first === undefined) break;
      if (ended.signal.aborted) first.release();
      else this.#pulls.open([first, ...slots.takeFree(pullBatchMax - 1)]);
    }
    this.#trouble = undefined;
    if (trouble === undefined) return;
    this.#pulls.endAll();
    throw trouble;
  }

  /** Resolves when a server is connected again, when the connection is closed, or when the worker drains. */
  async usable(): Promise<void> {
    const { draining } = this.#options.host;
    if (this.#connected || this.#connection.isClosed() || draining.aborted) return;
    await new Promise<void>((resolve) => {
      this.#reconnected = () => {
        draining.removeEventListener("abort", resolveNow);
        resolve();
      };
      const resolveNow = () => resolve();
      draining.addEventListener("abort", resolveNow, { once: true });
    });
  }

  /** Ends the subscription. Messages that still arrive are given back. */
  async end(): Promise<void> {
    const { clock } = this.#options.host;
    const unsubscribed = this.#connected && !this.#connection.isClosed() ? this.#subscription.drain() : Promise.resolve();
    // Without a server, the promise of `drain` never settles.
    await Promise.race([unsubscribed.catch(() => {}), pause(clock, unsubscribeMsMax)]);
    this.#pulls.endAll();
  }

  #deliver(message: NatsMessage, slot: Slot): void {
    const { host, receive, refuse } = this.#options;
    if (!host.draining.aborted) return receive(message, slot);
    slot.release();
    refuse(message);
  }

  #hear(error: Error | null, message: NatsMessage): void {
    if (error !== null) return this.#trouble?.(error);
    const { inbox, stream } = this.#options;
    if (!message.subject.startsWith(inbox)) return this.#pulls.receive(message);
    const { code = 0, description = "" } = message.headers ?? {};
    const isEarly = this.#pulls.end(Number(message.subject.slice(inbox.length + 1)));
    if (plainEnds.has(code) && !isEarly) return;
    this.#trouble?.(
      new LongshoreError("LONGSHORE_UNREACHABLE", `The NATS server ended a request for tasks of ${stream}: ${code} ${description}`),
    );
  }

  async #watch(): Promise<void> {
    const tell = () => {
      this.#reconnected?.();
      this.#reconnected = undefined;
    };
    for await (const { type } of this.#connection.status()) {
      if (type === "disconnect") {
        this.#connected = false;
        this.#trouble?.(new LongshoreError("LONGSHORE_UNREACHABLE", "The connection to the NATS server broke."));
      } else if (type === "reconnect") {
        this.#connected = true;
        tell();
      }
    }
    // The status iterator ends when the connection is closed.
    this.#connected = false;
    this.#trouble?.(new LongshoreError("LONGSHORE_UNREACHABLE", "The connection to the NATS server was closed."));
    tell();
  }
}
