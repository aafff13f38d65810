// An exchange that the server carries by itself: the request is whole before it begins, and the answer is one write.

import { STATUS_CODES, validateHeaderName, validateHeaderValue } from "node:http";
import type { Socket } from "node:net";
import type { ByteBudget } from "../../core/byte-budget.ts";
import { type BodyOutcome, decodeBody } from "./body.ts";
import type { BodyLimits } from "./body-reading.ts";
import type { Connection } from "./connections.ts";
import type { DirectRequest } from "./direct-request.ts";
import { Exchange, type WholeAnswer } from "./exchange.ts";
import type { Match } from "./router.ts";

/** What every answer of a server has in common. */
export interface DirectAnswers {
  /** The Date header's value. */
  date(): string;
  /** The header of a kept connection: how long it may be idle. */
  readonly keepAliveText: string;
  /** Throws what Node would for a header that could break out of its line. */
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

  /** What one read brought is not scanned, because it is small. */
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
    // A text that is as long in bytes as in characters is ASCII, and any encoding writes it the same.
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

/** Most answers have the same headers: for each name, the value that was valid last is not checked again. */
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

/** Names of headers that are remembered, and characters of their values: more than our replies have. */
const rememberedMax = 64;
const rememberedCharsMax = 256;

const noBytes = Buffer.alloc(0);

/** The Date of answers, made once a second. */
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
