// Reads a record of the bus: its envelope, then the event in it. What cannot be read is counted, reported and passed over.

import type { BusRecord } from "../../../../bus/bus.ts";
import { decodeEnvelope, type Read } from "../../wire/decode.ts";
import type { Envelope } from "../../wire/shapes.ts";
import type { CoordinatorCounts } from "./parts.ts";

export interface ReadRecordDeps {
  readonly counts: Pick<CoordinatorCounts, "malformed">;
  /** Called once for each kind of failure. */
  warn(code: string, message: string): void;
}

/** Null for what cannot be read. `kind` begins the code of the warning. */
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
  if (!event.ok) warn(`${kind}.${event.code}`, `The record ${record.place} is passed over: ${event.why}`);
  return null;
}
