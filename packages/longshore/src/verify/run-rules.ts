// The rules for one run with all its tasks: it has ended, or something can still happen to it.

import { isOpen } from "../engine/board/task.ts";
import type { RunHistory, TaskHistory } from "../engine/run/history.ts";
import { isRunOpen, type Message } from "../engine/run/run.ts";
import { type Finding, finding } from "./finding.ts";
import { journalWhole } from "./journal-rules.ts";

export function checkRun(run: RunHistory): Finding[] {
  return [...runState(run), ...canMove(run), ...joinCanMove(run), ...isQuiet(run), ...childCanMove(run), ...journalWhole(run)];
}

function runState(run: RunHistory): Finding[] {
  const { id, state, endedAt, hasDefinition } = run;
  const found: Finding[] = [];
  if (isRunOpen(state) !== (endedAt === null)) {
    found.push(finding("run-state", id, `its state is ${state} and its end time is ${endedAt}`, rowOf(run)));
  }
  if (!hasDefinition) found.push(finding("run-state", id, "its definition is not stored", rowOf(run)));
  return found;
}

/**
 * A paused run stores events for later, so its count may lag behind its tasks. A task in the state `cancelling` has ended for its run. A
 * run that has not begun has no tasks: it begins after its delay, or in its turn.
 */
function canMove(run: RunHistory): Finding[] {
  const { id, state, active, tasks } = run;
  if (state !== "running") return [];
  if (run.startAt != null || run.turn != null) {
    const one = tasks[0];
    return one === undefined ? [] : [finding("run-can-move", id, `it has not begun and has the task ${one.id}`, rowOf(run))];
  }
  // Work that a decision left for later counts as a step too.
  const forgotten = forgottenBy(run);
  const open = tasks.filter((task) => isOpen(task.state) && task.state !== "cancelling" && !forgotten(task)).length + (run.left ?? 0);
  if (open === 0) return [finding("run-can-move", id, "it is running and no task of it is open", rowOf(run))];
  return open === active ? [] : [finding("run-can-move", id, `it counts ${active} open steps and has ${open} open tasks`, rowOf(run))];
}

/** Whether a message makes the last attempt of a task void. The row of the task is written later, in a slice. */
function forgottenBy({ id, messages }: RunHistory): (task: TaskHistory) => boolean {
  const steps = messages.flatMap((message) => (message.kind === "forget-tasks" ? message.steps : []));
  const lives = new Set(steps.map(([node, attempt]) => `${id}.${node} ${attempt}`));
  return (task) => lives.has(`${task.id} ${task.attempts.at(-1)?.attempt}`);
}

/** When only joins are open, nothing ends the steps for which they wait, except a manual report. */
function joinCanMove(run: RunHistory): Finding[] {
  const open = run.tasks.filter(({ state }) => isOpen(state) && state !== "cancelling");
  const moves = run.state !== "running" || (run.left ?? 0) > 0 || run.messages.length > 0 || open.length === 0;
  if (moves || open.some(({ joins }) => joins !== true)) return [];
  const names = open.map(({ step }) => step).join(", ");
  return [finding("join-can-move", run.id, `its ${names} waits for other steps, and none of them is open`, ...open.map(brief))];
}

function isQuiet(run: RunHistory): Finding[] {
  // The tasks of a large run are cancelled in slices after its end.
  if (isRunOpen(run.state) || run.messages.some(({ kind }) => kind === "end-tasks")) return [];
  return run.tasks
    .filter(({ state }) => isOpen(state) && state !== "cancelling")
    .map((task) => finding("run-is-quiet", run.id, `it has ended as ${run.state} and its task ${task.id} is ${task.state}`, brief(task)));
}

function childCanMove(run: RunHistory): Finding[] {
  if (!isRunOpen(run.state)) return [];
  return run.tasks.flatMap((task) => {
    if (!task.startsRun || !isOpen(task.state)) return [];
    const attempt = task.attempts.at(-1)?.attempt;
    const child = run.children.find((one) => one.taskId === task.id && one.attempt === attempt);
    const waits = run.messages.some((message) => taskOf(message) === task.id);
    if (waits || (child !== undefined && isRunOpen(child.state))) return [];
    const what = child === undefined ? "there is none" : `${child.runId} has ended as ${child.state}`;
    return [finding("child-can-move", run.id, `step ${task.step} waits for a child run and ${what}`, brief(task), child ?? "no child run")];
  });
}

function taskOf(message: Message): string | null {
  if ("taskId" in message) return message.taskId;
  return "parentTaskId" in message ? message.parentTaskId : null;
}

function rowOf({ tasks, children, messages, ...row }: RunHistory) {
  return { ...row, tasks: tasks.length, children: children.length, messages };
}

function brief({ id, state, attempts }: TaskHistory) {
  return { id, state, current: attempts.at(-1) };
}
