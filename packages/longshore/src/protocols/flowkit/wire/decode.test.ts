import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../core/json/json.ts";
import {
  decodeEnvelope,
  onceEach,
  type Read,
  readActiveRun,
  readAnnouncement,
  readCommand,
  readQuery,
  readReply,
  readSignal,
  readStatus,
} from "./decode.ts";
import { type Envelope, encodeEnvelope } from "./shapes.ts";

const common = {
  msg_type: "event",
  role: "worker",
  corr_id: "c",
  dedup_id: "d",
  task_id: "T",
  node_id: "N",
  step_type: "echo",
  attempt_epoch: 1,
  ts_ms: 1_700_000_000_000,
  payload: {},
  target_worker_id: null,
} as const;

function why<Value>(read: Read<Value>): string {
  return read.ok ? "understood" : `${read.code}: ${read.why}`;
}

function decoded(change: { [field: string]: unknown }): Read<Envelope> {
  return decodeEnvelope(Buffer.from(JSON.stringify({ v: 1, ...common, ...change })));
}

function envelope(change: Partial<Envelope>): Envelope {
  return { v: 1, ...common, ...change };
}

function status(payload: JsonObject) {
  return readStatus(envelope({ payload: { worker_id: "w-1", ...payload } }));
}

describe("an envelope", () => {
  it("is written compactly, with every field, in its order", () => {
    expect(encodeEnvelope({ ...common, payload: { kind: "é" } })).toBe(
      '{"v":1,"msg_type":"event","role":"worker","corr_id":"c","dedup_id":"d","task_id":"T","node_id":"N","step_type":"echo",' +
        '"attempt_epoch":1,"ts_ms":1700000000000,"payload":{"kind":"é"},"target_worker_id":null}',
    );
  });

  it("is the same after it was written and read", () => {
    expect(decodeEnvelope(Buffer.from(encodeEnvelope(common)))).toEqual({ ok: true, value: { v: 1, ...common } });
  });

  it("may lack fields with a default, and may have unknown fields", () => {
    const read = decoded({ v: undefined, corr_id: undefined, payload: undefined, target_worker_id: undefined, novel: [1] });
    expect(read).toEqual({ ok: true, value: { v: 1, ...common, corr_id: "" } });
  });

  it("may have version 2", () => {
    expect(decoded({ v: 2 })).toMatchObject({ ok: true, value: { v: 2 } });
  });

  it.each([
    [{ v: 3 }, "v is 3, expected 1 or 2"],
    [{ msg_type: "shout" }, 'msg_type is "shout", expected cmd, event, heartbeat, query or reply'],
    [{ role: undefined }, "role is absent, expected coordinator or worker"],
    [{ dedup_id: 7 }, "dedup_id is 7, expected a string"],
    [{ task_id: null }, "task_id is null, expected a string"],
    [{ node_id: undefined }, "node_id is absent, expected a string"],
    [{ step_type: [] }, "step_type is [], expected a string"],
    [{ attempt_epoch: -1 }, "attempt_epoch is -1, expected a whole number from 0"],
    [{ attempt_epoch: 1.5 }, "attempt_epoch is 1.5, expected a whole number from 0"],
    [{ ts_ms: "now" }, 'ts_ms is "now", expected milliseconds since 1970'],
    [{ payload: [] }, "payload is [], expected an object"],
    [{ target_worker_id: 1 }, "target_worker_id is 1, expected a string or null"],
  ])("is refused with the field that is wrong: %j", (change, expected) => {
    expect(why(decoded(change))).toBe(`envelope.invalid: ${expected}`);
  });

  it("that is not JSON, not an object, not UTF-8 or too deep is refused without an exception", () => {
    expect(why(decodeEnvelope(Buffer.from("{")))).toMatch(/^envelope.invalid: it is not JSON in UTF-8/);
    expect(why(decodeEnvelope(Buffer.from([0x22, 0xff, 0x22])))).toMatch(/^envelope.invalid: it is not JSON in UTF-8/);
    expect(why(decodeEnvelope(Buffer.from("")))).toMatch(/^envelope.invalid/);
    expect(why(decodeEnvelope(Buffer.from("[]")))).toBe("envelope.invalid: it is [], expected an object");
    const deep = `{"payload":${"[".repeat(200)}${"]".repeat(200)}}`;
    expect(why(decodeEnvelope(Buffer.from(deep)))).toBe("envelope.invalid: it is nested deeper than 100 levels");
  });
});

