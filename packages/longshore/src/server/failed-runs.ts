// Reports runs that fail, time out or are blocked. For a person at a terminal: no decision depends on it.

import type { Engine } from "./engine.ts";

/** A run has failed, has timed out, or is blocked. */
export interface FailureNews {
  readonly runId: string;
  readonly workflow: string;
  readonly state: "failed" | "timed-out" | "blocked";
  readonly error: string | null;
  /** How many other runs failed or were blocked since the last report, without a separate report. */
  readonly more: number;
}

/** How many runs are reported one by one within `windowMs`; the last report of a window counts the others. More would fill the screen. */
const eachMax = 5;
const windowMs = 1_000;
/** How many blocked runs are remembered, so that a later change of one is not reported again. */
const blockedMax = 1_000;

/** The returned function stops the reports. A child is reported only when it is blocked: its failure is an event of its parent. */
export function watchFailures({ clock, listen }: Pick<Engine, "clock" | "listen">, tell: (news: FailureNews) => void): () => void {
  const blocked = new Set<string>();
  let reported = 0;
  let held: FailureNews | undefined;
  let cancelTimer: (() => void) | undefined;

  const closeWindow = () => {
    const last = held;
    cancelTimer = undefined;
    held = undefined;
    reported = 0;
    if (last !== undefined) report(last);
  };
  const report = (news: FailureNews) => {
    cancelTimer ??= clock.at(clock.now() + windowMs, closeWindow);
    if (reported++ < eachMax) tell(news);
    else held = { ...news, more: held === undefined ? 0 : held.more + 1 };
  };
  const stopListening = listen({
    run({ id: runId, workflow, state, error, parentTaskId }) {
      if (state !== "blocked") blocked.delete(runId);
      else if (blocked.has(runId)) return;
      else {
        if (blocked.size >= blockedMax) blocked.clear();
        blocked.add(runId);
      }
      const isOwn = parentTaskId === null && (state === "failed" || state === "timed-out");
      if (isOwn || state === "blocked") report({ runId, workflow, state, error, more: 0 });
    },
  });
  return () => {
    stopListening();
    cancelTimer?.();
  };
}
