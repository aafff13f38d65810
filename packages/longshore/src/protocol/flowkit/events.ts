// What a worker says about one attempt: envelopes of events, ready to be sent, in the order in which they are made.

import { randomUUID } from "node:crypto";
import type { Bus } from "../../bus/bus.ts";
import type { Clock } from "../../clock.ts";
import type { Json, JsonObject } from "../../json.ts";
import { cutMiddle } from "../../text.ts";
import { type AttemptKey, dedupIds } from "./hash.ts";
import { encodeEnvelope, finalUid, nodeKey, payloadOf, type StatusEvent } from "./wire.ts";

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

/** A text for people; longer ones help nobody and weigh on every reader. */
const errorCharsMax = 8_000;

export class AttemptEvents {
  readonly #options: AttemptEventsOptions;
  readonly #recordKey: string;

  constructor(options: AttemptEventsOptions) {
    this.#options = options;
    this.#recordKey = nodeKey(options.key.task_id, options.key.node_id);
  }

  /** Resolves when they are durable. */
  send(events: readonly string[]): Promise<void> {
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

  batchOk(uid: string, metrics: JsonObject): string {
    const { key, workerId } = this.#options;
    const artifacts_ref = { task_id: key.task_id, node_id: key.node_id, batch_uid: uid };
    return this.#event(dedupIds.batchOk(key, uid), { kind: "BATCH_OK", worker_id: workerId, batch_uid: uid, metrics, artifacts_ref });
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

function shown(error: string | null): string | null {
  return error === null ? null : cutMiddle(error, errorCharsMax);
}
