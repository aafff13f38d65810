// Notices tasks that wait and says why, once for each cause, and again when that is over. For a person at a terminal: nothing here
// decides anything. An idle server pays nothing for it: it looks only after a task has changed, and while something is queued.

import type { Lane, Task } from "../board/task.ts";
import type { Waiting, WaitReason } from "../board/why.ts";
import type { Engine } from "./engine.ts";

export interface WaitingNews {
  readonly kind: "waiting" | "over";
  readonly reason: WaitReason;
  /** Why, such as "no live worker has the label gpu". */
  readonly text: string;
  /** How many tasks wait for this cause, as far as was looked. */
  readonly tasks: number;
  /** One of them. */
  readonly step: string;
  readonly runId: string | null;
  readonly lane: string;
  readonly labels: readonly string[];
  /** How long it has been so. */
  readonly forMs: number;
}

/** Tasks looked at, newest first. Causes are few: more tasks would tell the same. */
const tasksMax = 200;
/** Between two looks, however much happens. */
const lookMs = 250;
/** Between two looks while something is queued and nothing happens: a worker may have gone. */
const againMs = 2_000;
/** How long a cause must last to be worth a line. That nobody could take a task is told at once; the others are often over in a moment. */
const patienceMs: Readonly<Record<WaitReason, number>> = {
  "no-worker": 0,
  busy: 3_000,
  limit: 3_000,
  "not-due": 3_000,
  next: 10_000,
  record: Number.POSITIVE_INFINITY,
};

interface Cause extends Omit<WaitingNews, "kind" | "forMs"> {
  readonly since: number;
  readonly told: boolean;
}

/** Ends with the function that is returned. */
export function watchWaiting(
  engine: Pick<Engine, "clock" | "listen" | "reader" | "waiting">,
  tell: (news: WaitingNews) => void,
): () => void {
  const { clock, reader } = engine;
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
      const { items } = await reader.tasks({ state: "queued", limit: tasksMax });
      if (stopped) return;
      causes = compare(causes, group(items, engine.waiting(), clock.now()), clock.now(), tell);
      if (items.length > 0) lookIn(againMs);
    } catch {
      // The store is closed or cannot be read now; it says so itself, and the next change brings another look.
    } finally {
      looking = false;
      if (changed) lookIn(lookMs);
    }
  };

  const stopListening = engine.listen({
    task(task) {
      if (task.state !== "queued" && causes.size === 0) return;
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

function group(tasks: readonly Task[], why: (task: Task) => Waiting | null, now: number): Map<string, Cause> {
  const causes = new Map<string, Cause>();
  for (const task of tasks) {
    const waiting = why(task);
    if (waiting === null || task.lane === null) continue;
    const key = [waiting.reason, waiting.key ?? "", laneKey(task.lane)].join(" ");
    const known = causes.get(key);
    const { step, runId, lane } = task;
    const { reason, text } = waiting;
    const fresh = { reason, text, tasks: 0, step, runId, lane: lane.name, labels: lane.labels, since: now, told: false };
    causes.set(key, { ...(known ?? fresh), tasks: (known?.tasks ?? 0) + 1 });
  }
  return causes;
}

/** Keeps since when each cause lasts, and tells of those that have lasted long enough and of those that are over. */
function compare(
  before: Map<string, Cause>,
  found: Map<string, Cause>,
  now: number,
  tell: (news: WaitingNews) => void,
): Map<string, Cause> {
  const after = new Map<string, Cause>();
  for (const [key, cause] of found) {
    const { since = now, told = false } = before.get(key) ?? {};
    const due = !told && now - since >= patienceMs[cause.reason];
    if (due) tell(newsOf(cause, "waiting", now - since));
    after.set(key, { ...cause, since, told: told || due });
  }
  for (const [key, cause] of before) if (cause.told && !found.has(key)) tell(newsOf(cause, "over", now - cause.since));
  return after;
}

function newsOf({ since: _, told: __, ...cause }: Cause, kind: WaitingNews["kind"], forMs: number): WaitingNews {
  return { kind, ...cause, forMs };
}

function laneKey(lane: Lane): string {
  return JSON.stringify([lane.name, lane.labels]);
}
