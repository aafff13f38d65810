// What the checker of `longshore verify` reads from a live server: the history of one run, or of tasks without a run, in pages.

import { z } from "zod";
import { LongshoreError } from "../../../core/errors.ts";
import { wholeRow } from "../../../core/slices/slices.ts";
import { noSuchRun } from "../../../engine/run/no-such-run.ts";
import type { ProtocolEngine } from "../../server-half.ts";
import { pageOf, runStates } from "../wire/shapes.ts";
import { json, type Operation, operation } from "./operation.ts";
import { cursor } from "./query.ts";

const tag = "history";
/** Maximum number of tasks in one page, with all of their attempts. Such a page is read in less than 5 ms. */
const tasksMax = 200;
/** The same for a page of ids. */
const idsMax = 1_000;

/** As the board has them: a record that waits is queued. */
const storedStates = ["queued", "offered", "held", "cancelling", "done", "failed", "cancelled", "skipped", "forgotten"] as const;

const maybeTime = z.number().int().nullable();

const attemptHistoryShape = z.object({
  attempt: z.number().int().describe("From 0."),
  grant: z.number().int(),
  holder: z.string().nullable(),
  claimedAt: maybeTime,
  endedAt: maybeTime,
  closedBy: z.string().nullable(),
  state: z.string().nullable().describe("The state of the task at the end of this attempt, or now."),
});

const taskHistoryShape = z
  .object({
    id: z.string(),
    runId: z.string().nullable(),
    step: z.string(),
    state: z.enum(storedStates),
    onLane: z.boolean().describe("False for a record that no worker claims."),
    startsRun: z.boolean().describe("True for a step that starts a child run."),
    joins: z.boolean().optional().describe("True for a step that waits for other steps of its run."),
    command: z
      .string()
      .nullable()
      .optional()
      .describe("Of a durable function: `function`, or a command that it gave, such as `3 step price`."),
    place: z.number().int().optional().describe("Of such a command: the number of its result; 0 without one."),
    firstAttempt: z.number().int().describe("The first attempt of the life that its run is in."),
    grant: z.number().int().describe("The newest."),
    closedGrant: z.number().int().describe("The newest that was closed."),
    endedAt: maybeTime,
    hasOutput: z.boolean(),
    attempts: z.array(attemptHistoryShape).describe("Oldest first; the last is the current one, unless the task is forgotten."),
    parts: z.array(z.unknown()).describe("Empty: parts are checked in the data file only."),
  })
  .meta({ id: "TaskHistory" });

const runHistoryShape = z
  .object({
    id: z.string(),
    workflow: z.string(),
    state: z.enum(runStates),
    endedAt: maybeTime,
    turn: z.number().int().nullable().optional().describe("Its place among the runs that wait for their turn."),
    startAt: maybeTime.optional().describe("When a run that was started with a delay begins; null once it has begun."),
    active: z.number().int().describe("Steps that have begun and not settled."),
    left: z
      .number()
      .int()
      .optional()
      .describe(
        "How many decisions wait: the rest of a large decision, or a step that ended while the run was paused. Each counts as active.",
      ),
    retries: z.number().int(),
    journal: z
      .object({ commands: z.number().int(), place: z.number().int(), sent: z.number().int(), waits: z.boolean() })
      .nullable()
      .optional()
      .describe("Of a durable function: what it counts of its commands and results."),
    hasDefinition: z.boolean(),
    parentTaskId: z.string().nullable(),
    tasks: z.array(taskHistoryShape),
    children: z.array(z.object({ taskId: z.string(), attempt: z.number().int(), runId: z.string(), state: z.enum(runStates) })),
    messages: z.array(z.record(z.string(), z.unknown())).describe("Messages between runs that wait to be delivered."),
    next: z.string().nullable().describe("The `after` of the next page of tasks."),
  })
  .meta({ id: "RunHistory" });

const keptShape = z
  .object({
    ageMs: z.number().nullable().describe("Counted from the end of the run."),
    count: z.number().nullable().describe("Above this number the oldest runs are removed, at any age."),
  })
  .meta({ id: "Kept" });

const page = z.strictObject({ after: cursor });

type HistoryDeps = Pick<ProtocolEngine, "history" | "slices">;

export function historyOperations({ history, slices }: HistoryDeps): Operation[] {
  return [
    operation({
      ...{ id: "getKept", tag, method: "GET", path: "/history/kept", action: "run.read" },
      summary: "Get how long runs are kept after their end, for a checker.",
      answers: { 200: { description: "Null means without a limit.", schema: keptShape }, 404: { description: "It is not known." } },
      async handle() {
        const kept = await history.kept();
        if (kept === undefined) throw new LongshoreError("LONGSHORE_NOT_FOUND", "How long runs are kept is not known.");
        return json(200, kept);
      },
    }),
    operation({
      ...{ id: "listRunIds", tag, method: "GET", path: "/history/runs", action: "run.read", stored: true },
      summary: "List the ids of all runs, oldest first.",
      query: page,
      answers: { 200: { description: "A page.", schema: pageOf(z.string()) } },
      async handle({ query }) {
        await slices.turn(idsMax);
        const items = await history.runIds(query.after ?? "", idsMax);
        return json(200, { items, next: items.length < idsMax ? null : items.at(-1) });
      },
    }),
    operation({
      ...{ id: "getRunHistory", tag, method: "GET", path: "/history/runs/:id", action: "run.read", stored: true },
      summary: "Get a run with a page of its tasks and all of their attempts, for a checker.",
      query: page,
      answers: { 200: { description: "The run.", schema: runHistoryShape }, 404: { description: "There is no such run." } },
      async handle({ params, query }) {
        await slices.turn(tasksMax * wholeRow);
        const id = params.id as string;
        const run = await history.runPage(id, { after: query.after ?? `${id}.`, limit: tasksMax });
        if (run === undefined) throw noSuchRun(id);
        // Fields of messages other than ids are data of the run, and are left out.
        const messages = run.messages.map((message) => ({ ...message, input: undefined, output: undefined, error: undefined }));
        return json(200, { ...run, messages });
      },
    }),
    operation({
      ...{ id: "listTaskHistory", tag, method: "GET", path: "/history/tasks", action: "task.read", stored: true },
      summary: "List the tasks without a run, oldest first, with all of their attempts.",
      query: page,
      answers: { 200: { description: "A page; it may be short, even empty, and still have a next.", schema: pageOf(taskHistoryShape) } },
      async handle({ query }) {
        await slices.turn(tasksMax * wholeRow);
        return json(200, await history.looseTasks(query.after ?? "", tasksMax));
      },
    }),
    operation({
      ...{ id: "getTaskHistory", tag, method: "GET", path: "/history/tasks/:id", action: "task.read", stored: true },
      summary: "Get one task with all of its attempts, for a checker.",
      answers: { 200: { description: "The task.", schema: taskHistoryShape }, 404: { description: "There is no such task." } },
      async handle({ params }) {
        const task = await history.task(params.id as string);
        if (task === undefined) {
          throw new LongshoreError("LONGSHORE_NOT_FOUND", `There is no task ${params.id}.`, { detail: { field: "id" } });
        }
        return json(200, task);
      },
    }),
  ];
}
