// Workers that come and go. One that comes back and lists its runs does not work on them any more: they are given to free workers.

import type { BusRecord, Subscription } from "../../../../bus/bus.ts";
import { skipping } from "../../../../bus/skip-records.ts";
import { decodeEnvelope, readAnnouncement } from "../../wire/decode.ts";
import type { Attempts } from "./attempts.ts";
import type { CoordinatorCounts } from "./parts.ts";
import type { Registry } from "./registry.ts";

export interface AnnouncementsDeps {
  readonly registry: Pick<Registry, "announced">;
  readonly attempts: Attempts;
  readonly counts: CoordinatorCounts;
  warn(code: string, message: string): void;
}

export class Announcements {
  readonly handle: Subscription["handle"];
  readonly #deps: AnnouncementsDeps;

  constructor(deps: AnnouncementsDeps) {
    this.#deps = deps;
    this.handle = skipping(
      (record) => this.#handle(record),
      ({ place }, { message }) => deps.warn("announce.refused", `The record ${place} is passed over: ${message}`),
    );
  }

  async #handle(record: BusRecord): Promise<void> {
    const { registry, attempts, counts, warn } = this.#deps;
    const envelope = decodeEnvelope(record.value);
    const read = envelope.ok ? readAnnouncement(envelope.value) : envelope;
    if (!envelope.ok || !read.ok) {
      counts.malformed++;
      if (!read.ok) warn(`announce.${read.code}`, `The record ${record.place} is passed over: ${read.why}`);
      return;
    }
    await registry.announced(read.value, envelope.value.ts_ms);
    if (read.value.kind !== "WORKER_ONLINE" || read.value.resume === null) return;
    const { worker_id, resume } = read.value;
    const { task_id, node_id, step_type, attempt_epoch } = resume;
    const given = { kind: "TASK_FAILED" as const, worker_id, reason_code: "worker_restarted", permanent: false, error: null };
    await attempts.apply({ task_id, node_id, step_type, attempt_epoch, worker_id, termMs: null, events: [given] });
  }
}
