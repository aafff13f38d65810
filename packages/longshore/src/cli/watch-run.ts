// Follows one run to its end: the run and all its steps, whenever something about them may have changed.

import { isRunOpen } from "../engine/run/run.ts";
import type { Page, Run, Step } from "./api.ts";
import type { Client } from "./client.ts";
import { patiently } from "./follow.ts";

export interface RunView {
  readonly run: Run;
  readonly steps: readonly Step[];
}

/** The server's events report news; log lines are not among them, so a watcher of log lines reads once a second. */
const lookMsMax = 1_000;
/** A burst of news is one look. */
const lookMsMin = 100;
/** Steps of one page; runs with more are shown by their first ones, which is more than a screen holds. */
const stepsMax = 1_000;

/**
 * Calls `show` with each state, the last one being the end, which is also the result. Rejects when `signal` aborts. The
 * caller has just used this server, so its silence is waited for from the first look on.
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

/** The run with its steps in their current state. */
export async function look(client: Client, runId: string): Promise<RunView> {
  // The run first: when it has ended, so have the steps that are read after it.
  const run = await client.get<Run>(`/runs/${encodeURIComponent(runId)}`);
  const { items } = await client.get<Page<Step>>(`/runs/${encodeURIComponent(runId)}/steps`, { limit: stepsMax, lines: "true" });
  return { run, steps: items };
}

interface News {
  /** Resolves when something has happened since the last call, or after `ms`. */
  next(ms: number): Promise<void>;
  stop(): void;
}

/** News are hints: without them, or when they break off with a server that restarts, the looks go on by time. */
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
    // Ended by `stop`, or by a server that is closing: then the next look shows it.
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
