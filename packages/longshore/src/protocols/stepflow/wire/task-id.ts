// The id of a task on the wire is `<task id>-<grant>`: one hand-out, one id. A report proves with it which hand-out it is about, so a
// worker that was given up can neither finish nor disturb what another has begun since. The reference uses one id for all attempts.

/** Longer ones are not ours. Task ids are made from ids of runs, which other runs may have made theirs from. */
const charsMax = 512;
const shape = /^(.+)-([1-9]\d{0,14})$/s;
/** With the task's own id `<run>.<node>`, by which a worker recognises our servers. */
const ownForm = /^(.+\.\d+)-\d+$/;

export function wireTaskId({ id, grant }: { readonly id: string; readonly grant: number }): string {
  return `${id}-${grant}`;
}

/** Undefined for what is no id of ours. */
export function holdOfWireId(wireId: string): { taskId: string; grant: number } | undefined {
  const parts = wireId.length > charsMax ? null : shape.exec(wireId);
  return parts === null ? undefined : { taskId: parts[1] as string, grant: Number(parts[2]) };
}

/** The part of a wire id that stays the same over the attempts of a task, whosever server it is. */
export function stableTaskId(wireId: string): string {
  return ownForm.exec(wireId)?.[1] ?? wireId;
}
