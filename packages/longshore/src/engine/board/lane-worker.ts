// Takes the tasks of one lane and runs them from this process: with a function, or by a call to a worker elsewhere. It limits waiting
// claims, sends heartbeats, reports, and stops in order.

import { setMaxListeners } from "node:events";
import { type Clock, pause } from "../../core/clock.ts";
import { isClosing, isTransient, toError } from "../../core/errors.ts";
import type { Json } from "../../core/json/json.ts";
import { writeExact } from "../../core/json/json-exact.ts";
import { retry } from "../../core/retry.ts";
import type { Board, FailureReport } from "./board.ts";
import { type Hold, isOpen, type TaskRow, type TaskState } from "./task.ts";
import type { Workers } from "./workers.ts";

export interface LaneOptions {
  readonly board: Pick<Board, "claim" | "extend" | "complete" | "fail" | "defer" | "giveBack">;
  readonly workers: Pick<Workers, "seen">;
  readonly clock: Clock;
  readonly lane: string;
  /** The name of the holder and its protocol; shown in the list of workers. */
  readonly holder: string;
  readonly protocol: string;
  /** Maximum number of tasks at once. */
  readonly slots: number;
  /**
   * Maximum number of tasks that have lent their slot and wait for other work. Above it a task fails, because waiting for a slot could last
   * without a limit.
   */
  readonly lentMax?: number;
  /**
   * True when this process itself does the work, which ends with the process. Then the holds do not expire and need no heartbeats.
   * `recover` gives back what the last process left.
   */
  readonly own?: boolean;
  /**
   * Returns the output, or throws. A LaneFailure contains the failure to report. NotBegun gives the task back. LeftOpen leaves it to a
   * client to report. Any other error is a mistake of this server. It is reported as final, or as a lost hold when the store could not be
   * written.
   */
  perform(work: LaneWork): Promise<Json>;
  /** Whether `perform` has left this held task open. Required when it throws LeftOpen, because a lane that starts again must know it. */
  isLeftOpen?(task: TaskRow): Promise<boolean>;
  /** The report for a task that was cancelled. Default: only that it was cancelled. */
  readonly cancelled?: FailureReport;
  /** Stops other work that a cancelled task may have started. Called before the task's end is reported. */
  abandon?(task: TaskRow): Promise<void>;
  /** Called with errors that no caller receives. */
  failed(what: string, error: unknown): void;
}

export interface LaneWork {
  readonly task: TaskRow;
  /** Aborted when the step was cancelled, the hold was lost, or the lane is closed. */
  readonly signal: AbortSignal;
  /**
   * Releases the task's slot while it waits for other work of this server; otherwise that work could wait for this slot. Throws
   * NoRoomToWait.
   */
  lend<T>(wait: () => Promise<T>): Promise<T>;
}

/** Work that failed, with the failure to report. */
export class LaneFailure extends Error {
  override readonly name: string = "LaneFailure";
  readonly report: FailureReport;

  constructor(report: FailureReport, options: { cause?: unknown } = {}) {
    super(report.error, options);
    this.report = report;
  }
}

/** Too many tasks already wait for other work. A later attempt may find room. */
export class NoRoomToWait extends LaneFailure {
  override readonly name: string = "NoRoomToWait";

  constructor(max: number) {
    super({ error: `${max} steps wait for others already, which is the limit`, retryable: true });
  }
}

/** The work was not started, because its worker has just disconnected: the task returns to its lane. */
export class NotBegun extends Error {
  override readonly name = "NotBegun";
}

/** The work was done, and the task stays held, without a slot, until a client reports its end. Only in a lane with `own`. */
export class LeftOpen extends Error {
  override readonly name = "LeftOpen";
  readonly output: Json;

  constructor(output: Json) {
    super("The task waits for the report of a client.");
    this.output = output;
  }
}

/** Lists the tasks of a lane, newest first. */
export interface TaskReader {
  tasks(query: { state: TaskState; lane: string; limit: number; before?: string }): Promise<{ items: TaskRow[]; next: string | null }>;
}

/** A hold must only outlive a stall of this process, because this process also sends the report. */
const termMs = 15_000;
const beatMs = 5_000;
/** A claim is repeated after this time, so that the list of workers shows the lane as alive. */
const waitMs = 30_000;
/** Maximum number of waiting claims: this many tasks that are posted together are handed out together. */
const standingMax = 16;
const lentMaxDefault = 1_000;
/** Delay after a claim or a report that failed because the store cannot be written. */
const retryMs = 500;
/**
 * How long a report is retried while the store cannot be written. The hold is renewed during this time. The limit is the same for holds
 * that do not expire.
 */
const reportMsMax = 300_000;
/** Tasks that `recover` reads in one page. */
const recoverMax = 1_000;

const cancelledReport: FailureReport = { error: "the step was cancelled", retryable: false };

type Outcome = { readonly output: Json } | LaneFailure | NotBegun | LeftOpen;
type Ending = "cancelled" | "lost" | "closed";

