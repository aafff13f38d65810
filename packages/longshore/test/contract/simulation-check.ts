// What must be true for the stored rows and for memory after every commit.

import { isOpen, type TaskRow } from "../../src/engine/board/task.ts";
import type { Plan, PlanNode } from "../../src/engine/run/plan.ts";
import { hasBegun, type Run } from "../../src/engine/run/run.ts";
import type { DataStore } from "../../src/server/data-store.ts";
import { checkDebounce, isDebounce } from "./simulation-debounce.ts";
import type { Stored } from "./simulation-disk.ts";
import { broken } from "./simulation-model.ts";

export function checkRows(stored: Stored, planOf: (run: Run) => Plan): void {
  const perRun = new Map<string, Map<number, TaskRow>>();
  for (const task of stored.tasks.values()) {
    if (task.runId === null) continue;
    const tasks = perRun.get(task.runId) ?? new Map<number, TaskRow>();
    tasks.set(task.node, task);
    perRun.set(task.runId, tasks);
  }
  for (const run of stored.runs.values()) checkRun(run, planOf(run), perRun.get(run.id) ?? new Map());
  // While messages are being sent, a child may not have been notified yet.
  if (stored.messages.length === 0) checkFamilies(stored);
  checkLimits(stored);
  checkGates(stored);
  checkDebounce(stored);
}

/** The runs that a gate counts are open, and the next run has begun when there was room for it. */
function checkGates({ gates: rows, runs, messages }: Stored): void {
  const gates = rows.filter((row) => !isDebounce(row));
  const under = new Map<string, Run[]>(gates.map(({ name }) => [name, []]));
  for (const run of runs.values())
    if (run.endedAt === null && run.gate !== null) under.set(run.gate, [...(under.get(run.gate) ?? []), run]);
  for (const [name, all] of under) {
    const gate = gates.find((one) => one.name === name);
    const begun = all.filter((run) => run.turn === null && (run.startAt === null || gate?.open.includes(run.id)));
    const waiting = all.length - all.filter((run) => run.turn === null).length;
    const open = new Set(gate?.open);
    if (open.size !== begun.length || begun.some(({ id }) => !open.has(id)))
      throw broken(`the gate ${name} counts ${[...open]}, and these runs are open: ${begun.map(({ id }) => id)}`);
    if ((gate?.waiting ?? 0) !== waiting) throw broken(`the gate ${name} counts ${gate?.waiting} runs that wait, there are ${waiting}`);
    if (gate === undefined) continue;
    if (messages.length === 0 && waiting > 0 && open.size < gate.runs)
      throw broken(`a run waits at the gate ${name}, which has room for it`);
    if (open.size > gate.runs && begun.every(({ retries }) => retries === 0))
      throw broken(`${open.size} runs are open at the gate ${name}, which allows ${gate.runs}`);
  }
}

function checkFamilies(stored: Stored): void {
  for (const run of stored.runs.values()) {
    if (run.parentTaskId === null || run.state !== "running" || run.retries > 0) continue;
    const parent = stored.tasks.get(run.parentTaskId);
    if (parent?.state !== "queued" || parent.attempt !== run.parentAttempt)
      throw broken(
        `run ${run.id} goes on for attempt ${run.parentAttempt} of ${run.parentTaskId}, which is ${parent?.state} with attempt ${parent?.attempt}`,
      );
  }
}

/** A step that waits again for its child after it was done: the run has already continued with later steps. */
function isPassed(task: TaskRow | undefined): boolean {
  return task?.lane === null && task.state === "queued" && task.streamed;
}

/** A step whose task is `cancelling` has ended for its run. */
function isSettled(task: TaskRow | undefined): boolean {
  return task !== undefined && task.state !== "forgotten" && (!isOpen(task.state) || task.state === "cancelling");
}

function checkRun(run: Run, plan: Plan, tasks: Map<number, TaskRow>): void {
  if (run.state !== "running") {
    for (const task of tasks.values())
      if (isOpen(task.state) && task.state !== "cancelling")
        throw broken(`run ${run.id} is ${run.state} and its step ${task.step} is ${task.state}`);
    return;
  }
  if (!hasBegun(run)) {
    if (tasks.size > 0) throw broken(`run ${run.id} has not begun and has tasks`);
    return;
  }
  const settled = plan.nodes.filter((_, at) => isSettled(tasks.get(at))).length;
  if (run.left !== plan.nodes.length - settled)
    throw broken(`run ${run.id} counts ${run.left} steps left of ${plan.nodes.length}, ${settled} have settled`);
  const bad = [...tasks.values()].filter((task) => ["failed", "cancelled", "cancelling"].includes(task.state)).length;
  if (run.failed !== bad) throw broken(`run ${run.id} counts ${run.failed} failures, there are ${bad}`);
  for (const [at, node] of plan.nodes.entries()) {
    if (plan.lazy && node.demanded) checkDemanded(run, node, tasks.get(at), tasks);
    else checkNode(run, node, tasks.get(at), tasks);
  }
}

