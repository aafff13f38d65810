// Keeps worker processes running: one for each worker. It uses processes only through `WorkerProcess`, so that tests need no processes.
//
// A process is `alive` while it runs and has sent a message recently. A process that runs but sends nothing has a blocked event loop, so it
// neither polls nor sends heartbeats. It is ended after a while, and started again as if it had crashed.

import type { Clock } from "../../core/clock.ts";
import { formatDuration } from "../../core/duration.ts";
import type { WorkerStatus, WorkerStatuses } from "../health.ts";
import type { Logger } from "../notices.ts";
import { type RestartConfig, Restarts } from "../restarts.ts";

export interface WorkerProcess {
  readonly pid: number | undefined;
  /** Resolves when the process has ended. */
  readonly ended: Promise<ProcessEnding>;
  /** The time of its last message. */
  readonly heardMs: number;
  /** Its last report about its tasks. */
  readonly workers: WorkerStatuses;
  kill(signal: NodeJS.Signals): void;
}

export interface ProcessEnding {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Supervised {
  /** The tasks of the process. */
  readonly tasks: readonly string[];
  readonly start: () => WorkerProcess;
}

export interface SupervisorOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly restarts: RestartConfig;
  /** How long a process may take to end after SIGTERM; then it is killed. */
  readonly stopMsMax: number;
  /** `restarts` is the number of restarts of this worker. */
  readonly restarted: (tasks: readonly string[], restarts: number) => void;
}

/** Processes send a message every second. After this much silence, the event loop of the process is blocked. */
const silentMsMax = 10_000;
/** After this time all leases are lost, so nothing more is lost when the process is ended. */
const wedgedMsMax = 60_000;
/** How long a blocked or forced process may take to end by itself. */
const killMsMax = 5_000;

interface Kept extends Supervised {
  readonly restarts: Restarts;
  process: WorkerProcess;
  /** How the process ended; undefined while it runs. */
  ending: ProcessEnding | undefined;
  exitCode: number | null;
  gaveUp: boolean;
}

export class Supervisor {
  /** Resolves when the supervisor was stopped and every process has ended. */
  readonly closed: Promise<void>;
  readonly #options: SupervisorOptions;
  readonly #kept: readonly Kept[];
  #stopping = false;
  #disarm: () => void = () => {};
  #resolveClosed: () => void = () => {};

  constructor(workers: readonly Supervised[], options: SupervisorOptions) {
    this.#options = options;
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
    this.#kept = workers.map((worker) => {
      const kept: Kept = {
        ...worker,
        restarts: new Restarts(options.restarts),
        process: worker.start(),
        ending: undefined,
        exitCode: null,
        gaveUp: false,
      };
      this.#follow(kept);
      return kept;
    });
    if (options.restarts.monitor) this.#arm();
  }

  workers(): WorkerStatuses {
    return Object.fromEntries(this.#kept.flatMap((kept) => kept.tasks.map((task) => [task, this.#statusOf(kept, task)])));
  }

  /** Checks every process now; this also happens automatically every few seconds. */
  check(): void {
    for (const kept of this.#kept) this.#look(kept);
  }

  /** Stops every process, and kills those that do not end. `force` leaves no time for running tasks. */
  stop(options: { readonly force?: boolean } = {}): Promise<void> {
    const first = !this.#stopping;
    this.#stopping = true;
    this.#disarm();
    const force = options.force === true;
    for (const kept of this.#kept) {
      if (first) this.#end(kept, "SIGTERM", force ? killMsMax : this.#options.stopMsMax);
      // The second signal is a different one, because the same signal within a moment would be ignored as a repetition.
      if (force) this.#end(kept, "SIGINT", killMsMax);
    }
    this.#closeWhenOver();
    return this.closed;
  }

  #arm(): void {
    const { clock, restarts } = this.#options;
    this.#disarm = clock.at(clock.now() + restarts.intervalMs, () => {
      this.check();
      if (!this.#stopping) this.#arm();
    });
  }

  /** Notices the end of a process, and starts it again at once if that is allowed. */
  #follow(kept: Kept): void {
    const { process: followed } = kept;
    void followed.ended.then((ending) => {
      kept.ending = ending;
      kept.exitCode = ending.code;
      if (this.#stopping) return this.#closeWhenOver();
      const how = ending.signal === null ? `with exit code ${ending.code}` : `by ${ending.signal}${hintOf(ending.signal)}`;
      this.#options.logger({ level: "warn", message: `The worker process of ${kept.tasks.join(", ")} ended ${how}.` });
      if (this.#options.restarts.monitor) this.#look(kept);
    });
  }

  #look(kept: Kept): void {
    if (this.#stopping) return;
    if (kept.ending === undefined) return this.#lookForWedged(kept);
    if (this.#options.restarts.restart) this.#restart(kept);
  }

  #lookForWedged({ process: running, tasks }: Kept): void {
    const { clock, logger } = this.#options;
    const silentMs = clock.now() - running.heardMs;
    if (silentMs <= wedgedMsMax) return;
    const message = `The worker process of ${tasks.join(", ")} has blocked its event loop for ${formatDuration(silentMs)}: it is ended.`;
    logger({ level: "warn", message });
    // SIGKILL is used because a blocked process cannot handle another signal.
    running.kill("SIGKILL");
  }

  #restart(kept: Kept): void {
    const { clock, logger, restarted } = this.#options;
    const names = kept.tasks.join(", ");
    const decision = kept.restarts.decide(clock.now());
    if (decision.kind === "wait") return;
    if (decision.kind === "never") {
      if (!kept.gaveUp)
        logger({ level: "error", message: `The worker of ${names} was restarted ${decision.attempts} times and is given up.` });
      kept.gaveUp = true;
      return;
    }
    kept.ending = undefined;
    kept.process = kept.start();
    this.#follow(kept);
    restarted(kept.tasks, decision.attempt);
    const message = `Restarted the worker of ${names} (restart ${decision.attempt}); another one would wait for ${formatDuration(decision.backoffMs)}.`;
    logger({ level: "info", message });
  }

  #end(kept: Kept, signal: NodeJS.Signals, graceMs: number): void {
    const { clock } = this.#options;
    const running = kept.process;
    if (kept.ending !== undefined) return;
    running.kill(signal);
    const allowedMs = this.#isSilent(running) ? Math.min(graceMs, killMsMax) : graceMs;
    const disarm = clock.at(clock.now() + allowedMs, () => running.kill("SIGKILL"));
    void running.ended.then(disarm);
  }

  #closeWhenOver(): void {
    if (this.#kept.every(({ ending }) => ending !== undefined)) this.#resolveClosed();
  }

  #isSilent(running: WorkerProcess): boolean {
    return this.#options.clock.now() - running.heardMs > silentMsMax;
  }

  #statusOf(kept: Kept, task: string): WorkerStatus {
    const { process: running, restarts, ending, exitCode } = kept;
    const reported = running.workers[task];
    const ended = ending !== undefined;
    return {
      worker: task,
      alive: !ended && !this.#isSilent(running),
      pid: ended ? undefined : running.pid,
      exitCode,
      restarts: restarts.count,
      lastPollAt: reported?.lastPollAt,
      lastError: reported?.lastError,
      inFlight: ended ? 0 : (reported?.inFlight ?? 0),
    };
  }
}

function hintOf(signal: NodeJS.Signals): string {
  return signal === "SIGKILL" ? ", perhaps because memory ran out" : "";
}
