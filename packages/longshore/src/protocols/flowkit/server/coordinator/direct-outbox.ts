// The outbox for a bus that is as durable as the store. A published message is durable at once, so it is not stored before it is sent. The
// list of sent messages is only in memory and is lost with the process, but workers recognise a repeated message by its `dedup_id`.

import type { Bus } from "../../../../core/bus/bus.ts";
import type { Outbox, OutgoingMessage } from "./parts.ts";

/** Remembered message ids: as many as workers remember. */
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
