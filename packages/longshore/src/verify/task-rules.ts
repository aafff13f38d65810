// The rules for one task and its attempts.

import { isOpen } from "../engine/board/task.ts";
import type { AttemptHistory, TaskHistory } from "../engine/run/history.ts";
import { type Finding, finding } from "./finding.ts";

export function checkTask(task: TaskHistory): Finding[] {
  return [...taskState(task), ...oneCompletion(task), ...fencesRise(task), ...holdsApart(task), ...partsWhole(task)];
}

function taskState(task: TaskHistory): Finding[] {
  const { id, state, endedAt, onLane, hasOutput } = task;
  if (isOpen(state) !== (endedAt === null)) {
    return [finding("task-state", id, `its state is ${state} and its end time is ${endedAt}`, task)];
  }
  if (state === "done" && onLane && !hasOutput) return [finding("task-state", id, "it is done and has no output", task)];
  if (state === "failed" && task.attempts.at(-1)?.closedBy === "complete" && isWork(task))
    return [finding("task-state", id, "it has failed, and the report that ended it is a completion", task)];
  return [];
}

/**
 * Whether a completion can only make the task done. The task of a durable function completes each turn and can fail by what its turn says.
 * Servers of earlier versions do not say which tasks these are.
 */
function isWork({ onLane, command }: TaskHistory): boolean {
  return onLane && command !== undefined && command !== "function";
}

/** Attempts before `firstAttempt` belong to an earlier life of the run, which may have its own completion. */
function oneCompletion({ id, firstAttempt, attempts }: TaskHistory): Finding[] {
  const life = attempts.filter(({ attempt }) => attempt >= firstAttempt);
  const at = life.findIndex(isAccepted);
  if (at === -1 || at === life.length - 1) return [];
  const again = life.slice(at + 1).some(isAccepted);
  const message = again ? "more than one completion of it was accepted" : "it was tried again after its completion was accepted";
  return [finding("one-completion", id, message, ...life.slice(at))];
}

/** A completion that arrived after a cancellation leaves the task cancelled, so another attempt may follow it. */
function isAccepted({ closedBy, state }: AttemptHistory): boolean {
  return closedBy === "complete" && state === "done";
}

function fencesRise({ id, grant, closedGrant, attempts }: TaskHistory): Finding[] {
  const found: Finding[] = [];
  for (const [before, after] of pairs(attempts)) {
    const rises = after.attempt > before.attempt && after.grant >= before.grant;
    if (!rises) found.push(finding("fences-rise", id, "a later attempt does not have a later number and grant", before, after));
  }
  const newest = Math.max(closedGrant, ...attempts.map((attempt) => attempt.grant));
  if (newest > grant)
    found.push(finding("fences-rise", id, `it has the grant ${grant}, but the newer grant ${newest} was handed out`, ...attempts));
  return found;
}

function holdsApart({ id, attempts }: TaskHistory): Finding[] {
  return pairs(attempts).flatMap(([before, after]) => {
    if (before.endedAt === null) return [finding("holds-apart", id, "an attempt that is not over was followed by another", before, after)];
    if (after.claimedAt === null || after.claimedAt >= before.endedAt) return [];
    const message = `a hold began ${before.endedAt - after.claimedAt} ms before the end of the previous hold`;
    return [finding("holds-apart", id, message, before, after)];
  });
}

function partsWhole({ id, grant, parts }: TaskHistory): Finding[] {
  return parts.flatMap((stretch) => {
    const { count, first, last, grantMax } = stretch;
    if (last - first + 1 !== count)
      return [finding("parts-whole", id, `its parts ${first} to ${last} are stored in ${count} rows`, stretch)];
    return grantMax > grant ? [finding("parts-whole", id, `a part names grant ${grantMax}, the newest is ${grant}`, stretch)] : [];
  });
}

function pairs<T>(list: readonly T[]): (readonly [T, T])[] {
  return list.slice(1).map((after, at) => [list[at] as T, after] as const);
}
