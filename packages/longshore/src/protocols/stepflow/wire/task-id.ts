// The id of a task on the wire is `<task id>-<grant>`, so each hand-out has its own id. A worker that lost its lease can neither finish nor
// disturb the work that another worker has begun since then. The reference uses one id for all attempts.

/** A longer id is not ours. Task ids contain the run id, and the id of a child run contains that of its parent. */
const charsMax = 512;
const shape = /^(.+)-([1-9]\d{0,14})$/s;
/** The form of our servers, by which a worker recognises them: the task id is `<run>.<node>`, or without a run 26 characters. */
const ownForm = /^(.+\.\d+|[\dA-HJKMNP-TV-Z]{26})-\d+$/;

export function wireTaskId({ id, grant }: { readonly id: string; readonly grant: number }): string {
  return `${id}-${grant}`;
}

/** Undefined when the id does not have our form. */
export function holdOfWireId(wireId: string): { taskId: string; grant: number } | undefined {
  const found = wireId.length > charsMax ? null : shape.exec(wireId);
  return found === null ? undefined : { taskId: found[1] as string, grant: Number(found[2]) };
}

/** The part of a wire id that stays the same over all attempts of a task. For other servers that is the whole id. */
export function stableTaskId(wireId: string): string {
  return ownForm.exec(wireId)?.[1] ?? wireId;
}
