// Server-sent events over one response. Frames of the same tick are sent in one write. When a reader falls behind, `send` returns false
// until it has caught up. A quiet stream sends a comment from time to time, so that proxies keep it open and lost readers are noticed.

import type { ServerResponse } from "node:http";
import { ByteBudget } from "../../core/byte-budget.ts";
import type { Clock } from "../../core/clock.ts";
import type { EventSink, ServerSentEvent } from "../http/http.ts";
import type { HttpLimits } from "./limits.ts";

export interface EventStreams {
  /** Opens a stream on a response whose headers were written. */
  open(response: ServerResponse): EventStream;
  /** Ends every stream after the events that were accepted, and aborts its `gone`. Streams opened later end at once. */
  endAll(): void;
}

export type EventLimits = Pick<HttpLimits, "eventBufferBytes" | "eventBytes" | "eventQuietMs" | "eventStallsMax">;

export const eventHeaders = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache",
  // Without this header, nginx buffers events until its buffer is full.
  "x-accel-buffering": "no",
};

/** One timer serves all streams, and runs only while there are any. */
export function createEventStreams(clock: Clock, limits: EventLimits): EventStreams {
  const open = new Set<EventStream>();
  const budget = new ByteBudget(limits.eventBytes);
  let cancelTick: (() => void) | undefined;
  let isOver = false;

  function tick(): void {
    for (const stream of open) stream.tick();
    cancelTick = clock.at(clock.now() + limits.eventQuietMs, tick);
  }

  function end(stream: EventStream): void {
    stream.end();
    stream.lost();
  }

  function closed(stream: EventStream): void {
    open.delete(stream);
    if (open.size > 0) return;
    cancelTick?.();
    cancelTick = undefined;
  }

  return {
    open(response) {
      const stream = new EventStream(response, { limits, budget, closed });
      open.add(stream);
      cancelTick ??= clock.at(clock.now() + limits.eventQuietMs, tick);
      // The reply took so long that the server is closing now.
      if (isOver) end(stream);
      return stream;
    },
    endAll() {
      isOver = true;
      for (const stream of [...open]) end(stream);
    },
  };
}

interface Surroundings {
  readonly limits: EventLimits;
  /** The bytes that all readers together have not taken. */
  readonly budget: ByteBudget;
  closed(stream: EventStream): void;
}

export class EventStream implements EventSink {
  private readonly response: ServerResponse;
  private readonly limits: EventLimits;
  private readonly around: Surroundings;
  private readonly controller = new AbortController();
  private pending = "";
  private flushing = false;
  private closed = false;
  private quiet = true;
  private stalls = 0;
  private waitingSenders: (() => void)[] = [];
  /** The bytes reserved in the budget until the reader has caught up. */
  private held = 0;

  constructor(response: ServerResponse, around: Surroundings) {
    this.response = response;
    this.limits = around.limits;
    this.around = around;
    response.on("drain", () => this.caughtUp());
    response.once("close", () => this.giveBack());
  }

  get gone(): AbortSignal {
    return this.controller.signal;
  }

  get full(): boolean {
    return this.pending.length + this.response.writableLength >= this.limits.eventBufferBytes;
  }

  send(event: ServerSentEvent): boolean {
    if (this.closed || this.full) return false;
    this.pending += frameText(event);
    this.quiet = false;
    if (!this.flushing) {
      this.flushing = true;
      setImmediate(() => this.flush());
    }
    return true;
  }

  drained(): Promise<void> {
    if (this.closed || !this.full) return Promise.resolve();
    return new Promise((resolve) => this.waitingSenders.push(resolve));
  }

  end(): void {
    if (this.closed) return;
    this.flush();
    this.close();
    this.response.end();
  }

  /** The reader has disconnected, or the server closes: a waiting sender continues and finds `gone` aborted. */
  lost(): void {
    this.close();
    this.controller.abort();
  }

  /** Called once per quiet period: sends a comment when nothing was sent, disconnects a reader that has taken nothing for too long. */
  tick(): void {
    if (this.response.writableNeedDrain) {
      if (++this.stalls >= this.limits.eventStallsMax) this.response.destroy();
      return;
    }
    if (this.quiet) this.response.write(":\n\n");
    this.quiet = true;
  }

  private flush(): void {
    this.flushing = false;
    if (this.pending === "" || this.closed) return;
    const text = this.pending;
    this.pending = "";
    // A write that was taken at once emits no drain event, so a sender that waits is resumed here.
    if (this.response.write(text)) this.caughtUp();
    else this.hold();
  }

  /** The reader has not taken everything. When the budget has no room for the rest, the slow reader is disconnected: it can connect again and resume. */
  private hold(): void {
    const more = this.response.writableLength - this.held;
    if (more <= 0) return;
    if (this.around.budget.take(more)) this.held += more;
    else this.response.destroy();
  }

  private giveBack(): void {
    this.around.budget.give(this.held);
    this.held = 0;
  }

  private caughtUp(): void {
    this.stalls = 0;
    this.giveBack();
    this.resumeSenders();
  }

  private resumeSenders(): void {
    const waiting = this.waitingSenders;
    this.waitingSenders = [];
    for (const resolve of waiting) resolve();
  }

  private close(): void {
    if (this.closed) return;
    this.closed = true;
    this.resumeSenders();
    this.around.closed(this);
  }
}

/** One frame. A line end inside `data` starts another data line; in names it would break the frame and is removed. */
export function frameText(event: ServerSentEvent): string {
  let text = "";
  if (event.event !== undefined) text += `event: ${oneLine(event.event)}\n`;
  if (event.id !== undefined) text += `id: ${oneLine(event.id)}\n`;
  if (!/[\r\n]/.test(event.data)) return `${text}data: ${event.data}\n\n`;
  for (const line of event.data.split(/\r\n|\r|\n/)) text += `data: ${line}\n`;
  return `${text}\n`;
}

function oneLine(text: string): string {
  return /[\r\n\0]/.test(text) ? text.replace(/[\r\n\0]/g, "") : text;
}
