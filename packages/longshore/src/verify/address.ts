// Which row a recorded piece of work belongs to. A worker records the ids of its protocol; those that this server makes have the task's id
// in them, and for the rest the run, the step and the attempt are enough.

import { idOfUuid } from "../core/ids.ts";
import type { RecordedWork } from "../core/recording.ts";
import type { AttemptHistory, TaskHistory } from "../engine/run/history.ts";

export interface Address {
  readonly taskId?: string;
  readonly grant?: number;
  /** From 0. */
  readonly attempt?: number;
}

/** Every reading that its ids allow, the most exact first. */
export function addressesOf({ taskId, grantId }: RecordedWork): Address[] {
  const found: Address[] = [];
  // workflow-graph, Stepflow and workers in the server's process: <task>-<grant>.
  const dash = numbered(grantId.replace(/\/\d+$/, ""), "-");
  if (dash !== undefined) found.push({ taskId: dash.before, grant: dash.number });
  // Conductor: <task>.<attempt>.
  const dot = numbered(taskId, ".");
  if (dot !== undefined) found.push({ taskId: dot.before, attempt: dot.number });
  return found;
}

/** The run as this server spells its id. */
export function runIdOf({ runId }: RecordedWork): string {
  return idOfUuid(runId) ?? runId;
}

/** The attempt of `task` that the address, or else the recorded number, means; undefined when the rows do not have it. */
export function attemptAt(task: TaskHistory, address: Address | undefined, work: RecordedWork): AttemptHistory | undefined {
  const { grant, attempt } = address ?? { attempt: work.attempt - 1 };
  return task.attempts.find((one) => (grant === undefined ? one.attempt === attempt : one.grant === grant));
}

function numbered(text: string, separator: string): { before: string; number: number } | undefined {
  const at = text.lastIndexOf(separator);
  const digits = text.slice(at + 1);
  return at > 0 && /^\d{1,15}$/.test(digits) ? { before: text.slice(0, at), number: Number(digits) } : undefined;
}
