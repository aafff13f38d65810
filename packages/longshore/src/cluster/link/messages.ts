// The messages of the link, version 1: arrays whose first item is the kind. Ids are numbers that the node counts; they stay the same when
// a call is sent again, so that the key of a call needs no field of its own.
//
// A cluster is updated node by node, so nodes of two neighbouring versions speak to each other:
// - The hello lists all versions that a build speaks: its own and the previous one. The owner chooses the highest that both have. If there is
//   none, the owner refuses the link, and the refusal names the versions of both.
// - Within a version, fields and items at the end of a message may be added, and a node that does not know one ignores it. None is renamed, removed
//   or becomes required, in the hello, in messages, and in what calls carry (`CarriedRequest` and its like).
// - Any other change is a new version: a new kind or call is sent only on a link of a version that has it.
// link-versions.test.ts plays the other side of each version with handwritten messages.

/** The versions of the messages that this build speaks, the newest last. Two neighbouring releases share at least one. */
export const spokenVersions: readonly number[] = [1];

/** The last item of a call that is sent again. */
export const repeatMark = 1;

/** From the node: `[call, id, name, args]`, or with the mark `[call, id, name, args, 1]`, `[abort, id]`, `[open, id, name, args]`, `[close, id]`, `[prove, proof]`. */
export const kinds = {
  call: 1,
  /** From the owner: `[answer, id, result]`, `[failure, id, error]`. */
  answer: 2,
  failure: 3,
  abort: 4,
  open: 5,
  close: 6,
  /** From the owner: `[opened, id]`, `[event, id, event]`, `[ended, id, error]`. */
  opened: 7,
  event: 8,
  ended: 9,
  prove: 10,
  /** From the owner: `[proved, proof, refusal]`. */
  proved: 11,
} as const;

/** A message without a value. */
export function signOf(kind: number, id: number): string {
  return `[${kind},${id}]`;
}

/**
 * A message with a value, which is left out when it is undefined. Throws the error of JSON.stringify for a value that JSON cannot carry.
 */
export function messageOf(kind: number, id: number, value: unknown): string {
  return JSON.stringify(value === undefined ? [kind, id] : [kind, id, value]);
}

/** A message with a name and a value. */
export function requestOf(kind: number, id: number, name: string, args: unknown): string {
  return JSON.stringify(args === undefined ? [kind, id, name] : [kind, id, name, args]);
}
