// A run as it was at an earlier moment.

import type { RunTimeline } from "../core/shapes.ts";

/** `at` is in milliseconds after the creation of the run. */
export function timelineAt(timeline: RunTimeline, at: number): RunTimeline {
  const { attempts, states, t0, endedAt } = timeline;
  const [queued, held] = [states.length, states.length + 1];
  const kept = attempts.step.map((_step, index) => index).filter((index) => (attempts.queued[index] ?? 0) <= at);
  const column = <Value>(values: readonly Value[]) => kept.map((index) => values[index] as Value);
  const past = (time: number | null | undefined) => (time === null || time === undefined || time > at ? null : time);
  const isOver = endedAt !== null && endedAt - t0 <= at;
  return {
    ...timeline,
    state: isOver ? timeline.state : "running",
    endedAt: isOver ? endedAt : null,
    now: t0 + at,
    states: [...states, "queued", "held"],
    attempts: {
      step: column(attempts.step),
      attempt: column(attempts.attempt),
      // An attempt that ended before the next one began left its step in the queue.
      state: kept.map((index) => {
        if (past(attempts.end[index]) !== null) return attempts.state[index] ?? queued;
        return past(attempts.start[index]) === null ? queued : held;
      }),
      queued: column(attempts.queued),
      due: column(attempts.due),
      start: kept.map((index) => past(attempts.start[index])),
      end: kept.map((index) => past(attempts.end[index])),
      closedBy: kept.map((index) => (past(attempts.end[index]) === null ? null : (attempts.closedBy[index] ?? null))),
      holder: column(attempts.holder),
    },
  };
}

/** How long the run has been open, or was. */
export function lengthOf({ t0, endedAt, now }: RunTimeline): number {
  return Math.max(1, (endedAt ?? now ?? t0) - t0);
}
