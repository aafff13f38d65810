// The listener of a stub: it may be closed, and then listen again on the same port, like a server that restarts.

import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";

export class StubListener {
  readonly #answer: RequestListener;
  #server: Server | undefined;
  #port = 0;

  constructor(answer: RequestListener) {
    this.#answer = answer;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Listens again on the same port after `close`. */
  async listen(): Promise<void> {
    const server = createServer(this.#answer);
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(this.#port, "127.0.0.1", resolve);
    });
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Also closes the open connections. */
  async close(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }

  /** How many connections are open now. */
  connections(): Promise<number> {
    return new Promise((resolve) => (this.#server as Server).getConnections((_error, count) => resolve(count)));
  }
}
