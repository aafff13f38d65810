// Waits for the end of a run or a task: one long poll after another, also after the connection broke.

import { pause } from "../core/pause.ts";
import type { Requests } from "./requests.ts";

export interface Ending {
  readonly endedAt: number | null;
}

/** Shorter than the timeouts of proxies, and than the limit of the server. */
export const endWaitMs = 25_000;
/** A server that closes ends its long polls early. The next one then waits this long, so that the client does not flood the server. */
const earlyMs = 1_000;

/** A reply to a request that has already waited. */
interface Waited<Body> {
  readonly body: Body;
  readonly askedAt: number;
}

/** The run or task at `path`, after its end. */
export async function untilEnded<Body extends Ending>(
  requests: Requests,
  path: string,
  signal: AbortSignal | undefined,
  first?: Waited<Body>,
): Promise<Body> {
  const { clock } = requests;
  const ask = async (): Promise<Waited<Body>> => {
    const askedAt = clock.now();
    return { askedAt, body: await requests.get<Body>(path, { query: { waitMs: endWaitMs }, waitMs: endWaitMs, signal }) };
  };
  for (let waited = first ?? (await ask()); ; waited = await ask()) {
    if (waited.body.endedAt !== null) return waited.body;
    if (clock.now() - waited.askedAt < earlyMs) await pause(clock, earlyMs, signal);
    signal?.throwIfAborted();
  }
}
