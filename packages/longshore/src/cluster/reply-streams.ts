// What the owner sends in pieces: the body of a reply, events, messages of a stream. The node requests the next pieces when its client has
// read the previous ones. So a slow client delays only its own stream.

import type { Clock } from "../core/clock.ts";
import { LongshoreError } from "../core/errors.ts";
import { inLaterTurns } from "../core/slices/later-turns.ts";
import { rowBytes, Slices } from "../core/slices/slices.ts";
import type { EventSink, ServerSentEvent } from "../net/http/http.ts";
import { carriedError } from "./link/carried-error.ts";
import { endedAtOnce } from "./link/limits.ts";
import type { LinkEnd } from "./link/service.ts";

/** The pieces that the node has requested. Without `end`, more may follow. */
export interface Pulled {
  readonly pieces: readonly unknown[];
  readonly end?: true;
  /** The source failed after these pieces. */
  readonly error?: unknown;
}

/** Maximum number of characters that wait in one stream: as much as a connection of this server buffers. */
const waitingCharsMax = 1_048_576;
/** Maximum number of characters of all streams together. Above it, a stream accepts more only when nothing waits in it. */
const allCharsMax = 67_108_864;
/**
 * Maximum number of characters in the answer to one request for pieces; a single longer piece is sent alone. The answer is made in one piece, and
 * hundreds of nodes' clients may begin to read at once.
 */
const pulledCharsMax = 262_144;
/** Each piece counts as this many additional characters, so that many small pieces fill a stream, too. */
const pieceChars = 64;
/** Maximum number of streams of one link: one for each connection of a full listener. */
const streamsMax = 10_000;
/** A stream is given up when its node requests nothing for this long. A client that stops reading is disconnected earlier, by that node. */
const idleMsMax = 60_000;

interface Waiting {
  readonly piece: unknown;
  readonly chars: number;
  readonly left: () => void;
}

/** One stream to a node. */
export class ReplyStream {
  readonly #waiting: Waiting[] = [];
  readonly #all: { chars: number };
  #chars = 0;
  #ended = false;
  #error: unknown;
  #wake: (() => void) | undefined;
  #roomy: (() => void)[] = [];
  readonly #gone = new AbortController();

  /** `all` counts the characters of all streams. */
  constructor(all: { chars: number } = { chars: 0 }) {
    this.#all = all;
  }

  /** Aborts when the node needs no more pieces. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  get isFull(): boolean {
    return this.#chars >= waitingCharsMax || (this.#chars > 0 && this.#all.chars >= allCharsMax);
  }

  get isIdle(): boolean {
    return this.#waiting.length === 0;
  }

  /** Resolves when a node has fetched the piece, or needs no more pieces. */
  send(piece: unknown, chars: number): Promise<void> {
    if (this.#ended || this.#gone.signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const counted = chars + pieceChars;
      this.#waiting.push({ piece, chars: counted, left: resolve });
      this.#chars += counted;
      this.#all.chars += counted;
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

  /** Returns the pieces that wait, up to a limit. When there are none, waits for the next one. `slices` limits what all streams send in one turn. */
  async pull(signal: AbortSignal, slices: Slices): Promise<Pulled> {
    if (this.#waiting.length === 0 && !this.#ended)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    this.#wake = undefined;
    await slices.turn(1 + Math.floor(Math.min(this.#chars, pulledCharsMax) / rowBytes));
    const pieces = this.#take(pulledCharsMax);
    if (!this.#ended || this.#waiting.length > 0) return { pieces };
    return this.#error === undefined ? { pieces, end: true } : { pieces, end: true, error: carriedError(this.#error) };
  }

  /** The node needs no more pieces. */
  drop(): void {
    this.#ended = true;
    this.#gone.abort();
    this.#take(Number.POSITIVE_INFINITY);
    this.#wake?.();
  }

  /** At least one piece, if there is one. */
  #take(charsMax: number): unknown[] {
    let count = 0;
    let chars = 0;
    for (const { chars: more } of this.#waiting) {
      if (count > 0 && chars + more > charsMax) break;
      count++;
      chars += more;
    }
    const taken = this.#waiting.splice(0, count);
    this.#all.chars -= chars;
    this.#chars -= chars;
    for (const { left } of taken) left();
    if (!this.isFull || this.#gone.signal.aborted) for (const roomy of this.#roomy.splice(0)) roomy();
    return taken.map(({ piece }) => piece);
  }
}

/** The stream as an event sink of a route. */
export function eventSink(stream: ReplyStream): EventSink {
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
export class ReplyStreams {
  readonly #clock: Clock;
  readonly #streams = new Map<string, { readonly stream: ReplyStream; readonly link: LinkEnd; cancel: () => void }>();
  readonly #counts = new Map<LinkEnd, number>();
  readonly #all = { chars: 0 };
  readonly #slices = new Slices();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Throws LONGSHORE_LIMIT when the node has too many. */
  add(name: string, link: LinkEnd): ReplyStream {
    // The same request may have a stream on an earlier link.
    this.drop(name);
    const count = this.#counts.get(link) ?? 0;
    if (count >= streamsMax) throw new LongshoreError("LONGSHORE_LIMIT", `${streamsMax} streams to this node are open; close some first.`);
    this.#counts.set(link, count + 1);
    const stream = new ReplyStream(this.#all);
    this.#streams.set(name, { stream, link, cancel: this.#dropLater(name) });
    return stream;
  }

  /** The node fetches the next pieces. */
  async pull(name: string, signal: AbortSignal): Promise<Pulled> {
    const found = this.#streams.get(name);
    if (found === undefined) throw new LongshoreError("LONGSHORE_NOT_FOUND", `There is no stream ${name} any more.`);
    found.cancel();
    const pulled = await found.stream.pull(signal, this.#slices);
    if (this.#streams.get(name) !== found) return pulled;
    if (signal.aborted || pulled.end) this.drop(name);
    else found.cancel = this.#dropLater(name);
    return pulled;
  }

  drop(name: string): void {
    const found = this.#streams.get(name);
    if (found === undefined) return;
    this.#streams.delete(name);
    const left = (this.#counts.get(found.link) as number) - 1;
    if (left === 0) this.#counts.delete(found.link);
    else this.#counts.set(found.link, left);
    found.cancel();
    found.stream.drop();
  }

  /** Drops the streams of a link some at a time: what each of them reads must end, too. */
  dropOf(link: LinkEnd): void {
    const names = [...this.#streams].flatMap(([name, found]) => (found.link === link ? [name] : []));
    inLaterTurns(names, endedAtOnce, (name) => {
      // The node may have opened it again on another link.
      if (this.#streams.get(name)?.link === link) this.drop(name);
    });
  }

  close(): void {
    for (const name of [...this.#streams.keys()]) this.drop(name);
  }

  #dropLater(name: string): () => void {
    return this.#clock.at(this.#clock.now() + idleMsMax, () => this.drop(name));
  }
}
