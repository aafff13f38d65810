// Reads a record of the bus: its envelope, then the event in it. A record that cannot be read is counted, reported and skipped.

import { skipping } from "../../../../bus/skip-records.ts";
import type { BusRecord, Subscription } from "../../../../core/bus/bus.ts";
import { decodeEnvelope, type Read } from "../../wire/decode.ts";
import type { Envelope } from "../../wire/shapes.ts";
import type { CoordinatorCounts } from "./parts.ts";

export interface ReadRecordDeps {
  readonly counts: Pick<CoordinatorCounts, "malformed">;
  /** Called once for each kind of failure. */
  warn(code: string, message: string): void;
}

/** Reads and handles one record after the other. A record that can never be handled is skipped, too. */
export function eachRecord<Event>(
  kind: string,
  read: (envelope: Envelope) => Read<Event>,
  deps: ReadRecordDeps,
  handle: (event: Event, envelope: Envelope) => Promise<void>,
): Subscription["handle"] {
  return skipping(
    async (record) => {
      const found = readRecord(record, kind, read, deps);
      if (found !== null) await handle(found.event, found.envelope);
    },
    ({ place }, { message }) => deps.warn(`${kind}.refused`, `The record ${place} is skipped: ${message}`),
  );
}

/** Null for a record that cannot be read. The code of the warning begins with `kind`. */
export function readRecord<Event>(
  record: BusRecord,
  kind: string,
  read: (envelope: Envelope) => Read<Event>,
  { counts, warn }: ReadRecordDeps,
  parse?: (text: string) => unknown,
): { envelope: Envelope; event: Event } | null {
  const envelope = decodeEnvelope(record.value, parse);
  const event = envelope.ok ? read(envelope.value) : envelope;
  if (envelope.ok && event.ok) return { envelope: envelope.value, event: event.value };
  counts.malformed++;
  if (!event.ok) warn(`${kind}.${event.code}`, `The record ${record.place} is skipped: ${event.why}`);
  return null;
}
