// Following that outlasts a restart of the server.

import { setTimeout as sleep } from "node:timers/promises";
import type { EventMessage } from "../net/http/read-events.ts";
import { type Client, type Query, Unreachable } from "./client.ts";

/** A server that restarts is back within seconds; after this long without any, the user should know. */
const awayMsMax = 30_000;
const retryMs = 500;

/** Tries `ask` again while no server answers, for a while. Any other answer, also a refusal, is the answer. */
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
 * The events of a stream, read on where the connection broke off. Never ends by itself while the server is there: the caller knows which
 * event is the last. The first connection is not waited for: a wrong address is reported at once.
 */
export async function* resumed(client: Client, path: string, query: Query): AsyncGenerator<EventMessage, void, void> {
  let lastEventId: string | undefined;
  let seenMs: number | undefined;
  for (;;) {
    try {
      for await (const message of client.events(path, { query, lastEventId })) {
        seenMs = Date.now();
        lastEventId = message.id ?? lastEventId;
        yield message;
      }
      seenMs = Date.now();
    } catch (error) {
      if (!(error instanceof Unreachable) || seenMs === undefined || Date.now() - seenMs > awayMsMax) throw error;
    }
    await sleep(retryMs);
  }
}
