// Log lines of a job: README.md, "Logs". The lease is checked first, so that a worker writes only into logs of its own jobs.

import type { TaskRow } from "../../../engine/board/task.ts";
import { isOpen } from "../../../engine/board/task.ts";
import type { HttpReply, HttpRequest } from "../../../net/http/http.ts";
import type { LogChunk } from "../wire/shapes.ts";
import { expectJson, parseLogs } from "./parse.ts";
import { misshapen } from "./refuse.ts";
import { parseLeaseId } from "./render.ts";
import { conflict, ok } from "./replies.ts";
import type { WorkflowGraphDeps } from "./routes.ts";
import type { RunLookup } from "./run-lookup.ts";

/** How long after the end of its lease a worker may still send buffered lines. */
export const lateLogMs = 60_000;

export async function pushLogs(
  deps: Pick<WorkflowGraphDeps, "board" | "runs" | "logs" | "clock">,
  finder: RunLookup,
  request: HttpRequest,
): Promise<HttpReply> {
  expectJson(request.headers);
  const chunks = parseLogs(request.text);
  const lease = parseLeaseId(request.params.lease as string);
  const task = lease === undefined ? undefined : await deps.board.task(lease.taskId);
  const attempt = lease === undefined || task === undefined ? undefined : attemptOf(task, lease.grant, deps.clock.now());
  if (lease === undefined || task === undefined || attempt === undefined) return conflict;
  await checkIds(request.text, chunks, task, deps, finder);
  if (chunks.length === 0) return ok;
  await deps.logs.append({
    taskId: task.id,
    runId: task.runId,
    attempt,
    grant: lease.grant,
    chunks: chunks.map(({ stream, sequence, data, timestamp_ms }) => ({ stream, sequence, data, at: timestamp_ms })),
  });
  return ok;
}

/** The attempt of a lease while its log is open; undefined for an unknown lease, or one that ended too long ago. */
export function attemptOf(task: TaskRow, grant: number, now: number): number | undefined {
  // Only odd numbers are handed out: the counter also rises when a task is queued again.
  if (grant % 2 === 0 || grant > task.grant) return undefined;
  if (grant === task.grant && isOpen(task.state)) return task.attempt;
  if (grant !== task.closedGrant) return undefined;
  const endedAt = isOpen(task.state) ? task.queuedAt : (task.endedAt ?? now);
  if (now - endedAt > lateLogMs) return undefined;
  const followed = isOpen(task.state) && task.closedBy !== "defer";
  return followed ? task.attempt - 1 : task.attempt;
}

/** A chunk names its job. This must be the job of the lease, under any id of this run. */
async function checkIds(
  text: string,
  chunks: readonly LogChunk[],
  task: TaskRow,
  deps: Pick<WorkflowGraphDeps, "runs">,
  finder: RunLookup,
): Promise<void> {
  if (chunks.length === 0) return;
  const run = task.runId === null ? undefined : await finder.claimed(task.runId);
  const workflowId = run === undefined ? task.id : (JSON.parse(run.ids.workflowId) as string);
  const stored = task.runId === null ? undefined : await deps.runs.run(task.runId);
  for (let at = 0; at < chunks.length; at++) {
    const { workflow_id, job_id } = chunks[at] as LogChunk;
    if (job_id !== task.step)
      throw misshapen(text, ["chunks", at, "job_id"], `this lease is for job ${JSON.stringify(task.step)}, not ${JSON.stringify(job_id)}`);
    if (workflow_id === workflowId || workflow_id === task.runId || workflow_id === stored?.workflow) continue;
    throw misshapen(
      text,
      ["chunks", at, "workflow_id"],
      `this lease is for workflow ${JSON.stringify(workflowId)}, not ${JSON.stringify(workflow_id)}`,
    );
  }
}
