// Announces this worker and its capabilities to coordinators. Repeats that, so that they notice when it is gone.

import { randomUUID } from "node:crypto";
import type { Bus } from "../../../core/bus/bus.ts";
import type { TransportHost } from "../../../runner/transport.ts";
import { dedupIds } from "../wire/hash.ts";
import { type ActiveRun, type Announcement, encodeEnvelope, nobody, payloadOf } from "../wire/shapes.ts";
import type { WorkerSettings } from "./options.ts";

export interface AnnouncerOptions {
  readonly bus: Bus;
  readonly settings: WorkerSettings;
  readonly host: TransportHost;
  readonly roles: readonly string[];
}

export class Announcer {
  readonly #options: AnnouncerOptions;
  #disarm: () => void = () => {};

  constructor(options: AnnouncerOptions) {
    this.#options = options;
  }

  /** `resume` is an unfinished run of the earlier process. Later announcements are sent automatically, with the same capabilities. */
  async online(resume: ActiveRun | null): Promise<void> {
    await this.#send(this.#onlineNow(resume, this.#options.host.slots.total));
    this.#arm();
  }

  /** Announces that the worker takes no more tasks, although it still runs some. */
  async full(): Promise<void> {
    this.#disarm();
    await this.#send(this.#onlineNow(null, 0));
  }

  async offline(): Promise<void> {
    this.#disarm();
    await this.#send({ kind: "WORKER_OFFLINE", worker_id: this.#options.settings.workerId, reason: "stopped" });
  }

  #arm(): void {
    const { host, settings } = this.#options;
    const { clock, draining, failing, working } = host;
    this.#disarm = clock.at(clock.now() + settings.announceMs, () => {
      if (draining.aborted) return;
      this.#send(this.#onlineNow(null, host.slots.total))
        .then(
          () => working("announcement"),
          (error) => failing("announcement", error),
        )
        .finally(() => this.#arm());
    });
  }

  #onlineNow(resume: ActiveRun | null, tasks: number): Announcement {
    const { settings, roles } = this.#options;
    const { workerId: worker_id, workerVersion: version } = settings;
    const type = roles.join(",");
    return { kind: "WORKER_ONLINE", worker_id, type, capabilities: { roles }, version, capacity: { tasks }, resume };
  }

  async #send(announcement: Announcement): Promise<void> {
    const { bus, settings, host } = this.#options;
    const ts_ms = host.clock.now();
    const value = encodeEnvelope({
      msg_type: "event",
      role: "worker",
      corr_id: randomUUID(),
      dedup_id: dedupIds.announce(announcement.kind, settings.workerId, ts_ms),
      task_id: nobody,
      node_id: nobody,
      step_type: nobody,
      attempt_epoch: 0,
      ts_ms,
      payload: payloadOf(announcement),
      target_worker_id: null,
    });
    await bus.publish([{ topic: settings.topics.announce, key: null, value }]);
  }
}
