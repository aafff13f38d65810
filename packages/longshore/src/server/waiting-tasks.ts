// Finds tasks that wait and reports why, once for each cause, and again when that has ended. For a person at a terminal: nothing here
// decides anything. An idle server pays nothing for it: it looks only after a task has changed, and while something is queued.

import { lanesAfter, stateOf } from "../engine/board/queue-state.ts";
import { isOpen, type TaskRowHead } from "../engine/board/task.ts";
import type { WaitReason } from "../engine/board/wait-reason.ts";
import type { Engine } from "./engine.ts";

/** A task starts to wait for a reason, or stops waiting. */
export interface WaitingNews {
  /** `ended`: it was never taken: it was cancelled or its time was over. */
  readonly kind: "waiting" | "over" | "ended";
  readonly reason: WaitReason;
  /** Why, such as "no live worker has the label gpu". */
  readonly text: string;
  /** How many tasks wait for this cause; of delayed and sent ones, as far as was looked. */
  readonly tasks: number;
  /** One of them. */
  readonly taskId: string;
  readonly step: string;
  readonly runId: string | null;
  readonly lane: string;
  readonly labels: readonly string[];
  /** How long it has been so. */
  readonly forMs: number;
}

/** Delayed and offered tasks looked at, newest first. Causes are few: more tasks would show the same ones. */
const delayedMax = 200;
/** Lanes with ready tasks that are looked at: the causes of more would fill the screen. */
const lanesMax = 200;
/** Between two looks, however much happens. */
const lookMs = 250;
/** Between two looks while something is queued and nothing happens: a worker may have gone. */
const againMs = 2_000;
/**
 * How long a cause must last to be worth a line. That no worker could take a task is reported at once; the others often end in a moment.
 */
const reportAfterMs: Readonly<Record<WaitReason, number>> = {
  "no-worker": 0,
  busy: 3_000,
  limit: 3_000,
  "not-due": 3_000,
  unreachable: 3_000,
  sent: 10_000,
  next: 10_000,
  record: Number.POSITIVE_INFINITY,
};

interface Cause extends Omit<WaitingNews, "kind" | "forMs"> {
  readonly since: number;
  readonly reported: boolean;
}

/** Ends with the function that is returned. */
export function watchWaiting(engine: Engine, tell: (news: WaitingNews) => void): () => void {
  const { clock } = engine;
  let causes = new Map<string, Cause>();
  let planned: { readonly at: number; readonly cancel: () => void } | undefined;
  let looking = false;
  let changed = false;
  let stopped = false;

  /** A look that is planned for later is brought forward; one that comes sooner stays, or a busy server would never be looked at. */
  const lookIn = (ms: number) => {
    const at = clock.now() + ms;
    if (stopped || (planned !== undefined && planned.at <= at)) return;
    planned?.cancel();
    planned = { at, cancel: clock.at(at, () => void look()) };
  };

  const look = async () => {
    planned = undefined;
    looking = true;
    changed = false;
    try {
      const found = await causesNow(engine);
      if (stopped) return;
      const now = clock.now();
      const before = causes;
      causes = compare(before, found, now, tell);
      for (const [key, cause] of before) {
        if (!cause.reported || found.has(key)) continue;
        const kind = (await waitedInVain(engine, cause.taskId)) ? "ended" : "over";
        if (stopped) return;
        tell(newsOf(cause, kind, now - cause.since));
      }
      if (found.size > 0) lookIn(againMs);
    } catch {
      // The store is closed or cannot be read now; it reports that itself, and the next change causes another look.
    } finally {
      looking = false;
      if (changed) lookIn(lookMs);
    }
  };

  const stopListening = engine.listen({
    task(task) {
      if (task.state !== "queued" && task.state !== "offered" && causes.size === 0) return;
      changed = true;
      if (!looking) lookIn(lookMs);
    },
  });
  void look();
  return () => {
    stopped = true;
    planned?.cancel();
    stopListening();
  };
}

/** Lanes with ready tasks, each by its oldest, tasks that are not due, and tasks on their way to workers. */
async function causesNow(engine: Engine): Promise<Map<string, Cause>> {
  const { items } = await engine.reader.taskHeads({ state: "queued", limit: delayedMax });
  const offered = engine.carriers.size === 0 ? [] : (await engine.reader.taskHeads({ state: "offered", limit: delayedMax })).items;
  const now = engine.clock.now();
  const why = engine.waiting();
  const causes = new Map<string, Cause>();
  const add = async (task: TaskRowHead, count: number) => {
    const waiting = await why(task);
    if (waiting === null || task.lane === null) return;
    const { id: taskId, step, runId, lane } = task;
    const { reason, text } = waiting;
    const key = JSON.stringify([reason, waiting.key, lane.name, lane.labels]);
    const what = { taskId, step, runId, lane: lane.name, labels: lane.labels };
    const known = causes.get(key) ?? { reason, text, tasks: 0, ...what, since: now, reported: false };
    causes.set(key, { ...known, tasks: known.tasks + count });
  };
  let looked = 0;
  for await (const queue of lanesAfter(engine)) {
    if (queue.ready.size === 0) continue;
    if (++looked > lanesMax) break;
    const { oldest, ready } = await stateOf(engine, queue);
    if (oldest !== null) await add(oldest, ready);
  }
  for (const task of items) if (task.dueAt > now) await add(task, 1);
  for (const task of offered) await add(task, 1);
  return causes;
}

/** A task that is gone was pruned, so it had ended. */
async function waitedInVain({ reader }: Engine, taskId: string): Promise<boolean> {
  const task = await reader.task(taskId);
  return task === undefined || (!isOpen(task.state) && task.startedAt === null);
}

/** Keeps since when each cause lasts, and reports those that have lasted long enough. */
function compare(
  before: Map<string, Cause>,
  found: Map<string, Cause>,
  now: number,
  tell: (news: WaitingNews) => void,
): Map<string, Cause> {
  const after = new Map<string, Cause>();
  for (const [key, cause] of found) {
    const { since = now, reported = false } = before.get(key) ?? {};
    const due = !reported && now - since >= reportAfterMs[cause.reason];
    if (due) tell(newsOf(cause, "waiting", now - since));
    after.set(key, { ...cause, since, reported: reported || due });
  }
  return after;
}

function newsOf({ since: _, reported: __, ...cause }: Cause, kind: WaitingNews["kind"], forMs: number): WaitingNews {
  return { kind, ...cause, forMs };
}
