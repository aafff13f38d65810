// The handle of one run, on a server in the program's own process.

import type { RequestOptions, RunHandle, RunStatus, SentSignal, SignalOptions, WaitOptions } from "../client/client.ts";
import { withDeadline } from "../client/deadline.ts";
import type { RunEvent } from "../client/run-event.ts";
import { outputOf } from "../client/run-failed.ts";
import { toJson } from "../core/json/to-json.ts";
import { byProgram } from "../core/orderer.ts";
import { whenAborted } from "../core/results.ts";
import { noSuchRun } from "../engine/run/no-such-run.ts";
import { isRunOpen, type Run } from "../engine/run/run.ts";
import { runStatus } from "../engine/run/run-status.ts";
import { awaitedGate, type RunWaitingDeps, runsWaiting } from "../engine/run/run-waiting.ts";
import type { Engine } from "./engine.ts";
import { type LocalEventsDeps, localEvents } from "./local-events.ts";

export interface LocalRunDeps extends LocalEventsDeps, RunWaitingDeps, Pick<Engine, "clock" | "orderers" | "runs" | "shown" | "signals"> {}

export class LocalRun<Output> implements RunHandle<Output> {
  readonly id: string;
  readonly #deps: LocalRunDeps;

  constructor(deps: LocalRunDeps, id: string) {
    this.#deps = deps;
    this.id = id;
  }

  result(options: WaitOptions = {}): Promise<Output> {
    const { clock, runs, shown } = this.#deps;
    return withDeadline(options, { clock, what: `Run ${this.id}` }, async (signal) => {
      signal?.throwIfAborted();
      const run = this.#known(await runs.result(this.id, signal === undefined ? undefined : whenAborted(signal)));
      signal?.throwIfAborted();
      return outputOf(statusOf<Output>(await shown.run(run)));
    });
  }

  async status({ signal }: RequestOptions = {}): Promise<RunStatus<Output>> {
    signal?.throwIfAborted();
    const { runs, shown } = this.#deps;
    const run = this.#known(await runs.run(this.id));
    const status = statusOf<Output>(await shown.run(run));
    return isRunOpen(run.state) ? { ...status, waiting: await runsWaiting(this.#deps)(run.id, awaitedGate(run)) } : status;
  }

  events({ signal }: RequestOptions = {}): AsyncIterable<RunEvent> {
    return localEvents(this.#deps, this.id, signal);
  }

  async signal(name: string, value?: unknown, { key, signal }: SignalOptions = {}): Promise<SentSignal> {
    signal?.throwIfAborted();
    const sent = await this.#ordered(() => this.#deps.signals.send(this.id, { name, value: JSON.stringify(toJson(value)), key }));
    const { number, takenAt } = sent;
    if (takenAt !== null) return { number, name: sent.name, state: "taken" };
    return { number, name: sent.name, state: "kept", awaited: await this.#deps.signals.awaited(this.id) };
  }

  async cancel(reason?: string, { signal }: RequestOptions = {}): Promise<boolean> {
    signal?.throwIfAborted();
    return this.#known(await this.#ordered(() => this.#deps.runs.cancel(this.id, reason))).state === "cancelled";
  }

  async retry({ signal }: RequestOptions = {}): Promise<void> {
    signal?.throwIfAborted();
    this.#known(await this.#ordered(() => this.#deps.runs.retry(this.id)));
  }

  async rerun({ signal }: RequestOptions = {}): Promise<RunHandle<Output>> {
    signal?.throwIfAborted();
    return new LocalRun<Output>(this.#deps, this.#known(await this.#ordered(() => this.#deps.runs.rerun(this.id))).id);
  }

  #ordered<T>(order: () => Promise<T>): Promise<T> {
    return this.#deps.orderers.within(byProgram, order);
  }

  #known(run: Run | undefined): Run {
    if (run === undefined) throw noSuchRun(this.id);
    return run;
  }
}

export function statusOf<Output>(run: Run): RunStatus<Output> {
  return runStatus(run, (text) => (text === null ? null : JSON.parse(text)));
}