/** Its upstreams do not record whether it is wanted, but they record that it waits for them. */
function checkDemanded(run: Run, node: PlanNode, task: TaskRow | undefined, tasks: Map<number, TaskRow>): void {
  if (task === undefined || task.state === "forgotten") return;
  const settled = node.after.map((upstream) => isSettled(tasks.get(upstream)));
  const mayStart = node.waitsFor === "any" ? settled.some(Boolean) : settled.every(Boolean);
  if (!mayStart) throw broken(`step ${node.id} of ${run.id} is ${task.state} before its upstreams allow it`);
}

function checkNode(run: Run, node: PlanNode, task: TaskRow | undefined, tasks: Map<number, TaskRow>): void {
  const upstreams = node.after.map((upstream) => tasks.get(upstream)).filter((upstream) => !isPassed(upstream));
  const started = task !== undefined && task.state !== "forgotten";
  const succeeded = upstreams.every((upstream) => upstream?.state === "done");
  const settled = upstreams.every(isSettled);
  const mayStart = node.waitsFor === "done" ? succeeded : settled;
  const mustBeSkipped = node.waitsFor === "done" && upstreams.some((upstream) => isSettled(upstream) && upstream?.state !== "done");
  if (started && task.state !== "skipped" && !mayStart)
    throw broken(`step ${node.id} of ${run.id} is ${task.state} before its upstreams allow it`);
  if (!started && (mayStart || mustBeSkipped)) throw broken(`step ${node.id} of ${run.id} should have been started or skipped`);
  if (mustBeSkipped && task?.state !== "skipped")
    throw broken(`step ${node.id} of ${run.id} is ${task?.state}, but an upstream did not succeed`);
}

function checkLimits(stored: Stored): void {
  const held = new Map<string, number>();
  for (const task of stored.rows.values()) {
    if (!isOpen(task.state) || task.state === "queued") continue;
    for (const limit of task.limits) {
      const count = (held.get(limit.key) ?? 0) + 1;
      held.set(limit.key, count);
      if (limit.held !== undefined && count > limit.held)
        throw broken(`${count} tasks are held under ${limit.key}, at most ${limit.held} may be`);
    }
  }
}

/** Memory may be newer than the disk only in the time at which a hold or an offer ends. */
export function checkMemory(store: DataStore, stored: Stored): void {
  const permits = new Map<string, number>();
  // A permit comes back when the row of its task is written.
  for (const { state, limits } of stored.rows.values()) {
    const held = isOpen(state) && state !== "queued";
    for (const { key } of limits) permits.set(key, (permits.get(key) ?? 0) + (held ? 1 : 0));
  }
  for (const task of stored.tasks.values()) {
    const kept = store.board.tasks.kept(task.id);
    if (kept !== undefined && !sameTask(kept, task))
      throw broken(`memory says of ${task.id} ${JSON.stringify(kept)}, the disk ${JSON.stringify(task)}`);
    if (kept === undefined && isOpen(task.state) && task.state !== "queued")
      throw broken(`memory does not know that ${task.id} is ${task.state}`);
  }
  for (const [key, count] of permits)
    if (store.board.limits.held(key) !== count)
      throw broken(`memory counts ${store.board.limits.held(key)} held under ${key}, the disk ${count}`);
}

/** The exceptions are values that are not in memory or are set again at the start: times of holds and offers, and texts of held tasks. */
export function sameTask(one: TaskRow, other: TaskRow): boolean {
  // An offer is seen as cancelled once its run has ended, before its row is written again.
  const ofOffers = ["offered", "cancelled"].includes(one.state) ? ["claimBy", "claimedAt"] : [];
  const texts = (one.input as string | undefined) === undefined ? ["input", "output"] : [];
  for (const field of Object.keys(one) as (keyof TaskRow)[]) {
    if (one[field] === other[field] || field === "holdUntil" || ofOffers.includes(field) || texts.includes(field)) continue;
    if (typeof one[field] !== "object" || JSON.stringify(one[field]) !== JSON.stringify(other[field])) return false;
  }
  return true;
}
