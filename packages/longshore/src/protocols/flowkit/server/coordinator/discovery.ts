// Finds the workers of tasks after a restart. A hold continues for one term, during which its worker sends something. A query searches for
// workers that are not known here. When a worker replies that it runs the current attempt, it keeps the attempt.

import type { Subscription } from "../../../../core/bus/bus.ts";
import { readReply } from "../../wire/decode.ts";
import type { Envelope, Snapshot, TopicNames } from "../../wire/shapes.ts";
import type { Places } from "../task-addresses.ts";
import type { Attempts } from "./attempts.ts";
import { discoverMessage } from "./messages.ts";
import { type CoordinatorCounts, type CoordinatorEngine, type Outbox, tasksIn } from "./parts.ts";
import { eachRecord } from "./read-record.ts";
import type { Registry } from "./registry.ts";

export interface DiscoveryDeps extends Pick<CoordinatorEngine, "clock" | "reader"> {
  readonly places: Places;
  readonly registry: Pick<Registry, "knows" | "roles" | "heard">;
  readonly attempts: Attempts;
  readonly outbox: Outbox;
  readonly topics: TopicNames;
  readonly counts: CoordinatorCounts;
  warn(code: string, message: string): void;
}

export class Discovery {
  readonly handle: Subscription["handle"];
  readonly #deps: DiscoveryDeps;

  constructor(deps: DiscoveryDeps) {
    this.#deps = deps;
    this.handle = eachRecord("reply", readReply, deps, (snapshot, envelope) => this.#handle(snapshot, envelope));
  }

  async ask(): Promise<void> {
    const { clock, reader, registry, places, outbox, topics } = this.#deps;
    for await (const task of tasksIn(reader, "held")) {
      const role = task.lane?.name;
      if (role === undefined || !registry.roles.has(role) || (task.holder !== null && registry.knows(task.holder))) continue;
      const { task_id, node_id } = await places.of(task);
      await outbox.enqueue(discoverMessage(topics, { task_id, node_id, step_type: role, attempt_epoch: task.grant }, clock.now()));
    }
  }

  async #handle({ worker_id, run_state, attempt_epoch, lease }: Snapshot, envelope: Envelope): Promise<void> {
    const { attempts, registry } = this.#deps;
    if (worker_id === null || run_state === "idle") return;
    const { task_id, node_id, step_type, ts_ms } = envelope;
    registry.heard(worker_id, step_type);
    const termMs = lease === null ? null : lease.deadline_ts_ms - ts_ms;
    await attempts.apply({ task_id, node_id, step_type, attempt_epoch, worker_id, termMs, events: [] });
  }
}
