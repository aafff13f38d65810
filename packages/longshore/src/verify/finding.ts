// A violated rule, with the rows or recorded lines that prove it.

export const rules = {
  "run-state": "A run has ended exactly when it has an end time, and its definition is stored.",
  "run-can-move": "A running run has an open task; its count of open steps is right.",
  "run-is-quiet": "No task of an ended run is open, except one that its worker must give up.",
  "join-can-move": "If all open steps of a running run wait for other steps of the same run, a decision about the run is pending.",
  "child-can-move": "A step that waits for a child run has a child run that is open, or a message about it waits to be delivered.",
  "journal-whole":
    "The commands of a durable function are numbered without a gap, in the order in which it gave them; each has at most one result, and results have numbers of their own.",
  "task-state":
    "A task has ended exactly when it has an end time; a task of a worker that a completion has ended is done and has its output.",
  "one-completion": "In one life of a task at most one completion is accepted, and no attempt follows it.",
  "fences-rise": "Attempts and grants only rise, and no closed grant is newer than the task's own.",
  "holds-apart": "No hold of a task begins before the end of the previous hold.",
  "parts-whole": "The parts of a task are numbered without a gap, and none was accepted from a grant that did not exist.",
  "schedule-can-tick": "A schedule can be read, knows its next time, and each tick that was started has its run.",
  "signals-whole": "Every signal of a run is stored with its value or was taken by a step, and the counts of the run are right.",
  "limits-hold":
    "A start limit gives its places to open runs alone, each such run has its place, the runs that wait are counted, and debounced starts have a run that waits.",
  "blob-whole": "Every blob has its content, of the length that was acknowledged.",
  "recorded-run": "Every run whose start was acknowledged is stored, and ended as reported to its client.",
  "recorded-completion": "Every completion that was acknowledged to a worker is stored, with the hold that reported it.",
  "recorded-failure": "Every failure that was acknowledged to a worker is stored, as the end of the attempt that reported it.",
  "recorded-holds": "Every hold that a worker was given is stored, and no two workers were given the same hold.",
} as const;

export type RuleName = keyof typeof rules;

export interface Finding {
  readonly rule: RuleName;
  /** The id of the run, task or blob. */
  readonly subject: string;
  readonly message: string;
  /** The rows, or the recorded lines with file and number. */
  readonly evidence: readonly string[];
}

export function finding(rule: RuleName, subject: string, message: string, ...evidence: readonly unknown[]): Finding {
  return { rule, subject, message, evidence: evidence.map((each) => (typeof each === "string" ? each : JSON.stringify(each))) };
}
