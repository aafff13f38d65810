// Where our responses differ from the real server's on purpose, in the chapters of its services. Each reason is also an entry of the protocol's
// README, under "Differences".
import { type Accepted, anyOf, fields, isError, steps } from "../../../src/differential/accepted.ts";

export const serviceDifferences: readonly Accepted[] = [
  {
    reason: "A mistake of the caller is refused with 400, 404, 409 or 415 where the real server returns 500.",
    when: ({ theirs, our }) => theirs === 500 && isError(our) && our < 500,
  },
  {
    reason:
      "A file belongs to a run that exists. An upload in parts is refused with 404; the real server's own storage refuses it with 500.",
    when: steps("files", "of an unknown run", "give up the parts"),
  },
  {
    reason: "Schedules are listed in the order of their names.",
    when: steps("schedules", "list", "list of a workflow"),
  },
  {
    reason:
      "A schedule without times, with an expression that cannot be read, or of a workflow that is not stored is refused; the real server stores it, and it never starts anything.",
    when: steps("schedules", "without times", "with a bad expression", "of an unknown workflow"),
  },
  {
    reason:
      "A schedule may have no pause of one server process, and no record of a start waits in a queue: `/api/scheduler/admin` is refused.",
    when: steps("schedules", "requeue", "pause all", "resume all"),
  },
  {
    reason: "The id of a start is the id of its run.",
    when: ({ chapter, at }) => chapter === "schedules" && /\.(workflowId|executionId)$/.test(at),
  },
  {
    reason: "The inputs and outputs in summaries of searches are JSON, where the real server writes them in the manner of Java.",
    when: ({ chapter, at }) => chapter === "schedules" && /\.(input|inputSize)$/.test(at),
  },
  {
    reason: "External payload storage is refused: inputs and outputs of up to 10 MiB are sent in their requests.",
    when: ({ chapter }) => chapter === "external-storage",
  },
  {
    reason: "`/api/queue/update` ends a waiting task, as the real server does where it has queues for that.",
    when: steps("administration", "end the wait by a message", "end by the id of an unknown task"),
  },
  {
    reason:
      "The calls of administration that name a run which does not exist get a 404, and `verifyAndRepair` finds nothing to repair; the real server refuses it.",
    when: steps("administration", "sweep an unknown run", "repair"),
  },
  {
    reason: "The list of secrets shows no part of their values, and refused changes of secrets have the content type of their text.",
    when: anyOf(steps("secrets", "names with parts", "store", "remove")),
  },
  {
    reason: "The tasks of a test of a workflow are in a domain that no worker can poll, and not in a random one.",
    when: ({ chapter, at }) => chapter === "workflow-test" && /\.domain$|taskToDomain/.test(at),
  },
  {
    reason: "A signal also ends a HUMAN task.",
    when: steps("signal-strategies", "signal the person"),
  },
  {
    reason: "With a return strategy of a task, a run that is blocked by none gets an empty body; the real server returns 500.",
    when: steps("signal-strategies", "ends failed, the blocking task", "fail it"),
  },
  {
    reason: "A child whose task has no input gets an empty input; the real server gives it the fields of the task itself.",
    when: ({ chapter, at, reference }) => chapter === "signal-strategies" && at.startsWith("body.input.") && reference !== undefined,
  },
  {
    reason: "`execute` returns as soon as what it waits for has happened, which may be before a child of the run has started.",
    when: steps("signal-strategies", "until the noop"),
  },
  {
    reason: "A run that has begun has an `updateTime`.",
    when: ({ chapter, at }) =>
      chapter === "signal-strategies" &&
      (at === "body.updateTime" || fields("updateTime")({ at, field: at.split(".").at(-1) ?? "" } as never)),
  },
  {
    reason: "In searches, AND may be in lower case and values may have spaces around them. Searches of tasks may be limited to one run.",
    when: steps("search-forms", "spaces inside", "a lower and", "tasks in parentheses"),
  },
];