interface Performing {
  readonly task: TaskRow;
  readonly hold: Hold;
  readonly controller: AbortController;
  ending: Ending | null;
  /** The work has ended and its report is being sent. Changes of the task from now on are effects of this report. */
  reporting: boolean;
}

/** The newest use of a task in this lane; `over` resolves when all uses of the task are over. */
interface Use {
  readonly performing: Performing | null;
  readonly over: Promise<void>;
}

export class LaneWorker {
  readonly #options: LaneOptions;
  readonly #reach: { names: string[]; labels: string[] };
  readonly #lentMax: number;
  /** Waiting claims; each promise resolves when its claim ends. */
  readonly #standing = new Set<Promise<void>>();
  /** Aborting it cancels the waiting claims. */
  #line = newLine();
  /** The newest use of each task. The next use waits for its end, because it may still be stopping what it has started. */
  readonly #open = new Map<string, Use>();
  #closed = false;
  #lent = 0;
  #resting = true;
  #empty: (() => void) | null = null;

  constructor(options: LaneOptions) {
    this.#options = options;
    this.#reach = { names: [options.lane], labels: [] };
    this.#lentMax = options.lentMax ?? lentMaxDefault;
  }

  /** Queues again what the last process held, as the same attempts, and stops what was being cancelled. Must be called before `resume`. */
  async recover(reader: TaskReader): Promise<void> {
    const { board, lane, abandon, isLeftOpen } = this.#options;
    for (const state of ["held", "cancelling"] as const) {
      for (let before: string | undefined; ; ) {
        const page = await reader.tasks({ state, lane, limit: recoverMax, ...(before === undefined ? {} : { before }) });
        for (const task of page.items) {
          if (state === "held" && (await isLeftOpen?.(task))) continue;
          if (state === "cancelling") await abandon?.(task);
          await board.giveBack({ taskId: task.id, grant: task.grant });
        }
        if (page.next === null) break;
        before = page.next;
      }
    }
  }

  /** Starts to take tasks, or starts again after `rest`. */
  resume(): void {
    this.#resting = false;
    this.#fill();
  }

  /** Takes no more tasks until `resume` is called. Tasks in progress continue. */
  rest(): void {
    this.#resting = true;
    this.#line.abort();
    this.#line = newLine();
  }

  /** The number of tasks in progress. */
  get open(): number {
    return this.#open.size;
  }

  /** Must be called for every task that a commit changed: a cancelled task ends now, not at its next heartbeat. */
  changed(task: TaskRow): void {
    const use = this.#open.get(task.id);
    if (use === undefined) return this.#changedUnheld(task);
    const { performing } = use;
    if (performing === null || performing.reporting) return;
    if (task.grant !== performing.hold.grant || !isOpen(task.state)) end(performing, "lost");
    else if (task.state === "cancelling") end(performing, "cancelled");
  }

