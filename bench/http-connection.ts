// One keep-alive connection with one request at a time, by either of two clients. "undici" is what a Node worker on this protocol uses, so
// its cost is that of a real worker. "raw" writes to the socket by hand and costs the least.
import { connect, type Socket } from "node:net";
import { Client } from "undici";

const HEAD_END = "\r\n\r\n";
const CONTENT_LENGTH = /\r\ncontent-length: *(\d+)/i;

export interface Answer {
  readonly status: number;
  readonly body: string;
}

export interface HttpConnection {
  /** The body is JSON, or empty for a request without one. */
  request(method: "GET" | "POST", path: string, body?: string): Promise<Answer>;
  close(): void;
}

export const CLIENTS = ["undici", "raw"] as const;
export type ClientName = (typeof CLIENTS)[number];

export async function openConnection(url: string, client: ClientName): Promise<HttpConnection> {
  return client === "raw" ? RawConnection.open(url) : new UndiciConnection(url);
}

class UndiciConnection implements HttpConnection {
  readonly #client: Client;

  constructor(url: string) {
    this.#client = new Client(url, { pipelining: 1 });
  }

  request(method: "GET" | "POST", path: string, body = ""): Promise<Answer> {
    const content = body === "" ? {} : { headers: { "content-type": "application/json" }, body };
    return new Promise((resolve, reject) => {
      let status = 0;
      const parts: Buffer[] = [];
      this.#client.dispatch(
        { method, path, ...content },
        {
          onRequestStart: () => undefined,
          onResponseStart: (_controller, statusCode) => {
            status = statusCode;
          },
          onResponseData: (_controller, chunk) => {
            parts.push(chunk);
          },
          onResponseEnd: () => resolve({ status, body: (parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts)).toString() }),
          onResponseError: (_controller, error) => reject(error),
        },
      );
    });
  }

  close(): void {
    void this.#client.destroy();
  }
}

class RawConnection implements HttpConnection {
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

  static async open(url: string): Promise<RawConnection> {
    const { hostname, port, host } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", reject);
    });
    return new RawConnection(socket, host);
  }

  request(method: "GET" | "POST", path: string, body = ""): Promise<Answer> {
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
    if (length === undefined) {
      this.#fail(new Error(`an answer has no content length: ${this.#received.slice(0, headEnd)}`));
      return;
    }
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
