// What the owner sends in pieces: the body of a reply, events, messages of a stream. The node asks for the next pieces when its client has
// taken those before, so a slow client holds up its own stream and nothing else.

import type { Clock } from "../core/clock.ts";
import { LongshoreError } from "../core/errors.ts";
import type { EventSink, ServerSentEvent } from "../net/http/http.ts";
import { carriedError } from "./link/carried-error.ts";

/** The pieces that the node has asked for. Without `end`, more may follow. */
export interface Pulled {
  readonly pieces: readonly unknown[];
  readonly end?: true;
  /** The source failed after these pieces. */
  readonly error?: unknown;
}

/** Characters that wait for a node: as much as a connection of this server buffers. */
const waitingCharsMax = 1_048_576;
/** A stream whose node asks for nothing for this long is given up. The listener of that node disconnects a client that stops reading sooner. */
const idleMsMax = 60_000;

interface Waiting {
  readonly piece: unknown;
  readonly chars: number;
  readonly left: () => void;
}

/** One stream to a node. */
export class Outgoing {
  readonly #waiting: Waiting[] = [];
  #chars = 0;
  #ended = false;
  #error: unknown;
  #wake: (() => void) | undefined;
  #roomy: (() => void)[] = [];
  readonly #gone = new AbortController();

  /** Aborts when the node does not want more. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  get isFull(): boolean {
    return this.#chars >= waitingCharsMax;
  }

  get isIdle(): boolean {
    return this.#waiting.length === 0;
  }

  /** Resolves when a node has fetched the piece, or wants no more. */
  send(piece: unknown, chars: number): Promise<void> {
    if (this.#ended || this.#gone.signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.push({ piece, chars, left: resolve });
      this.#chars += chars;
      this.#wake?.();
    });
  }

  /** Resolves when there is room again. */
  drained(): Promise<void> {
    return this.isFull && !this.#gone.signal.aborted ? new Promise((resolve) => this.#roomy.push(resolve)) : Promise.resolve();
  }

  end(error?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.#wake?.();
  }

  /** The node asks for what comes next. Waits for a piece when there is none. */
  async pull(signal: AbortSignal): Promise<Pulled> {
    if (this.#waiting.length === 0 && !this.#ended)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    this.#wake = undefined;
    const taken = this.#waiting.splice(0);
    this.#chars = 0;
    for (const { left } of taken) left();
    for (const roomy of this.#roomy.splice(0)) roomy();
    const pieces = taken.map(({ piece }) => piece);
    if (!this.#ended) return { pieces };
    return this.#error === undefined ? { pieces, end: true } : { pieces, end: true, error: carriedError(this.#error) };
  }

  /** The node wants no more. */
  drop(): void {
    this.#ended = true;
    this.#gone.abort();
    for (const { left } of this.#waiting.splice(0)) left();
    for (const roomy of this.#roomy.splice(0)) roomy();
    this.#wake?.();
  }
}

/** The stream as an event sink of a route. */
export function eventSink(stream: Outgoing): EventSink {
  return {
    send(event: ServerSentEvent) {
      if (stream.isFull) return false;
      void stream.send(event, event.data.length);
      return true;
    },
    get full() {
      return stream.isFull;
    },
    drained: () => stream.drained(),
    end: () => stream.end(),
    gone: stream.gone,
  };
}

/** The streams of all nodes, by name. */
export class OutgoingStreams {
  readonly #clock: Clock;
  readonly #streams = new Map<string, { readonly stream: Outgoing; readonly node: string; cancel: () => void }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(name: string, node: string): Outgoing {
    const stream = new Outgoing();
    this.#streams.set(name, { stream, node, cancel: this.#dropLater(name) });
    return stream;
  }

  /** The node fetches the next pieces. */
  async pull(name: string, signal: AbortSignal): Promise<Pulled> {
    const found = this.#streams.get(name);
    if (found === undefined) throw new LongshoreError("LONGSHORE_NOT_FOUND", `There is no stream ${name} any more.`);
    found.cancel();
    const pulled = await found.stream.pull(signal);
    if (signal.aborted || pulled.end) this.drop(name);
    else found.cancel = this.#dropLater(name);
    return pulled;
  }

  drop(name: string): void {
    const found = this.#streams.get(name);
    this.#streams.delete(name);
    found?.cancel();
    found?.stream.drop();
  }

  dropOf(node: string): void {
    for (const [name, found] of [...this.#streams]) if (found.node === node) this.drop(name);
  }

  close(): void {
    for (const name of [...this.#streams.keys()]) this.drop(name);
  }

  #dropLater(name: string): () => void {
    return this.#clock.at(this.#clock.now() + idleMsMax, () => this.drop(name));
  }
}