  /** A task was cancelled while it waited to be taken again: what it has started before must stop. */
  #changedUnheld(task: TaskRow): void {
    const { board, abandon, failed, isLeftOpen, cancelled = cancelledReport } = this.#options;
    if (isLeftOpen !== undefined && task.state === "cancelling") {
      const hold = { taskId: task.id, grant: task.grant };
      this.#use(task.id, null, async () => {
        await this.#insist(async () => void (await board.fail(hold, cancelled))).catch((error: unknown) => failed("cancel", error));
      });
      return;
    }
    const hasBegun = task.startedAt !== null || task.attempt > 0;
    if (abandon === undefined || task.state !== "cancelled" || !hasBegun) return;
    this.#use(task.id, null, async () => {
      await this.#insist(() => abandon(task)).catch((error: unknown) => failed("cancel", error));
    });
  }

  /** Takes no more tasks, waits up to `graceMs` for tasks in progress, then gives back the rest. */
  async close(graceMs: number): Promise<void> {
    const { clock } = this.#options;
    this.#closed = true;
    this.rest();
    await Promise.all(this.#standing);
    const giveUp = () => {
      for (const { performing } of this.#open.values()) if (performing !== null) end(performing, "closed");
    };
    if (graceMs <= 0) giveUp();
    if (this.#open.size === 0) return;
    const stop = clock.at(clock.now() + graceMs, giveUp);
    await new Promise<void>((resolve) => {
      this.#empty = resolve;
    });
    stop();
  }

  #fill(): void {
    const { slots } = this.#options;
    while (!this.#resting && !this.#closed && this.#standing.size < standingMax) {
      const taken = this.#open.size + this.#standing.size;
      if (taken - this.#lent >= slots) return;
      const claim: Promise<void> = this.#take(this.#line.signal).then(() => {
        this.#standing.delete(claim);
        this.#fill();
      });
      this.#standing.add(claim);
    }
  }

  /** Never rejects. */
  async #take(signal: AbortSignal): Promise<void> {
    const { board, workers, clock, lane, holder, protocol, own } = this.#options;
    try {
      workers.seen(holder, { protocol, reach: this.#reach, everyMs: waitMs });
      const [task] = await board.claim({ reach: this.#reach, serves: lane, holder, termMs: own ? 0 : termMs, waitMs, signal });
      if (task === undefined) return;
      // The task was handed out while the claim was being cancelled.
      if (signal.aborted) await board.giveBack({ taskId: task.id, grant: task.grant });
      else this.#perform(task);
    } catch (error) {
      if (!isClosing(error)) this.#options.failed("claim", error);
      await pause(clock, retryMs, signal);
    }
  }

  #perform(task: TaskRow): void {
    const hold = { taskId: task.id, grant: task.grant };
    const performing: Performing = { task, hold, controller: new AbortController(), ending: null, reporting: false };
    const stopBeating = this.#options.own ? () => {} : this.#beat(performing);
    this.#use(task.id, performing, async () => {
      try {
        const outcome = await this.#outcome(task, performing);
        performing.reporting = true;
        await this.#insist(() => this.#reportOnce(performing, outcome));
      } catch (error) {
        // The hold expires, and then the task is handed out again.
        this.#options.failed("report", error);
      } finally {
        stopBeating();
      }
    });
  }

  /** Starts `work`, which never rejects, when the previous use of the task is over. */
  #use(taskId: string, performing: Performing | null, work: () => Promise<void>): void {
    const before = this.#open.get(taskId);
    // One commit may have taken the task back and handed it out again.
    if (before?.performing && !before.performing.reporting) end(before.performing, "lost");
    const over = (before?.over ?? Promise.resolve()).then(work).then(() => {
      if (this.#open.get(taskId) === use) this.#open.delete(taskId);
      if (this.#open.size === 0) this.#empty?.();
      this.#fill();
    });
    const use = { performing, over };
    this.#open.set(taskId, use);
  }

  async #outcome(task: TaskRow, { controller }: Performing): Promise<Outcome> {
    try {
      controller.signal.throwIfAborted();
      return { output: await this.#options.perform({ task, signal: controller.signal, lend: (wait) => this.#lend(wait) }) };
    } catch (error) {
      if (error instanceof LaneFailure || error instanceof NotBegun || error instanceof LeftOpen) return error;
      const { message } = toError(error);
      const report: FailureReport = isTransient(error)
        ? { error: message, retryable: true, spends: "lost" }
        : { error: message, retryable: false };
      return new LaneFailure(report, { cause: error });
    }
  }

  #insist(work: () => Promise<void>): Promise<void> {
    const { clock, own } = this.#options;
    return retry(work, {
      ...{ clock, backoff: { kind: "fixed", delayMs: retryMs } },
      patienceMs: own ? Number.POSITIVE_INFINITY : reportMsMax,
      mayPass: (error) => isTransient(error) && !this.#closed,
    });
  }

  async #reportOnce({ task, hold, ending }: Performing, outcome: Outcome): Promise<void> {
    const { board, abandon, cancelled = cancelledReport } = this.#options;
    if (ending === "lost" || ending === "cancelled") await abandon?.(task);
    if (ending === "lost") return;
    if (outcome instanceof LeftOpen && ending === null) await board.extend(hold, { output: writeExact(outcome.output) });
    else if ("output" in outcome) await board.complete(hold, writeExact(outcome.output));
    else if (ending === "cancelled") await board.fail(hold, cancelled);
    else if (ending === "closed") await board.defer(hold, 0);
    else if (outcome instanceof NotBegun) await board.giveBack(hold);
    else await board.fail(hold, outcome.report);
  }

  async #lend<T>(wait: () => Promise<T>): Promise<T> {
    if (this.#lent >= this.#lentMax) throw new NoRoomToWait(this.#lentMax);
    this.#lent++;
    this.#fill();
    try {
      return await wait();
    } finally {
      this.#lent--;
    }
  }

  /** Sends heartbeats by the clock, independent of the work. Returns a function that stops them. */
  #beat(performing: Performing): () => void {
    const { board, clock } = this.#options;
    let over = false;
    let disarm = () => {};
    const beat = async () => {
      try {
        const { verdict } = await board.extend(performing.hold);
        if (verdict === "cancel") end(performing, "cancelled");
        else if (verdict !== "ok") end(performing, "lost");
      } catch (error) {
        // The next heartbeat may succeed; if none does, the hold expires on the board.
        this.#options.failed("heartbeat", error);
      }
      if (!over && performing.ending === null) arm();
    };
    const arm = () => {
      disarm = clock.at(clock.now() + beatMs, () => void beat());
    };
    arm();
    return () => {
      over = true;
      disarm();
    };
  }
}

/** Every waiting claim adds a listener. */
function newLine(): AbortController {
  const line = new AbortController();
  setMaxListeners(0, line.signal);
  return line;
}

function end(performing: Performing, ending: Ending): void {
  if (performing.ending !== null) return;
  performing.ending = ending;
  performing.controller.abort();
}
