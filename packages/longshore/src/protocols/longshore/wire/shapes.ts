// The shapes of runs, steps and definitions in the responses of our own API: the server documents them, and the command line reads them.
// Times are epoch milliseconds. Inputs and outputs are the JSON values themselves.

import { z } from "zod";

export { apiPrefix } from "./prefix.ts";

export const time = z.number().int();
export const maybeTime = time.nullable();
export const value = z.unknown();

export const runStates = ["running", "paused", "blocked", "succeeded", "failed", "cancelled", "timed-out"] as const;
export const taskStates = [
  "queued",
  "sleeping",
  "awaiting",
  "offered",
  "held",
  "cancelling",
  "done",
  "failed",
  "cancelled",
  "skipped",
] as const;
const aboutWaits = "`sleeping`: it waits for a time. `awaiting`: it waits for a signal, a child run, or the steps of a function.";

export const waitingShape = z
  .object({
    reason: z.enum([
      "not-due",
      "paused",
      "limit",
      "no-worker",
      "busy",
      "unreachable",
      "sent",
      "next",
      "signal",
      "turn",
      "sleeping",
      "record",
    ]),
    text: z.string().describe("For people."),
    at: time.optional().describe("When it may be taken, or wakes up, if that is known."),
    signal: z.string().optional().describe("The signal that ends a step that waits."),
    key: z.string().optional().describe("The limit in the way."),
    missing: z.array(z.string()).optional().describe("Labels that no live worker of this lane offers."),
    workers: z.array(z.string()).optional().describe("Workers that could take it."),
  })
  .meta({ id: "Waiting" });

export const runWaitingShape = waitingShape
  .extend({
    step: z.string().optional().describe("The step that waits. Absent for a run that waits for its turn."),
    taskId: z.string().optional(),
    run: z.string().optional().describe("Of a run that waits for its turn: the oldest run before it."),
  })
  .nullable()
  .describe(
    "What the run waits for: its turn, or, of its first open steps, the one that needs a person or a worker most. Null while a worker has one.",
  );

export const runShape = z
  .object({
    id: z.string(),
    workflow: z.string(),
    definitionId: z.string().describe("The version that it runs. A version that is defined later does not change it."),
    state: z.enum(runStates),
    input: value,
    output: value,
    variables: value.describe("An object with the values that it shows; null without any."),
    error: z.string().nullable(),
    createdAt: time,
    startAt: maybeTime.describe("When a run that was started with a delay begins; null once it has begun."),
    endedAt: maybeTime,
    endBy: maybeTime.describe("When the run must have ended."),
    priority: z.number().int().describe("Added to the priority of its tasks. Tasks with smaller numbers are taken first."),
    left: z.number().int().describe("Steps that have not settled."),
    failed: z.number().int().describe("Steps that failed."),
    retries: z.number().int().describe("How often it was tried again after its end."),
    alias: z.string().nullable().describe("What a protocol calls this run."),
    parentTaskId: z.string().nullable().describe("The step of another run that waits for this one."),
    waiting: runWaitingShape.optional(),
    signals: z
      .object({
        sent: z.number().int().describe("How many were sent in all."),
        kept: z.number().int().describe("How many of them no step has taken."),
      })
      .describe("The numbers of its signals. The signals themselves have a separate list."),
  })
  .meta({ id: "Run" });

export const journalShape = z
  .object({
    runId: z.string().optional(),
    input: value.optional(),
    startedAt: time.optional(),
    pass: z.number().int().optional().describe("How often the function has called continueAs before."),
    entries: z.array(
      z.object({
        node: z.number().int().describe("The number of the command."),
        command: z.string().describe("Its kind and name, such as `step price`."),
        result: z
          .object({
            node: z.number().int(),
            place: z.number().int().describe("Results are numbered in the order in which they arrived."),
            state: z.enum(["done", "failed", "cancelled"]),
            at: time,
            output: value.optional(),
            error: z.string().optional(),
            timedOut: z.boolean().optional(),
            attempt: z.number().int().optional(),
          })
          .optional(),
      }),
    ),
    next: z.number().int().optional().describe("The command behind which the next page starts; absent on the last page."),
  })
  .meta({ id: "Journal" });

const fault = z
  .enum(["failed", "final", "lost", "timed-out", "unmade"])
  .nullable()
  .describe("Why it ended without a result: `final` is not tried again, `lost` had a worker that vanished, `unmade` could not begin.");

export const taskShape = z
  .object({
    id: z.string(),
    runId: z.string().nullable(),
    step: z.string(),
    state: z.enum(taskStates).describe(aboutWaits),
    attempt: z.number().int().describe("Number of the current try, from 1."),
    grant: z.number().int().describe("Rises whenever the task is handed out and whenever it comes back."),
    failures: z.number().int(),
    lost: z.number().int().describe("How often its worker was lost."),
    holder: z.string().nullable(),
    lane: z.string().nullable().describe("The name that workers claim; null for a step that no worker takes."),
    labels: z.array(z.string()),
    priority: z.number().int(),
    input: value,
    output: value,
    error: z.string().nullable(),
    postedAt: time,
    queuedAt: time.describe("When it was last queued."),
    dueAt: time.describe("Not handed out before."),
    startedAt: maybeTime.describe("When this attempt was first handed out."),
    claimedAt: maybeTime.describe("When its current holder got it."),
    endedAt: maybeTime,
    holdUntil: maybeTime.describe("When its holder loses it, unless it is extended."),
    claimBy: maybeTime.describe("When a worker must have taken it."),
    endBy: maybeTime.describe("When the attempt must have ended."),
    totalBy: maybeTime.describe("When all its attempts must have ended."),
    deferrals: z.number().int().describe("How often the current attempt was deferred."),
    fault,
    limits: z
      .array(
        z.object({
          key: z.string(),
          held: z.number().int().optional().describe("At most so many tasks with this key are held at once."),
          rate: z.object({ count: z.number().int(), windowMs: z.number().int() }).optional(),
        }),
      )
      .describe("The limits under which it runs."),
    childRunId: z.string().optional().describe("The run that its current attempt has started."),
    waiting: waitingShape
      .optional()
      .describe("While it is queued or on its way to workers: why no worker has taken it, or what it waits for."),
  })
  .meta({ id: "Task" });