describe("a command", () => {
  const command = (payload: JsonObject) => readCommand(envelope({ msg_type: "cmd", role: "coordinator", payload }));

  it("to start has its input", () => {
    const start = { cmd: "TASK_START", input_ref: null, input_inline: { a: 1 }, batching: null, cancel_token: "c" };
    expect(command(start)).toEqual({ ok: true, value: start });
    expect(command({ cmd: "TASK_START" })).toMatchObject({ ok: true, value: { input_ref: null, input_inline: null, cancel_token: "" } });
  });

  it("to start may name batches to skip", () => {
    expect(command({ cmd: "TASK_START", dead_letters: ["b1"] })).toMatchObject({ ok: true, value: { dead_letters: ["b1"] } });
    expect(why(command({ cmd: "TASK_START", dead_letters: [1] }))).toBe(
      "payload.invalid: payload.dead_letters is [1], expected a list of texts",
    );
  });

  it("to cancel, pause and resume is read", () => {
    expect(command({ cmd: "TASK_CANCEL", reason: "r" })).toMatchObject({ ok: true, value: { cmd: "TASK_CANCEL", reason: "r" } });
    expect(command({ cmd: "TASK_PAUSE" })).toEqual({ ok: true, value: { cmd: "TASK_PAUSE" } });
  });

  it("of an unknown kind, with a wrong field, or from a worker is refused", () => {
    expect(why(command({ cmd: "DANCE" }))).toBe('kind.invalid: payload.cmd is "DANCE", which is not known');
    expect(why(command({ cmd: "TASK_START", input_inline: [] }))).toBe(
      "payload.invalid: payload.input_inline is [], expected an object or null",
    );
    expect(why(readCommand(envelope({ msg_type: "cmd" })))).toBe(
      "envelope.invalid: it is cmd of a worker, expected a coordinator's command",
    );
  });
});

describe("a worker's event", () => {
  it("of every kind is read with the reference's defaults", () => {
    const lease = { lease_id: "L", lease_deadline_ts_ms: 5 };
    expect(status({ kind: "TASK_ACCEPTED", ...lease })).toMatchObject({ ok: true, value: { kind: "TASK_ACCEPTED", ...lease } });
    expect(status({ kind: "BATCH_OK", batch_uid: "b" })).toMatchObject({ ok: true, value: { metrics: {}, artifacts_ref: null } });
    expect(status({ kind: "BATCH_FAILED", batch_uid: "b", reason_code: "r" })).toMatchObject({
      ok: true,
      value: { permanent: false, error: null, artifacts_ref: null },
    });
    expect(status({ kind: "TASK_DONE" })).toMatchObject({ ok: true, value: { metrics: {}, final_uid: null } });
    expect(status({ kind: "TASK_DONE", output: 0 })).toMatchObject({ ok: true, value: { output: 0 } });
    expect(status({ kind: "TASK_FAILED", reason_code: "r", permanent: true })).toMatchObject({ ok: true, value: { permanent: true } });
    expect(status({ kind: "CANCELLED" })).toMatchObject({ ok: true, value: { worker_id: "w-1", reason: "" } });
  });

  it("of an unknown kind, without its worker or with a wrong field is refused", () => {
    expect(why(status({ kind: "toString" }))).toBe('kind.invalid: payload.kind is "toString", which is not known');
    expect(why(readStatus(envelope({ payload: { kind: "TASK_DONE" } })))).toBe(
      "payload.invalid: payload.worker_id is absent, expected a text",
    );
    expect(why(status({ kind: "BATCH_OK" }))).toBe("payload.invalid: payload.batch_uid is absent, expected a text");
    expect(why(status({ kind: "TASK_HEARTBEAT", lease_id: "L" }))).toBe(
      "payload.invalid: payload.lease_deadline_ts_ms is absent, expected milliseconds since 1970",
    );
    expect(why(readStatus(envelope({ role: "coordinator" })))).toMatch(/^envelope.invalid/);
  });
});

