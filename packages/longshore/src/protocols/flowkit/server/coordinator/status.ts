// Reads the events of workers about their attempts, in batches of records. The events of one attempt are combined: a hundred batches of a
// node cost one write. Attempts are handled concurrently and share commits. A batch of records is acknowledged when all its changes are
// durable; otherwise it is delivered again. Every event may arrive twice.

import { mayPass } from "../../../../bus/skip-records.ts";
import type { BusRecord } from "../../../../core/bus/bus.ts";
import { toError } from "../../../../core/errors.ts";
import type { JsonObject } from "../../../../core/json/json.ts";
import { parseExact } from "../../../../core/json/json-exact.ts";
import { readStatus } from "../../wire/decode.ts";
import type { Envelope, StatusEvent } from "../../wire/shapes.ts";
import { readBatchHead } from "../batch-head.ts";
import type { AttemptEvent, AttemptEvents, Attempts } from "./attempts.ts";
import type { WireAttempt } from "./messages.ts";
import type { CoordinatorCounts, CoordinatorLog } from "./parts.ts";
import { readRecord } from "./read-record.ts";
import type { Registry } from "./registry.ts";

export interface StatusDeps {
  readonly attempts: Attempts;
  readonly registry: Pick<Registry, "heard">;
  readonly counts: CoordinatorCounts;
  readonly log: CoordinatorLog;
  /** Called once for each kind of failure. */
  warn(code: string, message: string): void;
}

/** Attempts of one batch of records that are handled at once. More would only wait for each other's commit. */
const besideMax = 256;

export class StatusReader {
  readonly #deps: StatusDeps;

  constructor(deps: StatusDeps) {
    this.#deps = deps;
  }

  /** Rejects only when the store cannot be written now. */
  async handle(records: readonly BusRecord[]): Promise<void> {
    const attempts = [...this.#fold(records).values()];
    for (let at = 0; at < attempts.length; at += besideMax) {
      await Promise.all(attempts.slice(at, at + besideMax).map((attempt) => this.#apply(attempt)));
    }
  }

  /** The events of each attempt by each worker, in order. */
  #fold(records: readonly BusRecord[]): Map<string, AttemptEvents> {
    const attempts = new Map<string, AttemptEvents & { events: AttemptEvent[] }>();
    const attemptOf = ({ task_id, node_id, step_type, attempt_epoch }: WireAttempt, worker_id: string) => {
      const key = `${task_id}\u0000${node_id}\u0000${attempt_epoch}\u0000${worker_id}`;
      let attempt = attempts.get(key);
      if (attempt === undefined) {
        attempt = { task_id, node_id, step_type, attempt_epoch, worker_id, termMs: null, events: [] };
        attempts.set(key, attempt);
      }
      return attempt;
    };
    for (const record of records) {
      const batch = readBatchHead(record.value);
      if (batch !== null) {
        const { batch_uid, worker_id } = batch;
        attemptOf(batch, worker_id).events.push({ kind: "BATCH_TOLD", batch_uid, metrics: () => this.#metricsIn(record) });
        continue;
      }
      const read = this.#read(record);
      if (read === null) continue;
      const { envelope, event } = read;
      const attempt = attemptOf(envelope, event.worker_id);
      const termMs = termMsOf(envelope, event);
      if (termMs !== null) attempt.termMs = Math.max(attempt.termMs ?? 0, termMs);
      attempt.events.push(event);
    }
    return attempts;
  }

  #metricsIn(record: BusRecord): JsonObject | null {
    const read = this.#read(record);
    return read?.event.kind === "BATCH_OK" ? read.event.metrics : null;
  }

  #read(record: BusRecord): { envelope: Envelope; event: StatusEvent } | null {
    const read = readRecord(record, "status", readStatus, this.#deps, parseExact);
    if (read !== null) this.#deps.counts.events++;
    return read;
  }

  async #apply(attempt: AttemptEvents): Promise<void> {
    const { attempts, registry, warn } = this.#deps;
    try {
      registry.heard(attempt.worker_id, attempt.step_type);
      await attempts.apply(attempt);
    } catch (error) {
      // The store cannot be written now, or the server is closing: the records are read again.
      if (mayPass(error)) throw error;
      // The events of one attempt must not block all others permanently.
      warn(
        "status.refused",
        `The report of ${attempt.worker_id} on ${attempt.task_id}:${attempt.node_id} is skipped: ${toError(error).message}`,
      );
    }
  }
}

/** The duration of the worker's lease, by its own clock only: the clocks of two machines may differ. */
function termMsOf({ ts_ms }: Envelope, event: StatusEvent): number | null {
  return "lease_deadline_ts_ms" in event ? event.lease_deadline_ts_ms - ts_ms : null;
}
