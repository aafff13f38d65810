import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../core/json/json.ts";
import { decodeEnvelope, readStatus } from "../wire/decode.ts";
import { type Envelope, encodeEnvelope } from "../wire/shapes.ts";
import { readBatchHead } from "./batch-head.ts";

const names = { task_id: "01JABC", node_id: "u [1]", step_type: "probe", attempt_epoch: 12 };
const payload: JsonObject = { kind: "BATCH_OK", worker_id: "w-1", batch_uid: "b/0", metrics: { n: 1, text: 'a "b"' }, artifacts_ref: null };

function written(change: Partial<Envelope>): Buffer {
  const common = {
    msg_type: "event",
    role: "worker",
    corr_id: "c",
    dedup_id: "d",
    ts_ms: 1_700_000_000_000,
    target_worker_id: null,
  } as const;
  return Buffer.from(encodeEnvelope({ ...common, ...names, payload, ...change }));
}

describe("the head of a batch event", () => {
  it("has the same values as the whole event", () => {
    const bytes = written({});
    const envelope = decodeEnvelope(bytes);
    const event = envelope.ok ? readStatus(envelope.value) : envelope;
    const head = readBatchHead(bytes);
    expect(head).toEqual({ ...names, worker_id: "w-1", batch_uid: "b/0" });
    expect(envelope).toMatchObject({ value: names });
    expect(event).toMatchObject({ value: { worker_id: "w-1", batch_uid: "b/0" } });
  });

  it("is found between other bytes", () => {
    const bytes = written({});
    const amid = Buffer.concat([Buffer.from("{}"), bytes, Buffer.from("{}")]);
    expect(readBatchHead(amid.subarray(2, 2 + bytes.length))).toEqual(readBatchHead(bytes));
    expect(readBatchHead(amid)).toBeNull();
  });

  it.each<[string, Partial<Envelope>]>([
    ["a name with a sign that is escaped", { node_id: 'a"b' }],
    ["a name with a sign that is not ASCII", { node_id: "é" }],
    ["an empty name", { payload: { ...payload, batch_uid: "" } }],
    ["a name without end", { payload: { ...payload, batch_uid: "x".repeat(2_000) } }],
    ["another kind", { payload: { ...payload, kind: "BATCH_FAILED" } }],
    ["another order", { payload: { metrics: {}, ...payload } }],
    ["metrics that are not an object", { payload: { ...payload, metrics: [] } }],
    ["another sender", { role: "coordinator" }],
    ["an epoch that is not a count", { attempt_epoch: -1 }],
  ])("of %s is left to the reader of the whole", (_what, change) => {
    expect(readBatchHead(written(change))).toBeNull();
  });

  it("is refused when it is incomplete", () => {
    const bytes = written({});
    const end = bytes.indexOf('"metrics":{');
    expect(readBatchHead(bytes.subarray(0, end))).toBeNull();
    expect(readBatchHead(new Uint8Array())).toBeNull();
  });
});
