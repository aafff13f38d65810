// Has the coordinator's own functions carried out, in this process: one claim stands in line for each free slot. The work ends with the
// process, so its holds have no end and cost no signs of life; what the last process left is given back at the start.

import { isOpen, type Task } from "../../../board/task.ts";
import { pause } from "../../../clock.ts";
import { functionLane } from "../../../dialect/flowkit/compile.ts";
import { toError } from "../../../errors.ts";
import type { Functions } from "./functions.ts";
import { type CoordinatorEngine, tasksIn } from "./parts.ts";

export interface FunctionLaneParts extends Pick<CoordinatorEngine, "clock" | "board" | "reader" | "workers"> {
  readonly functions: Functions;
  failed(what: string, error: unknown): void;
}

/** Functions at once: they read what is in memory or the data file. */
const slots = 8;
const waitMs = 30_000;
/** After a claim or a report that failed (the store cannot be written), the next one waits this long. */
const retryMs = 500;
const holder = "flowkit-functions";
const reach = { names: [functionLane], labels: [] };

export class FunctionLane {
  readonly #parts: FunctionLaneParts;
  readonly #stopping = new AbortController();
  readonly #open = new Map<string, { grant: number; controller: AbortController }>();
  #running: Promise<unknown> = Promise.resolve();

  constructor(parts: FunctionLaneParts) {
    this.#parts = parts;
  }

  async start(): Promise<void> {
    const { board, reader } = this.#parts;
    for await (const task of tasksIn(reader, "held")) {
      if (task.lane?.name === functionLane) await board.giveBack({ taskId: task.id, grant: task.grant });
    }
    this.#running = Promise.all(Array.from({ length: slots }, () => this.#work()));
  }

  /** To be told of each task that a commit changed. */
  taskChanged(task: Task): void {
    const open = this.#open.get(task.id);
    if (open === undefined) return;
    if (task.state === "cancelling" || task.grant !== open.grant || !isOpen(task.state)) open.controller.abort();
  }

  /** What is under way is given back, and begun anew at the next start. */
  async close(): Promise<void> {
    this.#stopping.abort();
    for (const { controller } of this.#open.values()) controller.abort();
    await this.#running;
  }

  async #work(): Promise<void> {
    const { board, clock, workers } = this.#parts;
    // Each has a signal of its own, so that listeners do not pile up on one.
    const gone = new AbortController();
    this.#stopping.signal.addEventListener("abort", () => gone.abort(), { once: true });
    while (!gone.signal.aborted) {
      try {
        workers.seen(holder, { protocol: "flowkit", reach, everyMs: waitMs });
        const [task] = await board.claim({ reach, holder, termMs: 0, waitMs, signal: gone.signal });
        if (task !== undefined) await this.#perform(task);
      } catch (error) {
        if (gone.signal.aborted) return;
        this.#parts.failed("function", error);
        await pause(clock, retryMs, gone.signal);
      }
    }
  }

  async #perform(task: Task): Promise<void> {
    const { board, functions } = this.#parts;
    const hold = { taskId: task.id, grant: task.grant };
    const controller = new AbortController();
    this.#open.set(task.id, { grant: task.grant, controller });
    try {
      const output = await functions.perform(task, controller.signal);
      await board.complete(hold, JSON.stringify(output ?? null));
    } catch (error) {
      if (this.#stopping.signal.aborted) await board.giveBack(hold);
      else await board.fail(hold, { error: toError(error).message, retryable: true });
    } finally {
      this.#open.delete(task.id);
    }
  }
}
