// An exchange without node:http: the request is complete before it begins, and most responses are one write.

import { STATUS_CODES, validateHeaderName, validateHeaderValue } from "node:http";
import type { Socket } from "node:net";
import type { ByteBudget } from "../../core/byte-budget.ts";
import { type BodyOutcome, decodeBody } from "./body.ts";
import type { BodyLimits } from "./body-reading.ts";
import type { Connection } from "./connections.ts";
import type { DirectRequest } from "./direct-request.ts";
import { Exchange, type WholeAnswer } from "./exchange.ts";
import type { Match } from "./router.ts";

/** What all responses of a server share. */
export interface DirectAnswers {
  /** The Date header's value. */
  date(): string;
  /** The headers of a connection that is kept, with its maximum idle time. */
  readonly keepAliveText: string;
  /** Throws Node's error for a header that could inject another line. */
  check(name: string, value: string): void;
}

export class DirectExchange extends Exchange {
  begun = false;
  private body: Buffer;
  private readonly budget: ByteBudget;
  private readonly answers: DirectAnswers;
  private readonly onFinished: () => void;
  private last = false;

  constructor(
    connection: Connection,
    request: DirectRequest,
    path: string,
    match: Match,
    options: { answers: DirectAnswers; receiving: ByteBudget; onFinished: () => void },
  ) {
    super(connection, request.method, request.url, request.headers, path, match);
    this.body = request.body;
    this.budget = options.receiving;
    this.answers = options.answers;
    this.onFinished = options.onFinished;
  }

  get response(): undefined {
    return undefined;
  }

  /** The body arrived in one read, so it is small and its JSON is not scanned. */
  readText({ bytesMax, keep }: BodyLimits, done: (outcome: BodyOutcome) => void): void {
    const { body } = this;
    this.body = noBytes;
    if (body.length > bytesMax) return done("too-large");
    if (!keep) return done({ text: "" });
    if (!this.budget.take(body.length)) return done("no-room");
    this.holdBody(this.budget, body.length);
    done(decodeBody(body));
  }

  openStream(): never {
    throw new TypeError("A route that reads a stream is not served directly.");
  }

  beginAnswer(last: boolean): void {
    this.last = last;
  }

  sendWhole({ status, head, body, bytes }: WholeAnswer, left?: () => void): void {
    const text = this.headText(status, head);
    const { socket } = this.connection;
    this.begun = true;
    if (body === undefined || bytes === 0 || !mayHaveBody(status)) socket.write(text, "latin1", left);
    // A text with as many bytes as characters is ASCII, which is the same in every encoding.
    else if (typeof body === "string" && body.length === bytes) socket.write(text + body, "latin1", left);
    else {
      socket.cork();
      socket.write(text, "latin1");
      socket.write(body, left);
      socket.uncork();
    }
  }

  beginPieces(status: number, head: readonly string[]): Socket {
    this.begun = true;
    const { socket } = this.connection;
    socket.write(this.headText(status, head), "latin1");
    return socket;
  }

  endPieces(left: () => void): void {
    left();
  }

  finished(): void {
    this.onFinished();
  }

  private headText(status: number, head: readonly string[]): string {
    let text = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "unknown"}\r\n`;
    for (let at = 0; at < head.length; at += 2) {
      const name = head[at] as string;
      const value = head[at + 1] as string;
      this.answers.check(name, value);
      text += `${name}: ${value}\r\n`;
    }
    const connection = this.last ? "Connection: close\r\n\r\n" : this.answers.keepAliveText;
    return `${text}Date: ${this.answers.date()}\r\n${connection}`;
  }
}

/** Most responses have the same headers, so the last valid value of each name is not checked again. */
export function headerCheck(): (name: string, value: string) => void {
  const valid = new Map<string, string>();
  return (name, value) => {
    const last = valid.get(name);
    if (last === value) return;
    if (last === undefined) validateHeaderName(name);
    validateHeaderValue(name, value);
    if (value.length <= rememberedCharsMax && (last !== undefined || valid.size < rememberedMax)) valid.set(name, value);
  };
}

/** How many header names are remembered, and how long their values may be. Our own replies stay below both limits. */
const rememberedMax = 64;
const rememberedCharsMax = 256;

const noBytes = Buffer.alloc(0);

/** The Date header of responses, built once a second. */
export function httpDate(): () => string {
  let second = 0;
  let text = "";
  return () => {
    const now = Math.trunc(Date.now() / 1_000);
    if (now !== second) {
      second = now;
      text = new Date(now * 1_000).toUTCString();
    }
    return text;
  };
}

function mayHaveBody(status: number): boolean {
  return status !== 204 && status !== 304;
}