describe("the other messages", () => {
  it("an announcement has roles, capacity and what the worker was doing", () => {
    const resume = {
      task_id: "T",
      node_id: "N",
      step_type: "echo",
      attempt_epoch: 2,
      lease_id: "L",
      cancel_token: "c",
      started_at_ms: 3,
      state: "cancelling",
      checkpoint: {},
    };
    const online = { kind: "WORKER_ONLINE", worker_id: "w-1", type: "a,b", version: "2.0.0", capacity: { tasks: 4 } };
    const payload = { ...online, capabilities: { roles: ["a", "b"] }, resume };
    expect(readAnnouncement(envelope({ payload }))).toEqual({ ok: true, value: payload });
    expect(readAnnouncement(envelope({ payload: online }))).toMatchObject({ ok: true, value: { capabilities: null, resume: null } });
  });

  it("an announcement of version 2 lists its roles, and a worker that signs off may give a reason", () => {
    const second = { kind: "WORKER_ONLINE", worker_id: "w-1", roles: ["a", "b"] };
    expect(readAnnouncement(envelope({ payload: second }))).toMatchObject({
      ok: true,
      value: { type: "a,b", capabilities: { roles: ["a", "b"] }, capacity: { tasks: 1 } },
    });
    const gone = { kind: "WORKER_OFFLINE", worker_id: "w-1", reason: "drain" };
    expect(readAnnouncement(envelope({ payload: gone }))).toEqual({ ok: true, value: gone });
    expect(why(readAnnouncement(envelope({ payload: { kind: "WORKER_ASLEEP", worker_id: "w-1" } })))).toMatch(/^kind.invalid/);
  });

  it("a signal is compared without regard to case", () => {
    const read = readSignal(envelope({ role: "coordinator", payload: { sig: "cancel", reason: "user", deadline_ts_ms: 9 } }));
    expect(read).toEqual({ ok: true, value: { sig: "CANCEL", reason: "user", cancel_token: null, deadline_ts_ms: 9 } });
    expect(why(readSignal(envelope({ role: "coordinator", payload: { sig: "STOP" } })))).toMatch(/^kind.invalid/);
  });

  it("a query has the envelope's epoch by default", () => {
    const query = (payload: JsonObject) => readQuery(envelope({ msg_type: "query", role: "coordinator", attempt_epoch: 4, payload }));
    expect(query({ query: "TASK_DISCOVER" })).toEqual({ ok: true, value: { query: "TASK_DISCOVER", want_epoch: 4 } });
    expect(query({ query: "TASK_DISCOVER", want_epoch: 5 })).toMatchObject({ ok: true, value: { want_epoch: 5 } });
    expect(why(query({ query: "WHO" }))).toMatch(/^kind.invalid/);
  });

  it("a reply reports what runs, or that nothing runs", () => {
    const reply = (payload: JsonObject) => readReply(envelope({ msg_type: "reply", payload: { reply: "TASK_SNAPSHOT", ...payload } }));
    const lease = { worker_id: "w-1", lease_id: "L", deadline_ts_ms: 4 };
    expect(reply({ worker_id: "w-1", run_state: "running", attempt_epoch: 1, lease, progress: {} })).toMatchObject({
      ok: true,
      value: { run_state: "running", attempt_epoch: 1, lease, progress: {}, artifacts: null },
    });
    expect(reply({ worker_id: null, run_state: "idle", artifacts: { complete: true } })).toMatchObject({
      ok: true,
      value: { worker_id: null, run_state: "idle", attempt_epoch: 0, lease: null, artifacts: { complete: true } },
    });
  });

  it("a stored run that cannot be read counts as absent", () => {
    expect(readActiveRun({ task_id: "T" })).toBeNull();
    expect(readActiveRun("T")).toBeNull();
    expect(readActiveRun({ task_id: "T", node_id: "N", step_type: "s", attempt_epoch: 1 })).toMatchObject({
      state: "running",
      lease_id: "",
    });
  });

  it("a failure of one kind is reported once", () => {
    const told: string[] = [];
    const warn = onceEach((code) => told.push(code));
    for (const code of ["a", "b", "a", "a"]) warn(code, "m");
    expect(told).toEqual(["a", "b"]);
  });
});
