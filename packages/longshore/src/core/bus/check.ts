// Checks that every bus makes before it sends anything.

import { LongshoreError } from "../errors.ts";
import { checkName } from "../names.ts";
import { type Outgoing, recordBytesMax } from "./bus.ts";

/** Kafka's rule, so that a name that works on one bus works on every other. */
const topicPattern = /^[A-Za-z0-9._-]{1,249}$/;

/** Throws for the first record that no bus would accept. */
export function checkOutgoing(records: readonly Outgoing[], bytesMax = recordBytesMax): void {
  for (const [at, record] of records.entries()) {
    checkTopic(record.topic, `records[${at}].topic`);
    if (record.key !== null) checkName(record.key, `records[${at}].key`);
    const bytes = bytesOf(record);
    if (bytes > bytesMax) throw tooLarge(record, bytes, bytesMax, `records[${at}].value`);
  }
}

export function checkTopic(topic: string, field = "topic"): void {
  if (topicPattern.test(topic) && topic !== "." && topic !== "..") return;
  throw new LongshoreError(
    "LONGSHORE_BAD_INPUT",
    `${JSON.stringify(topic)} cannot be the name of a topic: expected 1 to 249 letters, digits, dots, underscores or hyphens.`,
    { detail: { field, expected: "1 to 249 letters, digits, dots, underscores or hyphens" } },
  );
}

export function bytesOf({ key, value }: Outgoing): number {
  return (typeof value === "string" ? Buffer.byteLength(value) : value.byteLength) + (key === null ? 0 : Buffer.byteLength(key));
}

function tooLarge({ topic, key }: Outgoing, bytes: number, bytesMax: number, field: string): LongshoreError {
  const whose = key === null ? "" : ` with the key ${JSON.stringify(key)}`;
  return new LongshoreError(
    "LONGSHORE_LIMIT",
    `A record for the topic ${topic}${whose} has ${bytes} bytes; at most ${bytesMax} are accepted. Store large data elsewhere and send its address.`,
    { detail: { field, expected: `at most ${bytesMax} bytes` } },
  );
}
