// Finds the row that a recorded piece of work belongs to. A worker records the ids of its protocol. Ids made by this server contain the
// task's id; for other ids, the run, the step and the attempt are enough.

import { idOfUuid } from "../core/ids.ts";
import { type Address, numbered, type ReadAddress, type RecordedWork } from "../core/recording.ts";
import type { AttemptHistory, TaskHistory } from "../engine/run/history.ts";

/** Every address that the ids may have, the most exact first. */
export function addressesOf(work: RecordedWork, readers: readonly ReadAddress[]): Address[] {
  return [ownForm, ...readers].flatMap((read) => read(work) ?? []);
}

/** The form of this server's own leases, which most protocols use: <task>-<grant>. */
function ownForm({ grantId }: RecordedWork): Address | undefined {
  const found = numbered(grantId.replace(/\/\d+$/, ""), "-");
  return found === undefined ? undefined : { taskId: found.before, grant: found.number };
}

/** The run id in this server's spelling. */
export function runIdOf({ runId }: RecordedWork): string {
  return idOfUuid(runId) ?? runId;
}

/** The attempt of `task` by the address or, without one, by the recorded number; undefined when it is not stored. */
export function attemptAt(task: TaskHistory, address: Address | undefined, work: RecordedWork): AttemptHistory | undefined {
  const { grant, attempt } = address ?? { attempt: work.attempt - 1 };
  return task.attempts.find((one) => (grant === undefined ? one.attempt === attempt : one.grant === grant));
}
