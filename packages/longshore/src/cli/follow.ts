// Follows a run or a log across a restart of the server.

import { setTimeout as sleep } from "node:timers/promises";
import type { EventMessage } from "../net/http/read-events.ts";
import { type Client, type Query, Unreachable } from "./client.ts";

/** A server restarts within seconds. After this time without a server, the user is informed. */
const awayMsMax = 30_000;
const retryMs = 500;

/** Repeats `ask` while no server responds, up to a time limit. Any response, also a refusal, ends the retries. */
export async function patiently<Answer>(ask: () => Promise<Answer>, signal?: AbortSignal): Promise<Answer> {
  const sinceMs = Date.now();
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof Unreachable) || Date.now() - sinceMs > awayMsMax) throw error;
      await sleep(retryMs, undefined, { signal });
    }
  }
}

/**
 * The events of a stream. After a broken connection, continues with the next event. Does not end while the server is reachable: the caller
 * recognises the last event. The first connection is not retried, so that a wrong address is reported at once.
 */
export async function* resumed(client: Client, path: string, query: Query, signal?: AbortSignal): AsyncGenerator<EventMessage, void, void> {
  let lastEventId: string | undefined;
  let seenMs: number | undefined;
  for (;;) {
    try {
      for await (const message of client.events(path, { query, lastEventId, signal })) {
        seenMs = Date.now();
        lastEventId = message.id ?? lastEventId;
        yield message;
      }
      seenMs = Date.now();
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof Unreachable) || seenMs === undefined || Date.now() - seenMs > awayMsMax) throw error;
    }
    await sleep(retryMs, undefined, { signal });
  }
}
