// Every record that the reference put on its bus (test/fixtures/flowkit). Our code reads it, writes the same bytes for it, and computes the
// same idempotency id.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Json, JsonObject } from "../../../core/json/json.ts";
import { decodeEnvelope, type Read, readAnnouncement, readCommand, readQuery, readReply, readSignal, readStatus } from "./decode.ts";
import { dedupIds } from "./hash.ts";
import { type Envelope, encodeEnvelope } from "./shapes.ts";

interface Recorded {
  session: string;
  topic: string;
  value: Envelope;
}

const records = readFileSync(new URL("../../../../test/fixtures/flowkit/wire.jsonl", import.meta.url), "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as Recorded);

/** Made by the reference's tests, not by its coordinator or workers. */
const isForged = ({ value }: Recorded): boolean => !/^[0-9a-f]{40}$/.test(value.dedup_id);

const genuine = records.filter((record) => !isForged(record));

const bytesOf = ({ value }: Recorded): Uint8Array => Buffer.from(JSON.stringify(value));

function understood<Value>(read: Read<Value>): Value {
  if (!read.ok) throw new Error(`${read.code}: ${read.why}`);
  return read.value;
}

const readers: Record<string, (envelope: Envelope) => Read<unknown>> = {
  cmd: readCommand,
  status: readStatus,
  workers: readAnnouncement,
  query: readQuery,
  reply: readReply,
  signals: readSignal,
};

const kindOf = ({ payload }: Envelope): Json => payload.kind ?? payload.cmd ?? payload.query ?? payload.reply ?? payload.sig ?? null;

/** The heartbeat interval of workers in the reference's tests. The reference reads the clock once more for the id. */
const BEATS_MS = [50, 200, 1_000, 10_000, 100_000];
const LATER_MS_MAX = 5;

/** The ids that we would give this message; several when the id depends on the clock. */
function idsOf(envelope: Envelope): string[] {
  const { payload, ts_ms } = envelope;
  const worker = String(payload.worker_id);
  switch (kindOf(envelope)) {
    case "TASK_START":
      return [dedupIds.start(envelope)];
    case "TASK_DISCOVER":
      return [dedupIds.discover(envelope)];
    case "TASK_ACCEPTED":
      return [dedupIds.accepted(envelope, String(payload.lease_id))];
    case "TASK_HEARTBEAT":
      return BEATS_MS.flatMap((everyMs) => around(ts_ms).map((at) => dedupIds.heartbeat(envelope, at, everyMs)));
    case "BATCH_OK":
      return [dedupIds.batchOk(envelope, String(payload.batch_uid))];
    case "BATCH_FAILED":
      return [dedupIds.batchFailed(envelope, String(payload.batch_uid))];
    case "TASK_DONE":
      return [dedupIds.done(envelope)];
    case "TASK_FAILED":
      return [dedupIds.failed(envelope, String(payload.reason_code), payload.permanent === true)];
    case "CANCELLED":
      return [dedupIds.cancelled(envelope)];
    case "CANCEL":
      return [dedupIds.cancelSignal(envelope, String(envelope.target_worker_id))];
    case "WORKER_ONLINE":
    case "WORKER_OFFLINE":
      return around(ts_ms).map((at) => dedupIds.announce(String(payload.kind), worker, at));
    default:
      return [];
  }
}

const around = (ms: number): number[] => Array.from({ length: 2 * LATER_MS_MAX + 1 }, (_, index) => ms + index - LATER_MS_MAX);

describe("what the reference has put on its bus", () => {
  it("is read, and written again in the same bytes", () => {
    expect(records).toHaveLength(382);
    for (const record of records) {
      const bytes = bytesOf(record);
      expect(encodeEnvelope(understood(decodeEnvelope(bytes)))).toBe(Buffer.from(bytes).toString());
    }
  });

  it("has payloads of which we keep every field, in the same order", () => {
    for (const { topic, value } of genuine) {
      const reader = readers[topic.split(".")[0] as string];
      const told = understood(reader?.(value) as Read<JsonObject>);
      // When the reference leaves out null fields, we also leave them out when we write. A reader sets all fields.
      const fields = Object.keys(told).filter((field) => field in value.payload || told[field] !== null);
      expect(fields).toEqual(Object.keys(value.payload));
      expect(told).toMatchObject(value.payload);
    }
  });

  it("has the idempotency ids that we compute", () => {
    const computed = genuine.filter(({ value }) => kindOf(value) !== "TASK_SNAPSHOT");
    expect(computed).toHaveLength(351);
    for (const { value } of computed) expect(idsOf(value), JSON.stringify(value)).toContain(value.dedup_id);
  });

  it("has replies whose ids contain the name of a worker that the reply itself does not contain", () => {
    const replies = genuine.filter(({ value }) => kindOf(value) === "TASK_SNAPSHOT");
    const workers = (session: string): string[] =>
      genuine
        .filter((one) => one.session === session && kindOf(one.value) === "WORKER_ONLINE")
        .map(({ value }) => String(value.payload.worker_id));
    expect(replies).toHaveLength(21);
    for (const { session, value } of replies) {
      expect(workers(session).map((worker) => dedupIds.snapshot(value, worker))).toContain(value.dedup_id);
    }
  });

  it("has the same names of batches and chunks that our code makes", () => {
    const ofNode = (node: string): string[] =>
      genuine
        .filter(({ session, value }) => session === "test_e2e_streaming_with_kafka_sim" && value.node_id === node)
        .filter(({ value }) => kindOf(value) === "BATCH_OK")
        .map(({ value }) => String(value.payload.batch_uid));
    // w2 cuts lists of five into three and two. w5 has no list key, so each artifact of w2 is one item. w4 uses the artifacts unchanged.
    expect(ofNode("w2")).toEqual(
      ofNode("w1").flatMap((uid, at) => (at < 2 ? [0, 1] : [0]).map((index) => dedupIds.chunk("w1", uid, index))),
    );
    expect(ofNode("w5")).toEqual(ofNode("w2").map((uid) => dedupIds.chunk("w2", uid, 0)));
    expect(ofNode("w4")).toEqual(ofNode("w5"));
  });

  it("has a forged event without a batch, which is refused by name", () => {
    const forged = records.filter((record) => isForged(record) && record.topic.startsWith("status."));
    const refused = forged.map(({ value }) => readStatus(value)).filter((read) => !read.ok);
    expect(refused).toEqual([{ ok: false, code: "payload.invalid", why: "payload.batch_uid is absent, expected a text" }]);
  });
});
