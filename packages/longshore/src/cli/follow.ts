// Event streams that outlast a restart of the server: read on where the connection broke off.

import { setTimeout as sleep } from "node:timers/promises";
import type { Client, Query } from "./client.ts";
import type { EventMessage } from "./read-events.ts";

/** A server that restarts is back within seconds; after this long without any, whoever waits should know. */
const awayMsMax = 30_000;
const retryMs = 500;

/** Never ends by itself while the server is there: the caller knows which event is the last. Throws when the server stays away. */
export async function* resumed(client: Client, path: string, query: Query): AsyncGenerator<EventMessage, void, void> {
  let lastEventId: string | undefined;
  let awaySince: number | undefined;
  // The first connection is not waited for: a wrong address or a wrong run is told at once.
  let connected = false;
  for (;;) {
    try {
      for await (const message of client.events(path, { query, lastEventId })) {
        connected = true;
        awaySince = undefined;
        lastEventId = message.id ?? lastEventId;
        yield message;
      }
      connected = true;
    } catch (error) {
      awaySince ??= Date.now();
      if (!connected || Date.now() - awaySince > awayMsMax) throw error;
    }
    await sleep(retryMs);
  }
}
