// Notices a peer that has vanished without a word: a machine that lost power, a cable, a NAT that forgot. TCP alone notices after minutes
// to hours, and only when something is sent. A PING of HTTP/2 is answered by every peer at once, however busy its program is.
import type { Http2Session } from "node:http2";
import type { Clock } from "../../core/clock.ts";

export interface KeepAliveOptions {
  clock: Clock;
  /** Between two pings. */
  pingMs: number;
  /** How long an answer may take. Anything else that arrives counts as one. */
  pingTimeoutMs: number;
  /** Called every `pingMs`; false leaves the ping out. */
  tick?: () => boolean;
  /** Called once, when no answer came. */
  lost: () => void;
}

export class KeepAlive {
  readonly #session: Http2Session;
  readonly #options: KeepAliveOptions;
  #cancel: () => void = () => {};
  #heardMs: number;
  #stopped = false;

  constructor(session: Http2Session, options: KeepAliveOptions) {
    this.#session = session;
    this.#options = options;
    this.#heardMs = options.clock.now();
    this.#arm();
  }

  /** The peer is there: something came from it. */
  heard(): void {
    this.#heardMs = this.#options.clock.now();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  #arm(): void {
    const { clock, pingMs } = this.#options;
    if (!this.#stopped) this.#cancel = clock.at(clock.now() + pingMs, () => this.#tick());
  }

  #tick(): void {
    const { clock, tick, pingTimeoutMs, lost } = this.#options;
    if (this.#session.destroyed) return this.stop();
    if (tick?.() === false) return this.#arm();
    const sentMs = clock.now();
    const again = () => {
      this.#cancel();
      this.#arm();
    };
    const pinged = this.#session.ping((error) => {
      if (error === null) again();
    });
    // Not sent: the session is closing, and its owner handles that.
    if (!pinged) return this.#arm();
    this.#cancel = clock.at(sentMs + pingTimeoutMs, () => {
      if (this.#heardMs > sentMs) return again();
      this.stop();
      lost();
    });
  }
}
