// Takes the tasks of one lane and runs them from here: by a function in this process, or by a call to a worker elsewhere. What
// is the same for both is in this file: claims that wait, up to a limit, heartbeats while the work runs, the report at its
// end, and an orderly stop.

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
  /** What the holds are called, and in which protocol the work is done; for the list of workers. */
  readonly holder: string;
  readonly protocol: string;
  /** Tasks at once. */
  readonly slots: number;
  /** On top of the slots, for work that has lent its own; beyond these a step fails, for to let it wait in line could be forever. */
  readonly lentMax?: number;
  /**
   * The work is done by this process and ends with it, so no lease is needed: its holds have no end and need no heartbeats.
   * `recover` gives back what the last process left.
   */
  readonly own?: boolean;
  /**
   * Returns the output, or throws: a LaneFailure holds what to report, NotBegun gives the task back. Anything else is this server's own
   * mistake; it is reported as final, or as the loss of a hold where the store could not be written.
   */
  perform(work: LaneWork): Promise<Json>;
  /** What is reported of a task that was cancelled; nothing but that when absent. */
  readonly cancelled?: FailureReport;
  /** A step was cancelled whose work may have set other things going: they are to stop. Called before its end is reported. */
  abandon?(task: TaskRow): Promise<void>;
  /** Called with errors that no caller receives. */
  failed(what: string, error: unknown): void;
}

export interface LaneWork {
  readonly task: TaskRow;
  /** Aborted when the step was cancelled, the hold was lost, or the lane is closed. */
  readonly signal: AbortSignal;
  /** While it waits for other work of this server it takes no slot: else that work could wait for it in turn. Throws NoRoomToWait. */
  lend<T>(wait: () => Promise<T>): Promise<T>;
}

/** Work that failed, and what is to be reported of it. */
export class LaneFailure extends Error {
  override readonly name: string = "LaneFailure";
  readonly report: FailureReport;

  constructor(report: FailureReport, options: { cause?: unknown } = {}) {
    super(report.error, options);
    this.report = report;
  }
}

/** Too many wait for other work already. Tried again later there may be room. */
export class NoRoomToWait extends LaneFailure {
  override readonly name: string = "NoRoomToWait";

  constructor(max: number) {
    super({ error: `${max} steps wait for others already, which is the limit`, retryable: true });
  }
}

/** The work was not begun, because its worker has just disconnected: the task returns to its lane as if no worker had taken it. */
export class NotBegun extends Error {
  override readonly name = "NotBegun";
}

/** Who can list the tasks of a lane, newest first. */
export interface TaskReader {
  tasks(query: { state: TaskState; lane: string; limit: number; before?: string }): Promise<{ items: TaskRow[]; next: string | null }>;
}

/** A hold only has to outlive a stall of this process, which is also what reports. */
const termMs = 15_000;
const beatMs = 5_000;
/** An empty wait ends after this long and begins again, so that the list of workers knows that it is alive. */
const waitMs = 30_000;
/** Claims in line at once: so many tasks that are posted together are handed out together. */
const standingMax = 16;
const lentMaxDefault = 1_000;
/** After a claim or a report that failed (the store cannot be written), the next one waits this long. */
const retryMs = 500;
/** How long a report is tried that the store does not take; its hold lives on meanwhile. One without an end is tried for as long. */
const reportMsMax = 300_000;
/** Tasks that `recover` reads at once. */
const recoverMax = 1_000;

type Outcome = { readonly output: Json } | LaneFailure | NotBegun;
type Ending = "cancelled" | "lost" | "closed";

interface Performing {
  readonly task: TaskRow;
  readonly hold: Hold;
  readonly controller: AbortController;
  ending: Ending | null;
  /** Its work is over, and its report on the way: what happens to it now is of its own making. */
  reporting: boolean;
}

export class LaneWorker {
  readonly #options: LaneOptions;
  readonly #reach: { names: string[]; labels: string[] };
  readonly #lentMax: number;
  /** Claims in line; each promise ends with its claim. */
  readonly #standing = new Set<Promise<void>>();
  /** Aborted, it calls them back. */
  #line = newLine();
  readonly #open = new Map<string, Performing>();
  #closed = false;
  #lent = 0;
  #resting = true;
  #empty: (() => void) | null = null;

  constructor(options: LaneOptions) {
    this.#options = options;
    this.#reach = { names: [options.lane], labels: [] };
    this.#lentMax = options.lentMax ?? lentMaxDefault;
  }

