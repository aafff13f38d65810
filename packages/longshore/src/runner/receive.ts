// The loop of a transport that keeps a connection or a stream open. It is opened again after its end, with growing delays.

import { type Backoff, backoffMs } from "../core/backoff.ts";
import { pause } from "../core/clock.ts";
import type { TransportHost } from "./transport.ts";

export interface Receiving {
  /** The name in reports of failures. */
  readonly what: string;
  /** The delays before it is opened again. */
  readonly backoff: Backoff;
  /** Resolves when the peer has ended it, rejects when it failed. Calls `opened` once it works, so that the next delay is short. */
  readonly receive: (opened: () => void) => Promise<void>;
  /** Returns true when it must not be opened again, although the worker continues. */
  readonly over?: () => boolean;
}

/** Receives until the worker drains or `over` returns true. Never rejects. */
export async function keepReceiving(host: TransportHost, { what, backoff, receive, over = () => false }: Receiving): Promise<void> {
  const { clock, draining, failing, working } = host;
  let failures = 0;
  const opened = () => {
    failures = 0;
    working(what);
  };
  while (!draining.aborted && !over()) {
    try {
      await receive(opened);
    } catch (error) {
      if (!draining.aborted) failing(what, error);
    }
    // There is a delay even after an end without an error: a peer that ends streams is probably closing.
    if (!draining.aborted && !over()) await pause(clock, backoffMs(backoff, ++failures, Math.random()), draining);
  }
}
