// Which row a recorded piece of work belongs to. A worker records the ids of its protocol; those that this server makes have the task's id
// in them, and for the rest the run, the step and the attempt are enough.

import { idOfUuid } from "../core/ids.ts";
import { type Address, numbered, type ReadAddress, type RecordedWork } from "../core/recording.ts";
import type { AttemptHistory, TaskHistory } from "../engine/run/history.ts";

/** Every reading that its ids allow, the most exact first. */
export function addressesOf(work: RecordedWork, readers: readonly ReadAddress[]): Address[] {
  return [ownForm, ...readers].flatMap((read) => read(work) ?? []);
}

/** The form of this server's own leases, which most protocols use: <task>-<grant>. */
function ownForm({ grantId }: RecordedWork): Address | undefined {
  const found = numbered(grantId.replace(/\/\d+$/, ""), "-");
  return found === undefined ? undefined : { taskId: found.before, grant: found.number };
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
