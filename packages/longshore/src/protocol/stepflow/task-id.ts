// The ids of tasks on the wire. The reference uses one id for all attempts of a task. A server of ours names each hand-out, as
// `<task>-<grant>` with the task's own id `<run>.<node>`, so that a stale report is recognised; what stays the same is in front.

const ownForm = /^(.+\.\d+)-\d+$/;

/** The part of a wire id that stays the same over the attempts of a task. */
export function stableTaskId(wireId: string): string {
  return ownForm.exec(wireId)?.[1] ?? wireId;
}
