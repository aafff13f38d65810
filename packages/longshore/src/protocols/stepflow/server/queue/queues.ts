// The queues of a server: those of its configuration. They exist from the start, each with the backend that carries its tasks.

import type { Clock } from "../../../../core/clock.ts";
import type { MakeId } from "../../../../core/ids.ts";
import type { Board } from "../../../../engine/board/board.ts";
import type { TaskRow } from "../../../../engine/board/task.ts";
import type { Workers } from "../../../../engine/board/workers.ts";
import type { Logs } from "../../../../engine/log/log.ts";
import type { DocumentStore } from "../../../../engine/run/documents.ts";
import type { Runs } from "../../../../engine/run/runs.ts";
import type { ProtocolEngine } from "../../../server-half.ts";
import type { Queue as ConfiguredQueue } from "../config/queues.ts";
import { Discoveries } from "./discovery.ts";
import { DroppedAssignments } from "./dropped-assignments.ts";
import { HeldCounts } from "./held-counts.ts";
import { Holders } from "./holders.ts";
import { BoardQueue, type TaskQueue } from "./queue.ts";
import { Reports } from "./reports.ts";
import { UnclaimedOffers } from "./unclaimed-offers.ts";

/** The parts of the engine that queues use. */
export interface QueueEngine {
  readonly clock: Clock;
  readonly spanOf: ProtocolEngine["spanOf"];
  readonly makeId: MakeId;
  readonly board: Board;
  readonly runs: Pick<Runs, "run">;
  readonly workers: Pick<Workers, "seen">;
  readonly logs: Pick<Logs, "append">;
  readonly documents: DocumentStore;
  /** The returned function ends it. */
  listen(listener: { task(task: TaskRow): void }): () => void;
}

export type Backend = ConfiguredQueue["backend"];

export interface KnownQueue {
  readonly queue: TaskQueue;
  /** There is more than one backend when plugins of both kinds use the queue. */
  readonly backends: ReadonlySet<Backend>;
}

export class Queues {
  readonly reports: Reports;
  readonly held: HeldCounts = new HeldCounts();
  readonly holders: Holders;
  readonly unclaimed: UnclaimedOffers = new UnclaimedOffers();
  readonly #queues = new Map<string, KnownQueue & { readonly backends: Set<Backend> }>();
  readonly #stopListening: () => void;

  constructor(engine: QueueEngine, configured: readonly ConfiguredQueue[]) {
    const { clock, makeId, board, runs, workers, logs, documents } = engine;
    this.holders = new Holders(engine);
    const { held, holders, unclaimed } = this;
    const discoveries = new Discoveries(clock, makeId);
    const dropped = new DroppedAssignments();
    const lanes = new Set<string>();
    for (const { name, backend } of configured) {
      const queue =
        this.#queues.get(name)?.queue ??
        newQueue(
          name,
          configured.some((other) => other.name === name && other.shared),
        );
      this.#queues.set(name, { queue, backends: new Set([...(this.#queues.get(name)?.backends ?? []), backend]) });
    }
    function newQueue(name: string, shared: boolean): TaskQueue {
      const queue = new BoardQueue(name, { clock, board, runs, unclaimed, discoveries, dropped, spanOf: engine.spanOf }, documents, shared);
      lanes.add(queue.lane.name);
      return queue;
    }
    this.reports = new Reports({ clock, board, workers, logs, discoveries, unclaimed, holders });
    this.#stopListening = engine.listen({
      task(task) {
        if (holders.knows(task.id)) holders.changed(task);
        // True when some tasks come from lanes that workers of other protocols serve too.
        const isOurs = task.lane !== null && (lanes.has(task.lane.name) || unclaimed.watches(task.id) || held.knows(task.id));
        if (!isOurs) return;
        unclaimed.changed(task);
        held.changed(task);
      },
    });
  }

  find(name: string): KnownQueue | undefined {
    return this.#queues.get(name);
  }

  close(): void {
    this.#stopListening();
  }
}
