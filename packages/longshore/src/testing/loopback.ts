// A transport without a peer: the test is the orchestrator. Everything else is real: slots, validation, context, deadlines, draining.
//
//   const loop = new Loopback();
//   await using worker = await work({ tasks: [greet], on: loop, signals: false });
//   expect(await loop.run("greet", { name: "Ada" })).toEqual({ kind: "done", output: { text: "Hello, Ada!" } });

import type { StepPart } from "../core/context.ts";
import { LongshoreError, refusal } from "../core/errors.ts";
import type { Json } from "../core/json/json.ts";
import type { Assignment, Capabilities, LogEntry, Outcome, PartReader, Slot, Transport, TransportHost } from "../runner/transport.ts";

/** The options of `new Loopback()`. */
export interface LoopbackOptions {
  readonly name?: string;
  readonly capabilities?: Partial<Capabilities>;
}

/** Fields of an assignment that a test may set or replace. */
export type LoopbackCall = Partial<Omit<Assignment, "resolve" | "log" | "progress">> & {
  /** The parts that `ctx.parts` returns, by step. */
  readonly parts?: { readonly [stepId: string]: Iterable<StepPart> | AsyncIterable<StepPart> };
};

/** A transport without a peer: the test is the orchestrator, the runner is real. */
export class Loopback implements Transport {
  readonly name: string;
  readonly capabilities: Capabilities;
  /** Every log line and every progress value that was sent, in order. */
  readonly logs: LogEntry[] = [];
  readonly progress: Json[] = [];
  /** Every part that was emitted, in order. */
  readonly emitted: StepPart[] = [];
  #host: TransportHost | undefined;
  #sequence = 0;

  constructor(options: LoopbackOptions = {}) {
    this.name = options.name ?? "loopback";
    this.capabilities = { defer: true, progress: true, streams: true, logs: true, blobs: false, cancel: true, ...options.capabilities };
  }

  async start(host: TransportHost): Promise<void> {
    this.#host = host;
  }

  async drain(): Promise<void> {}

  async stop(): Promise<void> {}

  /**
   * Returns what the worker reported. Rejects with LONGSHORE_CLOSED when the worker takes no work. Rejects with LONGSHORE_LEASE_LOST when
   * the lease was lost, and nothing was reported.
   */
  async run(task: string, input: unknown = {}, call: LoopbackCall = {}): Promise<Outcome> {
    const slot = await this.#host?.slots.take();
    if (slot === undefined)
      throw new LongshoreError("LONGSHORE_CLOSED", `${this.name} takes no work: its worker has not started or is stopping.`);
    return this.runIn(slot, task, input, call);
  }

  /** The same, in a slot that the test itself has taken. */
  async runIn(slot: Slot, task: string, input: unknown, call: LoopbackCall = {}): Promise<Outcome> {
    let reported: Outcome | undefined;
    const assignment = this.assignment(task, input, {
      ...call,
      report: async (outcome, options) => {
        const answer = await (call.report?.(outcome, options) ?? { verdict: "ok" as const });
        reported = outcome;
        return answer;
      },
    });
    await slot.run(assignment);
    if (reported !== undefined) return reported;
    throw new LongshoreError("LONGSHORE_LEASE_LOST", `Nothing was reported for task "${task}".`);
  }

  /** Builds an assignment, for tests of what comes with the reply to a report. */
  assignment(task: string, input: unknown, call: LoopbackCall = {}): Assignment {
    const id = `${task}-${this.#sequence++}`;
    const given = (stepId: string) => partsOf(call.parts?.[stepId]);
    return {
      ids: { runId: "run", stepId: task, taskId: id, grantId: `${id}-grant` },
      attempt: 1,
      idempotencyKey: id,
      report: async () => ({ verdict: "ok" }),
      ...(this.capabilities.streams ? { emit: async (parts) => void this.emitted.push(...parts), receive: given } : {}),
      ...call,
      resolve: (tasks) => {
        const found = tasks.get(task);
        if (found === undefined) throw refusal("LONGSHORE_NO_HANDLER", `No task is named "${task}" here.`);
        return { task: found, input };
      },
      log: async (entries) => void this.logs.push(...entries),
      ...(this.capabilities.progress ? { progress: async (value: Json) => void this.progress.push(value) } : {}),
    };
  }

  /** The host that the worker passed to this transport. */
  get host(): TransportHost {
    if (this.#host === undefined) throw new LongshoreError("LONGSHORE_CLOSED", `${this.name} has not been started.`);
    return this.#host;
  }
}

/** The parts that a test has prepared, one part per page. */
function partsOf(given: Iterable<StepPart> | AsyncIterable<StepPart> | undefined): PartReader {
  let parts: Iterator<StepPart> | AsyncIterator<StepPart> | undefined;
  return {
    async next() {
      if (given === undefined) throw new LongshoreError("LONGSHORE_NOT_FOUND", "The test has prepared no parts of this step.");
      parts ??= Symbol.asyncIterator in given ? given[Symbol.asyncIterator]() : given[Symbol.iterator]();
      const next = await parts.next();
      return next.done ? undefined : [next.value];
    },
  };
}
