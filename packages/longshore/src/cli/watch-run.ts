// Follows one run to its end: reads the run and all its steps whenever they may have changed.

import { isRunOpen } from "../engine/run/run.ts";
import type { Page, Run, Step } from "./api.ts";
import type { Client } from "./client.ts";
import { patiently } from "./follow.ts";

export interface RunView {
  readonly run: Run;
  readonly steps: readonly Step[];
}

/** The server's events do not include log lines, so the run is read at least once a second. */
const lookMsMax = 1_000;
/** Events within this time cause one read. */
const lookMsMin = 100;
/** The limit of steps that are shown: more than a screen holds. */
const stepsMax = 1_000;

/**
 * Calls `show` with each state; the last one is the end, which is also the result. Rejects when `signal` aborts. The caller has just used
 * this server, so an unreachable server is retried from the first read on.
 */
export async function watchRun(client: Client, runId: string, show: (view: RunView) => void, signal?: AbortSignal): Promise<RunView> {
  const news = listenFor(client, runId);
  try {
    for (;;) {
      const looked = new Promise((resolve) => setTimeout(resolve, lookMsMin));
      const view = await patiently(() => look(client, runId), signal);
      show(view);
      if (!isRunOpen(view.run.state)) return view;
      await looked;
      await news.next(lookMsMax - lookMsMin);
      signal?.throwIfAborted();
    }
  } finally {
    news.stop();
  }
}

/** The run with the current state of its steps. */
export async function look(client: Client, runId: string): Promise<RunView> {
  // Reads the run first: when it has ended, the steps that are read after it have ended too.
  const run = await client.get<Run>(`/runs/${encodeURIComponent(runId)}`);
  const { items } = await client.get<Page<Step>>(`/runs/${encodeURIComponent(runId)}/steps`, { limit: stepsMax, lines: "true" });
  return { run, steps: items };
}

interface News {
  /** Resolves when an event has arrived since the last call, or after `ms`. */
  next(ms: number): Promise<void>;
  stop(): void;
}

/** Events are only hints: without them, or when the stream breaks because the server restarts, the run is still read once a second. */
function listenFor(client: Client, runId: string): News {
  const stopping = new AbortController();
  let pending = false;
  let wake: () => void = () => {};
  const listen = async () => {
    for await (const _ of client.events("/events", { query: { run: runId }, signal: stopping.signal })) {
      pending = true;
      wake();
    }
  };
  void listen().catch(() => {
    // Ended by `stop`, or by a server that is closing: the next read shows that.
  });
  return {
    next(ms) {
      if (pending) {
        pending = false;
        return Promise.resolve();
      }
      return new Promise((resolve) => {
        const timer = setTimeout(resolve, ms);
        wake = () => {
          clearTimeout(timer);
          pending = false;
          resolve();
        };
      });
    },
    stop: () => stopping.abort(),
  };
}
