// The smallest board that keeps every promise, in memory, with one defect that can be switched on. The fault tests are tested with it, before
// their results about the real server can be trusted.
import { randomUUID } from "node:crypto";
import type { Job } from "./api.ts";

export type Defect =
  | "none"
  | "accepts stale completions"
  | "hands out held tasks"
  | "forgets completions"
  | "replaces outputs"
  | "forgets runs"
  | "loses dependents"
  | "ignores cancels"
  | "does not count failures"
  | "honours expired leases"
  | "loses log lines"
  | "repeats log lines"
  | "refuses repeats"
  | "starts dependents early"
  | "skips steps"
  | "starts runs twice";

export interface ModelTask {
  id: string;
  runId: string;
  workflow: string;
  step: string;
  dependsOn: string[];
  state: "waiting" | "queued" | "held" | "done" | "cancelled" | "skipped";
  attempt: number;
  failures: number;
  output: Record<string, string> | null;
  lease: { id: string; ttlMs: number; endsAt: number } | undefined;
}

export interface ModelBoard {
  create(jobs: Job[]): string;
  /** A second start with the same key returns the first run. */
  start(workflow: string, key: string): string | undefined;
  list(): string[];
  cancel(runId: string): boolean;
  state(runId: string): string | undefined;
  tasks(runId: string): ModelTask[];
  claim(ttlMs: number): ModelTask | undefined;
  upstream(task: ModelTask): Record<string, Record<string, string>>;
  /** False when the lease is not the newest of its task, or over. */
  extend(leaseId: string): boolean;
  complete(leaseId: string, output: Record<string, string>): boolean;
  fail(leaseId: string): boolean;
  log(leaseId: string, line: string): boolean;
  lines(runId: string): string[];
}

/** Where the model's state is kept between two lives of its process. */
export interface Journal {
  load(): string | undefined;
  save(state: string): void;
}

/** A defect occurs once in this many opportunities, like a race. */
const DEFECT_EVERY = 4;

