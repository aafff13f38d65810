// Handles announcements: workers connect and leave. An announcement may name a run that the worker had not ended before its restart. This
// attempt is closed as lost, and can be tried again at once, on any free worker.

import type { Subscription } from "../../../../core/bus/bus.ts";
import { readAnnouncement } from "../../wire/decode.ts";
import type { Announcement, Envelope } from "../../wire/shapes.ts";
import type { Attempts } from "./attempts.ts";
import type { CoordinatorCounts } from "./parts.ts";
import { eachRecord } from "./read-record.ts";
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
    this.handle = eachRecord("announce", readAnnouncement, deps, (event, envelope) => this.#handle(event, envelope));
  }

  async #handle(event: Announcement, envelope: Envelope): Promise<void> {
    const { registry, attempts } = this.#deps;
    await registry.announced(event, envelope.ts_ms);
    if (event.kind !== "WORKER_ONLINE" || event.resume === null) return;
    const { worker_id, resume } = event;
    const { task_id, node_id, step_type, attempt_epoch } = resume;
    const given = { kind: "TASK_FAILED" as const, worker_id, reason_code: "worker_restarted", permanent: false, error: null };
    await attempts.apply({ task_id, node_id, step_type, attempt_epoch, worker_id, termMs: null, events: [given] });
  }
}
