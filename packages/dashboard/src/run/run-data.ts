// All reads for the page of a run; its panes share the data.

import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { call, query } from "../core/api.ts";
import { now } from "../core/format.ts";
import { type Change, touchesRun } from "../core/live.ts";
import { type Resource, useApi, useResource } from "../core/resource.ts";
import type { Page, Run, RunGraph, RunTimeline, Step } from "../core/shapes.ts";
import type { StepState } from "../graph/model.ts";
import { isOver } from "../ui/states.tsx";

export interface RunData {
  readonly run: Resource<Run>;
  readonly graph: Resource<RunGraph>;
  readonly timeline: Resource<RunTimeline>;
  readonly steps: Resource<readonly Step[]>;
}

/** Steps per page of the API: the server makes such a page in a few milliseconds, so that it delays no other request. */
export const stepsPage = 200;
/** The interval in which the reasons of waiting steps are read again while no change comes. */
const waitsEveryMs = 15_000;
/** The page reads at most this number of steps. The graph and the timeline have all of them. */
const stepsMax = 20_000;

export function useRun(id: string): RunData {
  const on = (change: Change) => touchesRun(change, id);
  const path = `/runs/${encodeURIComponent(id)}`;
  const run = useApi<Run>(path, { on, gapMs: 500 });
  const isFunction = useSignal(false);
  const graph = useResource<RunGraph>(
    `${path}/graph`,
    async (gone) => {
      const read = await call<RunGraph>(`${path}/graph`, { signal: gone });
      isFunction.value = read.isFunction;
      return read;
    },
    // The graph of a definition never changes; a durable function gives new commands, and forks grow.
    { on, gapMs: 2_000 },
  );
  const timeline = useResource<RunTimeline>(`${path}/timeline`, (gone) => wholeTimeline(path, gone), { on, gapMs: 1_000 });
  const steps = useResource<readonly Step[]>(`${path}/steps`, (gone) => allSteps(path, gone), { on, gapMs: 1_000 });
  useEffect(() => {
    const timer = setInterval(() => {
      const state = run.data.peek()?.state;
      if (state !== undefined && !isOver(state)) steps.refresh();
    }, waitsEveryMs);
    return () => clearInterval(timer);
  }, [run, steps]);
  return useMemo(() => ({ run, graph, timeline, steps }), [run, graph, timeline, steps]);
}

async function wholeTimeline(path: string, gone: AbortSignal): Promise<RunTimeline> {
  const first = await call<RunTimeline>(`${path}/timeline`, { signal: gone });
  let { next } = first;
  const attempts = { ...first.attempts };
  const names = { states: [...first.states], verbs: [...first.verbs], holders: [...first.holders] };
  while (next !== null) {
    const page: RunTimeline = await call(`${path}/timeline${query({ after: next })}`, { signal: gone });
    append(attempts, page, names);
    next = page.next;
  }
  performance.mark("longshore:timeline");
  return { ...first, ...names, attempts, next: null };
}

type Columns = RunTimeline["attempts"];
interface Names {
  readonly states: string[];
  readonly verbs: string[];
  readonly holders: string[];
}

/** Each page has its own lists of names, which are joined here. */
function append(into: { -readonly [Name in keyof Columns]: Columns[Name] }, page: RunTimeline, names: Names): void {
  const mapped = (list: readonly string[], all: string[]) =>
    list.map((name) => {
      const known = all.indexOf(name);
      return known >= 0 ? known : all.push(name) - 1;
    });
  const [states, verbs, holders] = [
    mapped(page.states, names.states),
    mapped(page.verbs, names.verbs),
    mapped(page.holders, names.holders),
  ];
  const through = (column: readonly (number | null)[], places: readonly number[]) =>
    column.map((at) => (at === null ? null : (places[at] ?? null)));
  const { attempts } = page;
  into.step = into.step.concat(attempts.step);
  into.attempt = into.attempt.concat(attempts.attempt);
  into.queued = into.queued.concat(attempts.queued);
  into.due = into.due.concat(attempts.due);
  into.start = into.start.concat(attempts.start);
  into.end = into.end.concat(attempts.end);
  into.state = into.state.concat(through(attempts.state, states));
  into.closedBy = into.closedBy.concat(through(attempts.closedBy, verbs));
  into.holder = into.holder.concat(through(attempts.holder, holders));
}

async function allSteps(path: string, gone: AbortSignal): Promise<readonly Step[]> {
  const all: Step[] = [];
  let after: string | null = null;
  do {
    const page: Page<Step> = await call(`${path}/steps${query({ limit: stepsPage, after })}`, { signal: gone });
    all.push(...page.items);
    after = page.next;
  } while (after !== null && all.length < stepsMax);
  return all;
}

/** The newest attempt of each step, by the number of its node. */
export function statesOf(timeline: RunTimeline | undefined, moment?: number): ReadonlyMap<number, StepState> {
  const states = new Map<number, StepState>();
  if (timeline === undefined) return states;
  const { step, attempt, state, start, end } = timeline.attempts;
  const clock =
    moment !== undefined
      ? timeline.t0 + moment
      : isOver(timeline.state)
        ? (timeline.endedAt ?? timeline.t0)
        : Math.max(timeline.now ?? 0, now.peek());
  step.forEach((node, at) => {
    const place = state[at];
    if (place === null || place === undefined) return;
    const begun = start[at] ?? null;
    const ended = end[at] ?? clock - timeline.t0;
    states.set(node, {
      state: timeline.states[place] ?? "waiting",
      attempts: attempt[at] ?? 1,
      durationMs: begun === null ? null : Math.max(0, ended - begun),
    });
  });
  return states;
}

/** The name of a step in an address. */
export function stepAt(graph: RunGraph | undefined, id: string | null): number | null {
  if (graph === undefined || id === null) return null;
  const at = graph.ids.indexOf(id);
  return at < 0 ? null : at;
}
