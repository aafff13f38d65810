// Finds tasks that wait and reports why: once for each cause, and again when the cause has ended. For a person at a terminal: no decision
// depends on it. An idle server pays nothing: the check runs only after a task has changed, and while tasks are queued.

import { wholeRow } from "../core/slices/slices.ts";
import { lanesAfter, type StateDeps, stateOf } from "../engine/board/queue-state.ts";
import { isOpen, type TaskRowHead } from "../engine/board/task.ts";
import type { WaitReason } from "../engine/board/wait-reason.ts";
import type { Engine } from "./engine.ts";

/** A task starts to wait for a reason, or stops waiting. */
export interface WaitingNews {
  /** `over`: the cause has ended. `ended`: the task ended before a worker took it; it was cancelled or timed out. */
  readonly kind: "waiting" | "over" | "ended";
  readonly reason: WaitReason;
  /** The reason, such as "no live worker has the label gpu". */
  readonly text: string;
  /** How many tasks wait for this cause; for delayed and offered tasks, only those that were checked. */
  readonly tasks: number;
  /** One of them. */
  readonly taskId: string;
  readonly step: string;
  readonly runId: string | null;
  readonly lane: string;
  readonly labels: readonly string[];
  /** How long the cause has lasted. */
  readonly forMs: number;
}

/** How many delayed and how many offered tasks are checked. There are only few causes, and more tasks would show the same ones. */
const checkedMax = 200;
/** How many lanes with ready tasks are checked: more causes would fill the screen. */
const lanesMax = 200;
/** The minimum time between two checks. */
const lookMs = 250;
/** The time between two checks while tasks are queued and nothing changes: a worker may have left. */
const againMs = 2_000;
/** How long a cause must last before it is reported. A task that no worker can take is reported at once; other causes often end soon. */
const reportAfterMs: Readonly<Record<WaitReason, number>> = {
  "no-worker": 0,
  paused: 0,
  busy: 3_000,
  limit: 3_000,
  "not-due": 3_000,
  unreachable: 3_000,
  sent: 10_000,
  next: 10_000,
  record: Number.POSITIVE_INFINITY,
  signal: Number.POSITIVE_INFINITY,
  turn: Number.POSITIVE_INFINITY,
  sleeping: Number.POSITIVE_INFINITY,
};

interface Cause extends Omit<WaitingNews, "kind" | "forMs"> {
  readonly since: number;
  readonly reported: boolean;
}

export interface WaitingTasksDeps extends StateDeps, Pick<Engine, "carriers" | "clock" | "delayed" | "listen" | "waiting"> {}

/** The returned function stops the reports. */
export function watchWaiting(deps: WaitingTasksDeps, tell: (news: WaitingNews) => void): () => void {
  const { clock } = deps;
  let causes = new Map<string, Cause>();
  /** The ids of tasks that are offered to workers. */
  const offered = new Set<string>();
  let isFirst = true;
  let planned: { readonly at: number; readonly cancel: () => void } | undefined;
  let looking = false;
  let changed = false;
  let stopped = false;

  /**
   * Plans a check. When a later check is planned, it is moved forward. When an earlier one is planned, it stays: otherwise a busy server
   * would delay the check again and again.
   */
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
      if (isFirst) for (const id of await offeredNow(deps)) offered.add(id);
      isFirst = false;
      const found = await causesNow(deps, offered);
      if (stopped) return;
      const now = clock.now();
      const before = causes;
      causes = compare(before, found, now, tell);
      for (const [key, cause] of before) {
        if (!cause.reported || found.has(key)) continue;
        const kind = (await waitedInVain(deps, cause.taskId)) ? "ended" : "over";
        if (stopped) return;
        tell(newsOf(cause, kind, now - cause.since));
      }
      if (found.size > 0) lookIn(againMs);
    } catch {
      // The store is closed or cannot be read now. It reports that itself, and the next change causes another check.
    } finally {
      looking = false;
      if (changed) lookIn(lookMs);
    }
  };

  const stopListening = deps.listen({
    task(task) {
      if (task.state === "offered") offered.add(task.id);
      else offered.delete(task.id);
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

/** The causes of lanes with ready tasks (by the oldest task), of delayed tasks, and of tasks that are offered to workers. */
async function causesNow(deps: WaitingTasksDeps, offered: ReadonlySet<string>): Promise<Map<string, Cause>> {
  const now = deps.clock.now();
  const why = deps.waiting();
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
  for await (const queue of lanesAfter(deps)) {
    if (queue.ready.size === 0) continue;
    if (++looked > lanesMax) break;
    const { oldest, ready } = await stateOf(deps, queue);
    if (oldest !== null) await add(oldest, ready);
  }
  const addSome = async (ids: Iterable<string>, waits: (task: TaskRowHead) => boolean) => {
    let checked = 0;
    for (const id of ids) {
      if (checked++ === checkedMax) break;
      await deps.slices.turn(wholeRow);
      const task = await deps.reader.taskHead(id);
      if (task !== undefined && waits(task)) await add(task, 1);
    }
  };
  await addSome(deps.delayed, ({ state, dueAt }) => state === "queued" && dueAt > now);
  if (deps.carriers.size > 0) await addSome(offered, ({ state }) => state === "offered");
  return causes;
}

/** The tasks that were offered before the listener was called with their changes. */
async function offeredNow({ reader }: WaitingTasksDeps): Promise<string[]> {
  const { items } = await reader.taskHeads({ state: "offered", limit: checkedMax });
  return items.map(({ id }) => id);
}

/** Returns whether the task ended without a start. A task that does not exist was pruned, so it had ended. */
async function waitedInVain({ reader }: WaitingTasksDeps, taskId: string): Promise<boolean> {
  const task = await reader.task(taskId);
  return task === undefined || (!isOpen(task.state) && task.startedAt === null);
}

/** Keeps the start time of each cause, and reports the causes that have lasted long enough. */
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
