// Sends stop signals to workers whose task was cancelled or whose attempt has ended without their knowledge. After the deadline of the
// signal, the coordinator does not wait for the worker any longer.

import type { TaskRow } from "../../../../engine/board/task.ts";
import { isRunOpen } from "../../../../engine/run/run.ts";
import type { TopicNames } from "../../wire/shapes.ts";
import type { Places } from "../task-addresses.ts";
import { cancelMessage, type WireAttempt } from "./messages.ts";
import { type CoordinatorCounts, type CoordinatorEngine, type Outbox, tasksIn } from "./parts.ts";
import type { Registry } from "./registry.ts";

export interface SignalsDeps extends Pick<CoordinatorEngine, "clock" | "board" | "runs" | "reader"> {
  readonly places: Places;
  readonly registry: Pick<Registry, "knows">;
  readonly outbox: Outbox;
  readonly topics: TopicNames;
  /** How long a worker has to stop. */
  readonly cancelGraceMs: number;
  readonly counts: CoordinatorCounts;
  failed(what: string, error: unknown): void;
}

/** Remembered stop signals for ended attempts: a worker repeats its state with every heartbeat until it has read the signal. */
const loggedMax = 10_000;

export class Signals {
  readonly #deps: SignalsDeps;
  readonly #logged = new Set<string>();
  /** The timers for the deadlines of cancelled tasks. */
  readonly #deadlines = new Map<string, () => void>();
  #closed = false;

  constructor(deps: SignalsDeps) {
    this.#deps = deps;
  }

  /** Sends the signal again for tasks whose worker may not have received it before the restart. */
  async recover(): Promise<void> {
    for await (const task of tasksIn(this.#deps.reader, "cancelling")) await this.#cancelling(task);
  }

  /** Must be called for each task that a commit changed. */
  taskChanged(task: TaskRow): void {
    if (task.state === "cancelling") {
      if (!this.#deadlines.has(task.id)) void this.#cancelling(task).catch((error) => this.#deps.failed("signal", error));
    } else this.#forget(task.id);
  }

  /** Sends the signal once for each attempt and worker. Durable when the promise resolves. */
  async cancel(attempt: WireAttempt, worker: string, reason: string): Promise<void> {
    const key = `${attempt.task_id}\u0000${attempt.node_id}\u0000${attempt.attempt_epoch}\u0000${worker}`;
    if (this.#logged.has(key)) return;
    await this.#send(attempt, worker, reason);
    if (this.#logged.size >= loggedMax) this.#logged.clear();
    this.#logged.add(key);
  }

  close(): void {
    this.#closed = true;
    for (const disarm of this.#deadlines.values()) disarm();
  }

  async #cancelling(task: TaskRow): Promise<void> {
    const { clock, cancelGraceMs, registry, places } = this.#deps;
    if (task.lane === null || task.holder === null || !registry.knows(task.holder) || this.#closed) return;
    // The timer starts first, so that the wait ends even if the signal fails.
    this.#deadlines.set(
      task.id,
      clock.at(clock.now() + cancelGraceMs, () => void this.#giveUp(task)),
    );
    const { task_id, node_id } = await places.of(task);
    const attempt = { task_id, node_id, step_type: task.lane.name, attempt_epoch: task.grant };
    await this.#send(attempt, task.holder, await this.#reasonOf(task));
  }

  async #giveUp({ id: taskId, grant }: TaskRow): Promise<void> {
    this.#deadlines.delete(taskId);
    const error = "cancelled; its worker did not stop in time";
    // If the store cannot be written now, the hold expires by itself.
    await this.#deps.board.withdraw({ taskId, grant }, { error }).catch((failure) => this.#deps.failed("end of a cancelled task", failure));
  }

  async #reasonOf({ runId }: TaskRow): Promise<string> {
    const run = runId === null ? undefined : await this.#deps.runs.run(runId);
    if (run === undefined || isRunOpen(run.state)) return "cancelled";
    return run.error ?? "cancelled";
  }

  async #send(attempt: WireAttempt, worker: string, reason: string): Promise<void> {
    const { clock, topics, outbox, cancelGraceMs, counts } = this.#deps;
    const now = clock.now();
    counts.signals++;
    await outbox.enqueue(cancelMessage(topics, attempt, worker, { reason, deadlineMs: now + cancelGraceMs }, now));
  }

  #forget(taskId: string): void {
    this.#deadlines.get(taskId)?.();
    this.#deadlines.delete(taskId);
  }
}