  /** Puts in line again what the last process held, as the same attempts; to be called before `resume`. What it was to stop, stops. */
  async recover(reader: TaskReader): Promise<void> {
    const { board, lane, abandon } = this.#options;
    for (const state of ["held", "cancelling"] as const) {
      for (let before: string | undefined; ; ) {
        const page = await reader.tasks({ state, lane, limit: recoverMax, ...(before === undefined ? {} : { before }) });
        for (const task of page.items) {
          if (state === "cancelling") await abandon?.(task);
          await board.giveBack({ taskId: task.id, grant: task.grant });
        }
        if (page.next === null) break;
        before = page.next;
      }
    }
  }

  /** Begins to take tasks, or begins again. */
  resume(): void {
    this.#resting = false;
    this.#fill();
  }

  /** Takes no more tasks until it is resumed. Tasks in progress continue. */
  rest(): void {
    this.#resting = true;
    this.#line.abort();
    this.#line = newLine();
  }

  /** How many are under way. */
  get open(): number {
    return this.#open.size;
  }

  /** Must be called for every task that a commit changed: a cancelled one ends now, and not at its next heartbeat. */
  changed(task: TaskRow): void {
    const performing = this.#open.get(task.id);
    if (performing === undefined || performing.reporting || task.state === "held") return;
    if (task.grant !== performing.hold.grant || !isOpen(task.state)) end(performing, "lost");
    else if (task.state === "cancelling") end(performing, "cancelled");
  }

  /** Takes no more, lets what is under way end for as long as `graceMs`, then gives back what is left. */
  async close(graceMs: number): Promise<void> {
    const { clock } = this.#options;
    this.#closed = true;
    this.rest();
    await Promise.all(this.#standing);
    const giveUp = () => {
      for (const performing of this.#open.values()) end(performing, "closed");
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
      // Handed out while the claim was called back.
      if (signal.aborted) await board.giveBack({ taskId: task.id, grant: task.grant });
      else void this.#perform(task);
    } catch (error) {
      if (!isClosing(error)) this.#options.failed("claim", error);
      await pause(clock, retryMs, signal);
    }
  }

  async #perform(task: TaskRow): Promise<void> {
    const hold = { taskId: task.id, grant: task.grant };
    const performing: Performing = { task, hold, controller: new AbortController(), ending: null, reporting: false };
    this.#open.set(task.id, performing);
    const stopBeating = this.#options.own ? () => {} : this.#beat(performing);
    try {
      const outcome = await this.#outcome(task, performing);
      performing.reporting = true;
      await this.#report(performing, outcome);
    } catch (error) {
      // Its hold ends by itself, and then it is handed out again.
      this.#options.failed("report", error);
    } finally {
      stopBeating();
      this.#open.delete(task.id);
      if (this.#open.size === 0) this.#empty?.();
      this.#fill();
    }
  }

  async #outcome(task: TaskRow, { controller }: Performing): Promise<Outcome> {
    try {
      return { output: await this.#options.perform({ task, signal: controller.signal, lend: (wait) => this.#lend(wait) }) };
    } catch (error) {
      if (error instanceof LaneFailure || error instanceof NotBegun) return error;
      const { message } = toError(error);
      const report: FailureReport = isTransient(error)
        ? { error: message, retryable: true, spends: "lost" }
        : { error: message, retryable: false };
      return new LaneFailure(report, { cause: error });
    }
  }

  #report(performing: Performing, outcome: Outcome): Promise<void> {
    const { clock, own } = this.#options;
    return retry(() => this.#reportOnce(performing, outcome), {
      ...{ clock, backoff: { kind: "fixed", delayMs: retryMs } },
      patienceMs: own ? Number.POSITIVE_INFINITY : reportMsMax,
      mayPass: (error) => isTransient(error) && !this.#closed,
    });
  }

  async #reportOnce({ task, hold, ending }: Performing, outcome: Outcome): Promise<void> {
    const { board, abandon, cancelled = { error: "the step was cancelled", retryable: false } } = this.#options;
    if (ending === "lost" || ending === "cancelled") await abandon?.(task);
    if (ending === "lost") return;
    if ("output" in outcome) await board.complete(hold, writeExact(outcome.output));
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

  /** Heartbeats by the clock, whatever the work is doing. Returns how to end them. */
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
        // The next one may come through; should none, the hold is lost, and the board knows.
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

/** Each of the few claims in line listens. */
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
