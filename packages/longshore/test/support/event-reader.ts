// Reads server-sent events from a real connection, frame by frame. It buffers only what the test has requested.

import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { onTestFinished } from "vitest";

export interface Frame {
  event: string | undefined;
  id: string | undefined;
  data: string;
}

export class EventReader {
  readonly response: IncomingMessage;
  readonly #request: ClientRequest;
  #text = "";
  #ended = false;
  #news: () => void = () => {};

  /** Connects; closed at the end of the test. */
  static open(url: string, headers: Record<string, string> = {}): Promise<EventReader> {
    return new Promise((resolve, reject) => {
      const sent = request(url, { headers: { accept: "text/event-stream", ...headers }, agent: false }, (response) => {
        resolve(new EventReader(sent, response));
      });
      sent.on("error", reject);
      sent.end();
    });
  }

  private constructor(sent: ClientRequest, response: IncomingMessage) {
    this.#request = sent;
    this.response = response;
    response.setEncoding("utf8");
    response.on("data", (chunk: string) => {
      this.#text += chunk;
      this.#news();
    });
    response.on("close", () => {
      this.#ended = true;
      this.#news();
    });
    // A test that disconnects gets its own error here.
    response.on("error", () => {});
    sent.on("error", () => {});
    onTestFinished(() => this.close());
  }

  /** The next frame that is not a comment; undefined when the stream has ended. */
  async next(): Promise<Frame | undefined> {
    for (;;) {
      const block = await this.#block();
      if (block === undefined) return undefined;
      if (!block.startsWith(":")) return frameOf(block);
    }
  }

  /** Resolves when a keep-alive comment has come. */
  async comment(): Promise<string> {
    for (;;) {
      const block = await this.#block();
      if (block === undefined) throw new Error("The stream ended without a comment.");
      if (block.startsWith(":")) return block;
    }
  }

  /** Every frame until the stream ends. */
  async rest(): Promise<Frame[]> {
    const frames: Frame[] = [];
    for (let frame = await this.next(); frame !== undefined; frame = await this.next()) frames.push(frame);
    return frames;
  }

  pause(): void {
    this.response.pause();
  }

  resume(): void {
    this.response.resume();
  }

  close(): void {
    this.#request.destroy();
  }

  async #block(): Promise<string | undefined> {
    for (;;) {
      const end = this.#text.indexOf("\n\n");
      if (end >= 0) {
        const block = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 2);
        return block;
      }
      if (this.#ended) return undefined;
      await new Promise<void>((resolve) => {
        this.#news = resolve;
      });
    }
  }
}

function frameOf(block: string): Frame {
  const frame: Frame = { event: undefined, id: undefined, data: "" };
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const at = line.indexOf(": ");
    const value = line.slice(at + 2);
    if (line.startsWith("event")) frame.event = value;
    else if (line.startsWith("id")) frame.id = value;
    else if (line.startsWith("data")) data.push(value);
  }
  return { ...frame, data: data.join("\n") };
}
