import type { Run } from "./run.ts";
import type { NewRun } from "./store.ts";

/** A run that has not started: the decider starts its first steps. */
export function newRun(wanted: NewRun, now: number, timeoutMs: number | null): Run {
  return {
    id: wanted.id,
    workflow: wanted.workflow,
    definitionId: wanted.definitionId,
    state: "running",
    input: wanted.input,
    output: null,
    error: null,
    createdAt: now,
    endedAt: null,
    endBy: timeoutMs === null || wanted.startAt != null ? null : now + timeoutMs,
    startAt: wanted.startAt ?? null,
    gate: null,
    turn: null,
    active: 0,
    left: 0,
    failed: 0,
    recorded: 0,
    retries: 0,
    countedFrom: now,
    priority: wanted.priority ?? 0,
    variables: wanted.variables ?? null,
    settings: wanted.settings ?? null,
    backlog: null,
    skips: null,
    signals: null,
    alias: wanted.alias ?? null,
    parentTaskId: wanted.parentTaskId ?? null,
    parentAttempt: wanted.parentAttempt ?? 0,
    rootId: wanted.rootId ?? null,
  };
}
