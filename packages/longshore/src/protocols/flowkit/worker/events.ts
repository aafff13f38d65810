// The reports of a worker about one attempt: event envelopes, ready to be sent in order.

import { randomUUID } from "node:crypto";
import type { Bus } from "../../../core/bus/bus.ts";
import type { Clock } from "../../../core/clock.ts";
import type { Json, JsonObject } from "../../../core/json/json.ts";
import { cutMiddle } from "../../../core/text.ts";
import type { Stretch } from "../wire/artifacts/artifacts.ts";
import { type AttemptKey, dedupIds } from "../wire/hash.ts";
import { encodeEnvelope, finalUid, nodeKey, payloadOf, protocolVersion, type StatusEvent } from "../wire/shapes.ts";

export interface AttemptEventsOptions {
  readonly bus: Bus;
  readonly clock: Clock;
  readonly topic: string;
  readonly key: AttemptKey;
  readonly role: string;
  readonly workerId: string;
  readonly leaseId: string;
  readonly leaseTtlMs: number;
  readonly heartbeatMs: number;
}

/** Longer texts help no reader and slow down every consumer. */
const errorCharsMax = 8_000;

export class AttemptEvents {
  readonly #options: AttemptEventsOptions;
  readonly #recordKey: string;
  /** The common fields of batch events, as JSON members with a trailing comma. */
  readonly #ofNode: string;
  readonly #ofAttempt: string;
  readonly #ofWorker: string;

  constructor(options: AttemptEventsOptions) {
    this.#options = options;
    const { key, role, workerId } = options;
    this.#recordKey = nodeKey(key.task_id, key.node_id);
    this.#ofNode = members({ task_id: key.task_id, node_id: key.node_id });
    this.#ofAttempt = `${this.#ofNode}${members({ step_type: role, attempt_epoch: key.attempt_epoch })}`;
    this.#ofWorker = members({ worker_id: workerId });
  }

  /** Resolves when the events are durable. */
  send(events: readonly (string | Uint8Array)[]): Promise<void> {
    const { bus, topic } = this.#options;
    return bus.publish(events.map((value) => ({ topic, key: this.#recordKey, value })));
  }

  accepted(): string {
    const { key, workerId, leaseId } = this.#options;
    return this.#event(dedupIds.accepted(key, leaseId), { kind: "TASK_ACCEPTED", worker_id: workerId, ...this.#lease() });
  }

  heartbeat(): string {
    const { key, workerId, clock, heartbeatMs } = this.#options;
    const id = dedupIds.heartbeat(key, clock.now(), heartbeatMs);
    return this.#event(id, { kind: "TASK_HEARTBEAT", worker_id: workerId, ...this.#lease() });
  }

  /**
   * A BATCH_OK event with its metrics, which are inserted as JSON. It is built from texts, because every batch has such an event and most
   * of its text is constant. It is returned as bytes, so that it is encoded only once.
   */
  batchOk(uid: string, metrics: string): Stretch {
    const { key, clock } = this.#options;
    const ids = `"corr_id":"${randomUUID()}","dedup_id":"${dedupIds.batchOk(key, uid)}",${this.#ofAttempt}"ts_ms":${clock.now()}`;
    const batch = `"batch_uid":${JSON.stringify(uid)}`;
    const head = `{"v":${protocolVersion},"msg_type":"event","role":"worker",${ids},"payload":{"kind":"BATCH_OK",${this.#ofWorker}${batch},"metrics":`;
    const tail = `,"artifacts_ref":{${this.#ofNode}${batch}}},"target_worker_id":null}`;
    const bytes = Buffer.from(head + metrics + tail);
    return { bytes, from: Buffer.byteLength(head), to: bytes.length - Buffer.byteLength(tail) };
  }

  batchFailed(uid: string, reason_code: string, permanent: boolean, error: string | null): string {
    const { key, workerId } = this.#options;
    const what = { batch_uid: uid, reason_code, permanent, error: shown(error), artifacts_ref: { batch_uid: uid } };
    return this.#event(dedupIds.batchFailed(key, uid), { kind: "BATCH_FAILED", worker_id: workerId, ...what });
  }

  done(metrics: JsonObject, artifactsRef: JsonObject | null, output: Json | undefined): string {
    const { key, workerId } = this.#options;
    const artifacts_ref = artifactsRef ?? { task_id: key.task_id, node_id: key.node_id };
    const what = { metrics, artifacts_ref, final_uid: finalUid, ...(output === undefined ? {} : { output }) };
    return this.#event(dedupIds.done(key), { kind: "TASK_DONE", worker_id: workerId, ...what });
  }

  failed(reason_code: string, permanent: boolean, error: string | null): string {
    const { key, workerId } = this.#options;
    const what = { reason_code, permanent, error: shown(error) };
    return this.#event(dedupIds.failed(key, reason_code, permanent), { kind: "TASK_FAILED", worker_id: workerId, ...what });
  }

  cancelled(reason: string): string {
    const { key, workerId } = this.#options;
    return this.#event(dedupIds.cancelled(key), { kind: "CANCELLED", worker_id: workerId, reason });
  }

  #lease(): { lease_id: string; lease_deadline_ts_ms: number } {
    const { clock, leaseId, leaseTtlMs } = this.#options;
    return { lease_id: leaseId, lease_deadline_ts_ms: clock.now() + leaseTtlMs };
  }

  #event(dedup_id: string, payload: StatusEvent): string {
    const { key, clock, role } = this.#options;
    return encodeEnvelope({
      msg_type: "event",
      role: "worker",
      corr_id: randomUUID(),
      dedup_id,
      task_id: key.task_id,
      node_id: key.node_id,
      step_type: role,
      attempt_epoch: key.attempt_epoch,
      ts_ms: clock.now(),
      payload: payloadOf(payload),
      target_worker_id: null,
    });
  }
}

function members(object: JsonObject): string {
  return `${JSON.stringify(object).slice(1, -1)},`;
}

function shown(error: string | null): string | null {
  return error === null ? null : cutMiddle(error, errorCharsMax);
}
