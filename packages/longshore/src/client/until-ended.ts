// Waits for the end of a run or a task: one long poll after another, also after the connection broke.

import { pause } from "../core/pause.ts";
import type { Requests } from "./requests.ts";

export interface Ending {
  readonly endedAt: number | null;
}

/** Shorter than the timeouts of proxies, and than the limit of the server. */
const waitMs = 25_000;
/** A server that closes ends its long polls early. The next one then waits this long, so that the client does not flood the server. */
const earlyMs = 1_000;

/** The run or task at `path`, after its end. */
export async function untilEnded<Body extends Ending>(requests: Requests, path: string, signal: AbortSignal | undefined): Promise<Body> {
  const { clock } = requests;
  for (;;) {
    const askedAt = clock.now();
    const body = await requests.get<Body>(path, { query: { waitMs }, waitMs, signal });
    if (body.endedAt !== null) return body;
    if (clock.now() - askedAt < earlyMs) await pause(clock, earlyMs, signal);
    signal?.throwIfAborted();
  }
}
