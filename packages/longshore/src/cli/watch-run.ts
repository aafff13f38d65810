// Follows one run to its end, or until it is blocked: reads the run and all its steps whenever they may have changed.

import { setTimeout as sleep } from "node:timers/promises";
import { isRunOpen } from "../engine/run/run.ts";
import type { Run, Step } from "./api.ts";
import type { Client } from "./client.ts";
import { patiently } from "./follow.ts";
import { readList } from "./pages.ts";

export interface RunView {
  readonly run: Run;
  readonly steps: readonly Step[];
}

/** The server's events do not include log lines, so the run is read at least once a second. */
const lookMsMax = 1_000;
/** Events within this time cause one read. */
const lookMsMin = 100;
/** A run with more steps is read in several pages. The pause after a read is this many times as long as the read. */
const stepsLarge = 1_000;
const largeShare = 4;
/** The limit of steps that are read. */
const stepsMax = 20_000;

/**
 * Calls `show` with each state. The last one is the result: the end, or `blocked`, because such a run does not continue by itself. Rejects
 * when `signal` aborts. The caller has just used this server, so even the first read is retried.
 */
export async function watchRun(client: Client, runId: string, show: (view: RunView) => void, signal?: AbortSignal): Promise<RunView> {
  const news = listenFor(client, runId, signal);
  try {
    for (;;) {
      const sinceMs = Date.now();
      const view = await patiently(() => look(client, runId), signal);
      const tookMs = Date.now() - sinceMs;
      signal?.throwIfAborted();
      show(view);
      if (!isRunOpen(view.run.state) || view.run.state === "blocked") return view;
      const pauseMs = view.steps.length > stepsLarge ? largeShare * tookMs : lookMsMin - tookMs;
      if (pauseMs > 0) await sleep(pauseMs, undefined, { signal });
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
  const path = `/runs/${encodeURIComponent(runId)}/steps`;
  const { items } = await readList<Step>(client, { path, query: { lines: "true" }, cursor: "after", limit: stepsMax });
  return { run, steps: items };
}

interface News {
  /** Resolves when an event has arrived since the last call, or after `ms`. */
  next(ms: number): Promise<void>;
  stop(): void;
}

/** Events are only hints: without them, the run is still read once a second. */
function listenFor(client: Client, runId: string, signal?: AbortSignal): News {
  const stopping = new AbortController();
  let pending = false;
  let wake: () => void = () => {};
  const listen = async () => {
    for await (const _ of client.events("/events", { query: { run: runId }, signal: stopping.signal })) {
      pending = true;
      wake();
    }
  };
  const wakeNow = () => wake();
  signal?.addEventListener("abort", wakeNow);
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
    stop() {
      signal?.removeEventListener("abort", wakeNow);
      stopping.abort();
    },
  };
}
