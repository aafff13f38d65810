// The cheapest reliable HTTP/1.1 client for one keep-alive connection: written requests, answers with a content length.
// Both servers get this same client, so what it costs is the same on both sides and as small as it can be.
import { connect, type Socket } from "node:net";

const HEAD_END = "\r\n\r\n";
const CONTENT_LENGTH = /\r\ncontent-length: *(\d+)/i;

export interface Answer {
  readonly status: number;
  readonly body: string;
}

export class HttpConnection {
  readonly #socket: Socket;
  readonly #host: string;
  #received = "";
  #waiting: { resolve(answer: Answer): void; reject(error: Error): void } | undefined;
  #broken: Error | undefined;

  private constructor(socket: Socket, host: string) {
    this.#socket = socket;
    this.#host = host;
    // Latin-1 keeps one character for each byte, so a content length can be compared with the length of the text.
    socket.setEncoding("latin1");
    socket.on("data", (chunk: string) => this.#receive(chunk));
    socket.on("error", (error) => this.#fail(error));
    socket.on("close", () => this.#fail(new Error(`the server closed the connection to ${host}`)));
  }

  static async open(url: string): Promise<HttpConnection> {
    const { hostname, port, host } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", reject);
    });
    return new HttpConnection(socket, host);
  }

  /** One request at a time. The body is JSON, or empty for a request without one. */
  request(method: string, path: string, body = ""): Promise<Answer> {
    if (this.#broken) return Promise.reject(this.#broken);
    const type = body === "" ? "" : "content-type: application/json\r\n";
    const head = `${method} ${path} HTTP/1.1\r\nhost: ${this.#host}\r\n${type}content-length: ${Buffer.byteLength(body)}\r\n\r\n`;
    this.#socket.write(head + body);
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }

  close(): void {
    this.#broken = new Error("this connection was closed");
    this.#socket.destroy();
  }

  #receive(chunk: string): void {
    this.#received = this.#received === "" ? chunk : this.#received + chunk;
    const headEnd = this.#received.indexOf(HEAD_END);
    if (headEnd === -1) return;
    const length = CONTENT_LENGTH.exec(this.#received.slice(0, headEnd))?.[1];
    if (length === undefined) return this.#fail(new Error(`an answer has no content length: ${this.#received.slice(0, headEnd)}`));
    const bodyStart = headEnd + HEAD_END.length;
    const end = bodyStart + Number(length);
    if (this.#received.length < end) return;
    const answer = { status: Number(this.#received.slice(9, 12)), body: this.#received.slice(bodyStart, end) };
    this.#received = this.#received.slice(end);
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.resolve(answer);
  }

  #fail(error: Error): void {
    this.#broken ??= error;
    this.#waiting?.reject(error);
    this.#waiting = undefined;
  }
}
