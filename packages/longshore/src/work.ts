// Starts a worker: `await work({ tasks, on })`. The returned handle stops it; until then the process stays alive.

import { LongshoreError } from "./errors.ts";
import { type RunnerConfig, type RunnerOptions, runnerConfig } from "./runner/config.ts";
import type { EventName, Listener } from "./runner/events.ts";
import { Runner } from "./runner/runner.ts";
import type { RunnerStatus } from "./runner/status.ts";
import type { Transport, TransportSource } from "./runner/transport.ts";
import { onTermination, type SignalSource } from "./signal.ts";
import { counted } from "./text.ts";

export type WorkTarget = Transport | TransportSource;

export interface WorkOptions extends RunnerOptions {
  /** Where work comes from: one transport, a server in this process, or several that share the slots. */
  readonly on: WorkTarget | readonly WorkTarget[];
  /** Whether SIGINT and SIGTERM drain this worker and a second one forces it; true unless told. */
  readonly signals?: boolean | SignalSource;
}

export interface WorkHandle extends AsyncDisposable {
  /** Drains, then stops. `force` aborts running tasks at once. May be called at any time and any number of times. */
  stop(options?: { readonly force?: boolean }): Promise<void>;
  /** Resolves when the worker has really stopped, for whatever reason. */
  readonly closed: Promise<void>;
  status(): RunnerStatus;
  /** Watches what happens; the returned function ends that. */
  on<Name extends EventName>(name: Name, listener: Listener<Name>): () => void;
}

/** Longest interval that Node's timers take. It never fires to any effect: it only keeps the process alive. */
const keepAliveMs = 2_147_483_647;

/** Resolves when the worker receives. The orchestrator need not be reachable yet; rejects only for mistakes in the options. */
export async function work(options: WorkOptions): Promise<WorkHandle> {
  const config = runnerConfig(options);
  const runner = new Runner(config, transportsOf(options.on));
  const removeListeners = listenForSignals(options.signals ?? true, runner, config);
  const keepAlive = setInterval(() => {}, keepAliveMs);
  void runner.closed.then(() => {
    clearInterval(keepAlive);
    removeListeners();
  });
  await runner.start();
  return {
    stop: (stopOptions) => runner.stop(stopOptions),
    closed: runner.closed,
    status: () => runner.status(),
    on: (name, listener) => runner.events.on(name, listener),
    [Symbol.asyncDispose]: () => runner.stop(),
  };
}

function transportsOf(on: WorkOptions["on"]): readonly Transport[] {
  const targets = Array.isArray(on) ? (on as readonly WorkTarget[]) : [on as WorkTarget];
  if (targets.length === 0) {
    throw new LongshoreError("LONGSHORE_BAD_CONFIG", "on is an empty list, expected at least one transport.", { detail: { field: "on" } });
  }
  return targets.map((target) => ("transport" in target ? target.transport() : target));
}

function listenForSignals(signals: boolean | SignalSource, runner: Runner, { logger, clock }: RunnerConfig): () => void {
  if (signals === false) return () => {};
  return onTermination(
    signals === true ? process : signals,
    (signal) => {
      const running = runner.status().running.length;
      const waiting = running === 0 ? "." : `; waiting for ${counted(running, "running task")}. Send it again to abort what runs.`;
      logger({ level: "info", message: `${signal}: stopping${waiting}` });
      void runner.stop();
    },
    () => void runner.stop({ force: true }),
    () => clock.now(),
  );
}
