// Types and helpers that all parts of the coordinator share.

import type { Clock } from "../../../../core/clock.ts";
import type { Board } from "../../../../engine/board/board.ts";
import type { TaskRow } from "../../../../engine/board/task.ts";
import type { Workers } from "../../../../engine/board/workers.ts";
import type { PartStore } from "../../../../engine/part/store.ts";
import type { Definition } from "../../../../engine/run/dialect.ts";
import type { DocumentStore } from "../../../../engine/run/documents.ts";
import type { Plan } from "../../../../engine/run/plan.ts";
import type { Reader } from "../../../../engine/run/reader.ts";
import type { Run } from "../../../../engine/run/run.ts";
import type { Runs } from "../../../../engine/run/runs.ts";

/** The parts of the engine that the coordinator uses. */
export interface CoordinatorEngine {
  readonly clock: Clock;
  readonly board: Board;
  readonly runs: Runs;
  readonly reader: Reader;
  readonly workers: Workers;
  readonly documents: DocumentStore;
  readonly parts: PartStore;
  plan(definition: Definition): Plan;
  listen(listener: { task?(task: TaskRow): void; run?(run: Run): void }): () => void;
}

/** Sends each message once, also when the server was restarted in between. */
export interface Outbox {
  /** Durable when it resolves. A second message with the same topic, key and `dedupId` is omitted. */
  enqueue(message: OutgoingMessage): Promise<void>;
}

export interface OutgoingMessage {
  readonly topic: string;
  readonly key: string;
  readonly dedupId: string;
  readonly value: string;
  /** How often it was already sent without being claimed. */
  readonly retry?: number;
}

export interface CoordinatorLog {
  debug(message: string, fields?: { readonly [name: string]: unknown }): void;
  info(message: string, fields?: { readonly [name: string]: unknown }): void;
  warn(message: string, fields?: { readonly [name: string]: unknown }): void;
}

/** Counters since the start, for metrics. */
export interface CoordinatorCounts {
  /** Events of workers that were read. */
  events: number;
  /** Batches by how they ended: done (also those that were stored without an event), and failed. */
  batches: number;
  batchesFailed: number;
  /** Events of attempts that have ended, or of unknown tasks. */
  stale: number;
  /** Records that could not be read. */
  malformed: number;
  started: number;
  /** Commands that no worker took in time. */
  lapsed: number;
  signals: number;
}

export function noCounts(): CoordinatorCounts {
  return { events: 0, batches: 0, batchesFailed: 0, stale: 0, malformed: 0, started: 0, lapsed: 0, signals: 0 };
}

/** All tasks of the board in this state, page by page. */
export async function* tasksIn(reader: Pick<Reader, "tasks">, state: TaskRow["state"]): AsyncGenerator<TaskRow> {
  for (let before: string | undefined; ; ) {
    const page = await reader.tasks({ state, limit: pageTasks, ...(before === undefined ? {} : { before }) });
    yield* page.items;
    if (page.next === null) return;
    before = page.next;
  }
}

const pageTasks = 1_000;