/** Dead letters of each step in a list of steps; the protocol of the task lists all. */
export const deadLettersShown = 20;

const deadLettersShape = z
  .object({
    total: z.number().int(),
    first: z.array(
      z.object({
        uid: z.string(),
        reason: z.string(),
        error: z.string().nullable(),
        tries: z.number().int().describe("How often it was tried."),
      }),
    ),
  })
  .meta({ id: "DeadLetters" });

const nodeKinds = ["task", "run", "instant", "join", "wait", "end"] as const;

const stepEdges = {
  after: z.array(z.string()).describe("Steps that must settle first."),
  startedBy: z
    .array(z.string())
    .describe("Steps that start or choose it, such as a fork or a switch. Steps of `after` are not repeated here."),
};

export const stepShape = z
  .object({
    id: z.string(),
    state: z
      .enum(["waiting", ...taskStates])
      .describe(`\`waiting\`: its turn has not come; in a run that has ended, it never will. ${aboutWaits}`),
    kind: z.enum(nodeKinds),
    ...stepEdges,
    taskId: z.string().nullable().describe("Null while it waits."),
    attempt: z.number().int(),
    holder: z.string().nullable(),
    error: z.string().nullable(),
    queuedAt: maybeTime.describe("When it was last queued."),
    dueAt: maybeTime.describe("Not handed out before."),
    startedAt: maybeTime,
    endedAt: maybeTime,
    lastLine: z.string().nullable().optional().describe("The last line of its log, on request."),
    waiting: waitingShape
      .optional()
      .describe("While it is queued or on its way to workers: why no worker has taken it, or what it waits for."),
    lastError: z.string().optional().describe("While it waits for the next try: why the last one failed."),
    childRunId: z.string().optional().describe("The run that its current attempt has started."),
    deadLetters: deadLettersShape
      .optional()
      .describe(
        `Parts of its input that it has put aside, or because of which it failed: their number, and the first ${deadLettersShown}. Absent when there are none.`,
      ),
  })
  .meta({ id: "Step" });

export const attemptShape = z
  .object({
    attempt: z.number().int().describe("From 1."),
    grant: z.number().int(),
    holder: z.string().nullable(),
    error: z.string().nullable(),
    fault,
    overdue: z.enum(["claimBy", "holdUntil", "endBy", "totalBy"]).nullable().describe("The deadline that has passed, for a timeout."),
    deferrals: z.number().int(),
    attemptAt: time.describe("When it was first queued."),
    queuedAt: time.describe("When it was last queued."),
    dueAt: time,
    claimedAt: maybeTime.describe("When its last holder got it."),
    startedAt: maybeTime,
    endedAt: maybeTime,
    closedBy: z.string().nullable().describe("What ended it: complete, fail, defer, cancel or expire."),
    inputChars: z.number().int().optional().describe("With `io`: how long its input is."),
    input: value.optional().describe("With `io`, when it is not too long."),
    outputChars: z.number().int().optional().describe("With `io`: how long its output is; absent when it has none."),
    output: value.optional().describe("With `io`, when it is not too long."),
  })
  .meta({ id: "Attempt" });

const definitionFields = {
  id: z.string(),
  name: z.string(),
  version: z.number().int().describe("Counts from 1 for each name."),
  dialect: z.string().describe("The language it is written in."),
  createdAt: time,
};

export const definitionShape = z.object(definitionFields).meta({ id: "Definition" });

export const listedDefinitionShape = z
  .object({ ...definitionFields, events: z.array(z.string()).describe("The names of the events that start it.") })
  .meta({ id: "ListedDefinition" });

export const planStepShape = z
  .object({
    id: z.string(),
    kind: z.enum(nodeKinds),
    ...stepEdges,
    lane: z.string().nullable(),
    labels: z.array(z.string()),
    workflow: z.string().nullable().describe("The workflow that a step of kind `run` starts."),
  })
  .meta({ id: "PlanStep" });

export const wholeDefinitionShape = z
  .object({ ...definitionFields, source: value.describe("As it is stored, in its own dialect."), steps: z.array(planStepShape) })
  .meta({ id: "WholeDefinition" });

/** A page of any list, newest first or in order; `next` is the parameter for the following page, null at the end. */
export function pageOf<Item extends z.ZodType>(item: Item) {
  return z.object({ items: z.array(item), next: z.string().nullable() });
}

export const chunkShape = z
  .object({
    position: z.number().int().describe("Its position in the order of arrival; a stream can be resumed after it."),
    taskId: z.string(),
    step: z.string(),
    attempt: z.number().int(),
    stream: z.enum(["stdout", "stderr"]),
    sequence: z.number().int().describe("The worker's own count."),
    at: z.number().describe("The worker's own time, in epoch milliseconds."),
    data: z.string().describe("Text with its line ends."),
  })
  .meta({ id: "LogChunk" });
