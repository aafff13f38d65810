// The outbox of a bus that is as durable as the store beside it: what is published is kept at once, so there is nothing to be kept before.
// Only the memory of what was sent is lost with the process; workers know a message that they have seen by its `dedup_id`.

import type { Bus } from "../../../../bus/bus.ts";
import type { Outbox, OutgoingMessage } from "./parts.ts";

/** Messages whose ids are remembered: as many as workers remember. */
const rememberedMax = 10_000;

export function directOutbox(bus: Bus): Outbox {
  const sent = new Set<string>();
  return {
    async enqueue({ topic, key, dedupId, value, retry }: OutgoingMessage) {
      const print = `${topic}\u0000${key}\u0000${dedupId}`;
      if (sent.has(print)) return;
      await bus.publish([{ topic, key, value, ...(retry === undefined ? {} : { retry }) }]);
      const [oldest] = sent;
      if (oldest !== undefined && sent.size >= rememberedMax) sent.delete(oldest);
      sent.add(print);
    },
  };
}
