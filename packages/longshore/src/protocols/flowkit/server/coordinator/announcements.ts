// Workers that come and go. One that comes back and lists its runs does not work on them any more: they are given to free workers.

import type { BusRecord, Subscription } from "../../../../bus/bus.ts";
import { skipping } from "../../../../bus/skip-records.ts";
import { readAnnouncement } from "../../wire/decode.ts";
import type { Attempts } from "./attempts.ts";
import type { CoordinatorCounts } from "./parts.ts";
import { readRecord } from "./read-record.ts";
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
    const { registry, attempts } = this.#deps;
    const read = readRecord(record, "announce", readAnnouncement, this.#deps);
    if (read === null) return;
    const { envelope, event } = read;
    await registry.announced(event, envelope.ts_ms);
    if (event.kind !== "WORKER_ONLINE" || event.resume === null) return;
    const { worker_id, resume } = event;
    const { task_id, node_id, step_type, attempt_epoch } = resume;
    const given = { kind: "TASK_FAILED" as const, worker_id, reason_code: "worker_restarted", permanent: false, error: null };
    await attempts.apply({ task_id, node_id, step_type, attempt_epoch, worker_id, termMs: null, events: [given] });
  }
}
