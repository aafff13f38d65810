// Notices a peer that is gone without closing its connection, for example after a power failure. TCP alone notices after minutes to hours,
// and only when something is sent. Every peer replies to an HTTP/2 PING at once, however busy its program is.
import type { Http2Session } from "node:http2";
import type { Clock } from "../../core/clock.ts";

export interface KeepAliveOptions {
  clock: Clock;
  /** The time between two pings. */
  pingMs: number;
  /** How long a reply may take. Everything else that arrives counts as a reply too. */
  pingTimeoutMs: number;
  /** Called every `pingMs`; false skips the ping. */
  tick?: () => boolean;
  /** Called once, when no reply arrived. */
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

  /** Something arrived, so the peer is alive. */
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
    // Not sent, because the session is closing; its owner handles that.
    if (!pinged) return this.#arm();
    this.#cancel = clock.at(sentMs + pingTimeoutMs, () => {
      if (this.#heardMs > sentMs) return again();
      this.stop();
      lost();
    });
  }
}
