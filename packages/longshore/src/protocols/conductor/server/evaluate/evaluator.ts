// Evaluates code of definitions in a few threads, which start with the first expression. A thread that takes too long is ended, and so is
// one that has evaluated very many expressions.

import type { Worker } from "node:worker_threads";
import type { Clock } from "../../../../core/clock.ts";
import { LongshoreError } from "../../../../core/errors.ts";
import { startProgram } from "../../../../core/program-thread.ts";
import { TurnHeap } from "../../../../engine/board/turn-heap.ts";
import { type Evaluated, type Evaluation, overdue } from "./evaluation.ts";

/** Expressions take some milliseconds of a thread, and the server needs the other cores. */
const threadsMax = 2;
/** JavaScript stops itself in time. This is for jq and for calls of the library that cannot be interrupted. */
const graceMs = 1_000;
/** A thread starts and loads a language in less than a second; on a busy machine it takes many times as long. */
const startMsMax = 120_000;
/** The heap of a thread outside WebAssembly: texts of inputs and results. */
const threadMbMax = 256;
/** A thread ends after this many evaluations, so that a leak in a foreign library stays small. */
const evaluationsMax = 10_000;
/** An unused thread ends after this time. */
const idleMs = 60_000;

/** What a thread posts. */
type Posted =
  | { readonly begun: true }
  | { readonly evaluated: Evaluated }
  | { readonly broken: { readonly code?: string; readonly message?: string } };

interface Job {
  readonly evaluation: Evaluation;
  /** The order of arrival. */
  readonly at: number;
  readonly turn: string;
  readonly signal: AbortSignal;
  resolve(evaluated: Evaluated): void;
  reject(error: Error): void;
}

interface Thread {
  readonly worker: Worker;
  evaluations: number;
  job: Job | null;
  disarm(): void;
}

export class Evaluator {
  readonly #clock: Clock;
  readonly #threads = new Set<Thread>();
  readonly #waiting = new TurnHeap<Job>({ turnOf: ({ turn }) => turn, priorityOf: () => 0, before: (a, b) => a.at < b.at });
  #arrivals = 0;
  #closed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Evaluations take turns by `turn`: the root of the run that waits for them. Rejects when the evaluation could not be made: a package is
   * missing, or the evaluator is closed. The caller limits how many wait.
   */
  evaluate(evaluation: Evaluation, signal: AbortSignal, turn: string): Promise<Evaluated> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(new LongshoreError("LONGSHORE_CLOSED", "The evaluator of expressions is closed."));
      this.#waiting.push({ evaluation, at: ++this.#arrivals, turn, signal, resolve, reject });
      this.#next();
    });
  }

  get threads(): number {
    return this.#threads.size;
  }

  close(): void {
    this.#closed = true;
    for (let job = this.#waiting.pop(); job !== undefined; job = this.#waiting.pop())
      job.reject(new LongshoreError("LONGSHORE_CLOSED", "The evaluator of expressions is closed."));
    for (const thread of this.#threads) this.#end(thread);
  }

  #next(): void {
    while (this.#waiting.size > 0) {
      const thread = this.#idle();
      if (thread === undefined) return;
      const job = this.#waiting.pop() as Job;
      if (job.signal.aborted) job.reject(new Error("The evaluation was cancelled."));
      else this.#give(thread, job);
    }
  }

  #idle(): Thread | undefined {
    for (const thread of this.#threads) if (thread.job === null) return thread;
    return this.#threads.size < threadsMax ? this.#start() : undefined;
  }

  #start(): Thread {
    const options = { resourceLimits: { maxOldGenerationSizeMb: threadMbMax }, env: {} };
    const worker = startProgram(new URL("./evaluator-thread.ts", import.meta.url), import.meta.url, options);
    const thread: Thread = { worker, evaluations: 0, job: null, disarm: () => {} };
    this.#threads.add(thread);
    worker.on("message", (posted: Posted) => this.#posted(thread, posted));
    worker.on("error", (error) => this.#failed(thread, { failed: `the evaluation ended: ${(error as Error).message}`, isLimit: true }));
    worker.on("exit", () => this.#failed(thread, { failed: "the evaluation ended without a result", isLimit: true }));
    return thread;
  }

  #give(thread: Thread, job: Job): void {
    thread.job = job;
    thread.evaluations++;
    // A thread keeps the process alive while it works.
    thread.worker.ref();
    this.#endAfter(thread, startMsMax, `no thread for expressions has started within ${startMsMax / 1_000} seconds`);
    thread.worker.postMessage(job.evaluation);
  }

  #endAfter(thread: Thread, ms: number, failed: string): void {
    thread.disarm();
    thread.disarm = this.#clock.at(this.#clock.now() + ms, () => this.#failed(thread, { failed, isLimit: true }));
  }

  #posted(thread: Thread, posted: Posted): void {
    const { job } = thread;
    if (job === null) return;
    if ("begun" in posted) return this.#endAfter(thread, job.evaluation.msMax + graceMs, overdue(job.evaluation.msMax));
    thread.job = null;
    thread.disarm();
    thread.worker.unref();
    if ("broken" in posted) {
      this.#end(thread);
      job.reject(brokenBy(posted.broken));
    } else {
      if (thread.evaluations >= evaluationsMax) this.#end(thread);
      else thread.disarm = this.#clock.at(this.#clock.now() + idleMs, () => this.#end(thread));
      job.resolve(posted.evaluated);
    }
    this.#next();
  }

  /** The thread cannot be used any more. */
  #failed(thread: Thread, evaluated: Evaluated): void {
    const { job } = thread;
    thread.job = null;
    this.#end(thread);
    job?.resolve(evaluated);
    if (!this.#closed) this.#next();
  }

  #end(thread: Thread): void {
    thread.disarm();
    if (!this.#threads.delete(thread)) return;
    void thread.worker.terminate();
  }
}

const install = "npm install quickjs-emscripten-core @jitl/quickjs-ng-wasmfile-release-sync jq-web";

function brokenBy({ code, message }: { readonly code?: string; readonly message?: string }): Error {
  const isMissing = code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND";
  if (!isMissing) return new Error(`The expression could not be evaluated: ${message}`);
  return new LongshoreError("LONGSHORE_BAD_CONFIG", `Expressions need packages that are not installed: ${install}`);
}
