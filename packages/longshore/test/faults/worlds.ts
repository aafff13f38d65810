// A small model that keeps every promise. It converts a list of moves to the history that its processes would have written.
//
// Each run has two steps, the second after the first. Workers claim, beat and report, also for leases that they have lost; answers come late
// or never. Time passes only by moves, so the same moves always give the same history.
import { type Pages, TERM_MS, tokenOf, writePages } from "./pages.ts";
import type { FinalState } from "./story.ts";

export type Move =
  | { do: "start" }
  | { do: "claim"; worker: number; delayMs: number; lost: boolean }
  | { do: "beat"; lease: number }
  | { do: "report"; lease: number; verb: "complete" | "fail"; lost: boolean }
  | { do: "cancel"; run: number }
  | { do: "wait"; ms: number };

const STEPS = ["first", "second"] as const;
const WORKERS = 3;
/** Enough for every open task to lose a lease whose answer was lost and to be done by the next one. */
const LAST_ROUNDS = 4;

interface Task {
  runId: string;
  step: (typeof STEPS)[number];
  state: "waiting" | "queued" | "held" | "done" | "cancelled";
  attempt: number;
  failures: number;
  leaseId: string | undefined;
  endsAt: number;
  token: string | null;
}

interface KnownLease {
  id: string;
  who: string;
  task: Task;
  knownAt: number;
  reported: boolean;
}

export function playWorld(moves: readonly Move[]): { pages: Pages; final: FinalState } {
  const pages = writePages();
  const tasks: Task[] = [];
  const runs: { id: string; cancelled: boolean }[] = [];
  const known: KnownLease[] = [];
  let now = 1000;
  let leases = 0;
  pages.at(0, "client", { kind: "workflow-created", workflow: "w", steps: { first: [], second: ["first"] } });

  /** Every request is sent a millisecond before the server sees it and answered a millisecond after. */
  const pass = (ms: number): void => {
    now += ms;
    for (const task of tasks) {
      if (task.leaseId === undefined || now < task.endsAt) continue;
      task.leaseId = undefined;
      // A cancelled task is not handed out again, but its hold ends like any other.
      if (task.state === "held") Object.assign(task, { state: "queued", attempt: task.attempt + 1 });
    }
  };

  const start = (): void => {
    const runId = `run-${runs.length}`;
    pages.start(now, runId);
    runs.push({ id: runId, cancelled: false });
    for (const step of STEPS) {
      const state = step === "first" ? "queued" : "waiting";
      tasks.push({ runId, step, state, attempt: 0, failures: 0, leaseId: undefined, endsAt: 0, token: null });
    }
  };

  const claim = (worker: number, delayMs: number, lost: boolean): void => {
    const task = tasks.find((one) => one.state === "queued");
    if (!task) return;
    const leaseId = `lease-${leases++}`;
    const who = `worker-${worker}`;
    Object.assign(task, { state: "held", leaseId, endsAt: now + TERM_MS });
    if (lost) return;
    const upstream = task.step === "second" ? { first: tokenFor(task.runId) } : {};
    pages.claim(now, who, { leaseId, runId: task.runId, step: task.step, attempt: task.attempt, upstream }, delayMs);
    known.push({ id: leaseId, who, task, knownAt: now + delayMs, reported: false });
  };

  const tokenFor = (runId: string): string | undefined =>
    tasks.find((task) => task.runId === runId && task.step === "first")?.token ?? undefined;

  const pick = (index: number): KnownLease | undefined => {
    const usable = known.filter((lease) => lease.knownAt < now && !lease.reported);
    return usable[index % usable.length];
  };

  const beat = (lease: KnownLease | undefined): void => {
    if (!lease) return;
    const live = lease.task.leaseId === lease.id;
    if (live) lease.task.endsAt = now + TERM_MS;
    pages.heartbeat(now, lease.who, lease.id, live ? 200 : 409);
  };

  const report = (lease: KnownLease | undefined, verb: "complete" | "fail", lost: boolean): void => {
    if (!lease) return;
    const { task } = lease;
    const live = task.leaseId === lease.id;
    lease.reported = true;
    if (lost) pages.at(now - 1, lease.who, { kind: "report-sent", leaseId: lease.id, verb, token: tokenOf(lease.id) });
    else pages.report(now, lease.who, lease.id, verb, live ? 200 : 409);
    if (!live) return;
    task.leaseId = undefined;
    // A cancelled task stays cancelled: its last report is acknowledged and changes nothing.
    if (task.state !== "held") return;
    if (verb === "fail") {
      Object.assign(task, { state: "queued", attempt: task.attempt + 1, failures: task.failures + 1 });
      return;
    }
    Object.assign(task, { state: "done", token: tokenOf(lease.id) });
    const dependent = tasks.find((one) => one.runId === task.runId && one.state === "waiting");
    if (dependent) dependent.state = "queued";
  };

  const cancel = (index: number): void => {
    const open = runs.filter((run) => !run.cancelled && tasks.some((task) => task.runId === run.id && task.state !== "done"));
    const run = open[index % open.length];
    if (!run) return;
    pages.cancel(now, run.id);
    run.cancelled = true;
    for (const task of tasks) if (task.runId === run.id && task.state !== "done") task.state = "cancelled";
  };

  const play = (move: Move): void => {
    if (move.do === "start") start();
    else if (move.do === "claim") claim(move.worker % WORKERS, move.delayMs, move.lost);
    else if (move.do === "beat") beat(pick(move.lease));
    else if (move.do === "report") report(pick(move.lease), move.verb, move.lost);
    else if (move.do === "cancel") cancel(move.run);
    else pass(move.ms);
    pass(5);
  };

  for (const move of moves) play(move);
  for (let round = 0; round < LAST_ROUNDS; round++) {
    pass(TERM_MS);
    while (tasks.some((task) => task.state === "queued")) {
      claim(0, 1, false);
      pass(5);
      report(known.at(-1), "complete", false);
      pass(5);
    }
  }
  return { pages, final: finalOf(runs, tasks) };
}

function finalOf(runs: readonly { id: string; cancelled: boolean }[], tasks: readonly Task[]): FinalState {
  return {
    runs: runs.map(({ id, cancelled }) => ({ id, state: cancelled ? "cancelled" : "succeeded", ended: true })),
    tasks: tasks.map(({ runId, step, state, failures, token }) => {
      const ended = state === "done" || state === "cancelled";
      return { id: `${runId}-${step}`, runId, step, state, ended, completed: state === "done", token, failures };
    }),
  };
}
