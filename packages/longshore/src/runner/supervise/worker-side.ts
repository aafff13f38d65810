// The worker's side of a supervised process: receives its work, and sends events to its supervisor.

import type { EventName } from "../events.ts";
import type { WorkerMetrics } from "../instruments.ts";
import { packError } from "../isolate/messages.ts";
import type { Logger } from "../notices.ts";
import type { Runner } from "../runner.ts";
import { type Begin, type FromWorker, packEvent, type SentEvent } from "./messages.ts";

/** How often a process sends a message to the supervisor, unless its event loop is blocked. */
const newsMs = 1_000;
/** The limit of events that the supervisor has not received yet. Further events are dropped until it has caught up. */
const unsentMax = 10_000;

export interface Opened {
  readonly runner: Runner;
  readonly metrics: WorkerMetrics | undefined;
}

/**
 * Runs a supervised process from start to end. `open` starts the worker with its options; the process handles signals itself. When the
 * supervisor has ended, it ends as if it had received SIGTERM, because nothing else would stop it.
 */
export async function runSupervised<Work>(open: (begin: Begin<Work>, logger: Logger) => Promise<Opened>): Promise<void> {
  const begin = await begun<Work>();
  process.once("disconnect", () => process.kill(process.pid, "SIGTERM"));
  const logger: Logger = (notice) => void send({ kind: "notice", notice });
  try {
    const { runner, metrics } = await open(begin, logger);
    const news = () => send({ kind: "news", workers: runner.workers(), metrics: metrics?.registry.drain() ?? [] });
    passOn(runner, begin.events);
    void send({ kind: "started" });
    void news();
    const timer = setInterval(news, newsMs);
    await runner.closed;
    clearInterval(timer);
    await news();
  } catch (error) {
    process.exitCode = 1;
    await send({ kind: "refused", error: packError(error) });
  }
  process.removeAllListeners("disconnect");
  if (process.connected) process.disconnect();
}

function begun<Work>(): Promise<Begin<Work>> {
  return new Promise((resolve) => {
    process.once("message", (message) => {
      // This listener must not keep the process alive.
      process.channel?.unref();
      resolve(message as Begin<Work>);
    });
  });
}

/** Events are sent in batches: one message for all events of one turn of the event loop. */
function passOn(runner: Runner, names: readonly EventName[]): void {
  let batch: SentEvent[] = [];
  let unsent = 0;
  const flush = () => {
    const events = batch;
    batch = [];
    unsent += events.length;
    void send({ kind: "events", events }).then(() => {
      unsent -= events.length;
    });
  };
  for (const name of names) {
    runner.events.watch(name, (event) => {
      if (unsent + batch.length >= unsentMax) return runner.events.countDropped();
      if (batch.length === 0) setImmediate(flush);
      batch.push(packEvent(name, event));
    });
  }
}

/** Resolves when the message is sent, or cannot be sent because the supervisor has ended. */
function send(message: FromWorker): Promise<void> {
  return new Promise((resolve) => {
    if (process.send === undefined || !process.connected) return resolve();
    process.send(message, undefined, undefined, () => resolve());
  });
}