export function modelBoard(defect: Defect, journal?: Journal): ModelBoard {
  const kept = JSON.parse(journal?.load() ?? '{"workflows":[],"runs":[],"keys":[],"told":[],"lines":[]}') as {
    workflows: [string, Job[]][];
    runs: [string, ModelTask[]][];
    keys: [string, string][];
    told: string[];
    lines: [string, string[]][];
  };
  const workflows = new Map(kept.workflows);
  const runs = new Map(kept.runs);
  const keys = new Map(kept.keys);
  /** Accepted reports. When one is sent again, it gets the same answer. */
  const told = new Set(kept.told);
  const lines = new Map(kept.lines);
  const byLease = new Map<string, ModelTask>();
  for (const task of [...runs.values()].flat()) if (task.lease) byLease.set(task.lease.id, task);
  let chances = 0;
  const strikes = (name: Defect): boolean => defect === name && ++chances % DEFECT_EVERY === 0;

  const expire = (): void => {
    if (defect === "honours expired leases") return;
    for (const task of [...runs.values()].flat()) {
      const early = task.state === "held" && strikes("hands out held tasks");
      if (task.state !== "held" || !task.lease || (Date.now() < task.lease.endsAt && !early)) continue;
      Object.assign(task, { state: "queued", attempt: task.attempt + 1, lease: undefined });
    }
  };

  /** The task that a lease holds now. A cancelled task keeps its last lease: its worker gets 200, and nothing changes. */
  const heldBy = (leaseId: string): ModelTask | undefined => {
    expire();
    const task = byLease.get(leaseId);
    if (!task?.lease || task.lease.id !== leaseId) return undefined;
    const live = task.state === "held" || (task.state === "cancelled" && Date.now() < task.lease.endsAt);
    return live ? task : undefined;
  };

  const release = (task: ModelTask): void => {
    if (defect === "loses dependents" && task.dependsOn.length === 0) return;
    const isDone = (step: string): boolean => runs.get(task.runId)?.some((one) => one.step === step && one.state === "done") ?? false;
    for (const next of runs.get(task.runId) ?? []) {
      const ready = defect === "starts dependents early" ? next.dependsOn.some(isDone) : next.dependsOn.every(isDone);
      if (next.state === "waiting" && ready) next.state = strikes("skips steps") ? "skipped" : "queued";
    }
  };

  const board: ModelBoard = {
    create(jobs) {
      const id = randomUUID();
      workflows.set(id, jobs);
      return id;
    },
    start(workflow, key) {
      const known = keys.get(key);
      if (known !== undefined) return known;
      const runId = randomUUID();
      keys.set(key, runId);
      const tasks = workflows.get(workflow)?.map((job): ModelTask => {
        const state = job.depends_on.length === 0 ? "queued" : "waiting";
        const fresh = { attempt: 0, failures: 0, output: null, lease: undefined };
        return { id: `${runId}-${job.id}`, runId, workflow, step: job.id, dependsOn: job.depends_on, state, ...fresh };
      });
      if (tasks && !strikes("forgets runs")) runs.set(runId, tasks);
      if (tasks && strikes("starts runs twice")) runs.set(randomUUID(), []);
      return tasks && runId;
    },
    list: () => [...runs.keys()],
    cancel(runId) {
      const tasks = runs.get(runId);
      if (defect !== "ignores cancels") for (const task of tasks ?? []) if (task.state !== "done") task.state = "cancelled";
      return tasks !== undefined;
    },
    state(runId) {
      const tasks = runs.get(runId);
      if (!tasks) return undefined;
      if (tasks.some((task) => task.state === "cancelled")) return "cancelled";
      return tasks.every((task) => task.state === "done" || task.state === "skipped") ? "succeeded" : "running";
    },
    tasks: (runId) => runs.get(runId) ?? [],
    claim(ttlMs) {
      expire();
      const task = [...runs.values()].flat().find((one) => one.state === "queued");
      if (!task) return undefined;
      const lease = { id: randomUUID(), ttlMs, endsAt: Date.now() + ttlMs };
      byLease.set(lease.id, task);
      return Object.assign(task, { state: "held", lease });
    },
    upstream(task) {
      const direct = (runs.get(task.runId) ?? []).filter((one) => task.dependsOn.includes(one.step));
      return Object.fromEntries(direct.map((one) => [one.step, one.output ?? {}]));
    },
    extend(leaseId) {
      const task = heldBy(leaseId);
      if (task?.lease) task.lease.endsAt = Date.now() + task.lease.ttlMs;
      return task !== undefined;
    },
    complete(leaseId, output) {
      if (told.has(`${leaseId} complete`)) return defect !== "refuses repeats";
      const task = heldBy(leaseId) ?? (defect === "accepts stale completions" ? byLease.get(leaseId) : undefined);
      if (!task) return false;
      told.add(`${leaseId} complete`);
      if (task.state === "cancelled" || strikes("forgets completions")) return true;
      Object.assign(task, { state: "done", lease: undefined, output: strikes("replaces outputs") ? { token: "replaced" } : output });
      release(task);
      return true;
    },
    fail(leaseId) {
      if (told.has(`${leaseId} fail`)) return true;
      const task = heldBy(leaseId);
      if (task) told.add(`${leaseId} fail`);
      if (!task || task.state === "cancelled") return task !== undefined;
      const failures = task.failures + (defect === "does not count failures" ? 0 : 1);
      Object.assign(task, { state: "queued", attempt: task.attempt + 1, failures, lease: undefined });
      return true;
    },
    log(leaseId, line) {
      const runId = byLease.get(leaseId)?.runId;
      if (runId === undefined) return false;
      const stored = lines.get(runId) ?? [];
      if (strikes("loses log lines") || (stored.includes(line) && defect !== "repeats log lines")) return true;
      lines.set(runId, strikes("repeats log lines") ? [...stored, line, line] : [...stored, line]);
      return true;
    },
    lines: (runId) => lines.get(runId) ?? [],
  };
  if (!journal) return board;
  const state = () => ({ workflows: [...workflows], runs: [...runs], keys: [...keys], told: [...told], lines: [...lines] });
  return journaled(board, () => journal.save(JSON.stringify(state())));
}

/** Saves after every call, before its response is sent: slow, but certainly correct. */
function journaled(board: ModelBoard, save: () => void): ModelBoard {
  return new Proxy(board, {
    get: (target, name) => {
      const method = Reflect.get(target, name) as (...given: unknown[]) => unknown;
      return (...given: unknown[]) => {
        const answer = method(...given);
        save();
        return answer;
      };
    },
  });
}
