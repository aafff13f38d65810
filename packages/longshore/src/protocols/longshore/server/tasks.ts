// Tasks and their attempts, and the steps of a run, started or not.

import { z } from "zod";
import { LongshoreError } from "../../../core/errors.ts";
import { idOfUuid } from "../../../core/ids.ts";
import { writeExact } from "../../../core/json/json-exact.ts";
import { isSameJson } from "../../../core/json/json-same.ts";
import { wholeRow } from "../../../core/slices/slices.ts";
import { looseTask } from "../../../engine/board/loose-task.ts";
import { isOpen, type TaskRow } from "../../../engine/board/task.ts";
import { shownState, type Waiting } from "../../../engine/board/wait-reason.ts";
import type { PlanNode } from "../../../engine/run/plan.ts";
import { pageCharsMax } from "../../../engine/run/reader.ts";
import { taskIdOf } from "../../../engine/run/run.ts";
import { taskNode } from "../../../engine/run/task-node.ts";
import type { ProtocolEngine } from "../../server-half.ts";
import { backoff, count, delay, labels, milliseconds, priority, taskName } from "../dialect/code-source.ts";
import { apiPrefix, pageOf, stepShape, taskShape, taskStates } from "../wire/shapes.ts";
import { isShown, stepBody, taskBody } from "./bodies.ts";
import { jsonPage } from "./json-page.ts";
import { json, type Operation, operation } from "./operation.ts";
import { cursor, flag, limit, position, waitMs } from "./query.ts";
import { knownRun, runNotFound } from "./runs.ts";
import { givingUp } from "./waits.ts";

const tag = "tasks";
export const noSuchTask = { 404: { description: "There is no such task." } };

const listQuery = z.strictObject({
  state: z
    .enum(taskStates)
    .optional()
    .describe(`one of ${taskStates.join(", ")}`),
  lane: z.string().max(512).optional().describe("only tasks of this lane"),
  limit,
  before: cursor,
});

const postBody = z.strictObject({
  task: taskName.describe(`the name of a task: ${taskName.description}`),
  input: z.unknown().optional().describe("any JSON value; null when absent"),
  id: z.uuid().optional().describe("a UUID that the client has made; a request with the same id again queues nothing"),
  delayMs: delay.optional().describe(`${delay.description}, until it may be taken; 0 when absent`),
  priority: priority.optional(),
  labels: labels.optional().describe(`${labels.description}; only workers with all of them take it`),
  timeoutMs: milliseconds.optional().describe(`${milliseconds.description}: the limit of one attempt`),
  retry: z
    .strictObject({ limit: count, backoff: backoff.optional() })
    .optional()
    .describe("how often it is tried again after a failure; never when absent"),
});

type TaskDeps = Pick<
  ProtocolEngine,
  "board" | "clock" | "deadLetters" | "logs" | "makeId" | "originOf" | "plan" | "reader" | "shown" | "slices" | "waiting"
>;

export function taskOperations(deps: TaskDeps): Operation[] {
  const { board, reader } = deps;
  const bodyOf = async (task: TaskRow, waiting: Waiting | null) =>
    taskBody(await deps.shown.task(task), waiting, deps.clock.now(), await childOf(deps, task));
  const body = async (task: TaskRow) => bodyOf(task, await deps.waiting()(task));
  const pageOfTasks = (items: readonly TaskRow[], next: string | null) => {
    const why = deps.waiting();
    return jsonPage(reader, { items, next }, async (task) => ((await isSeen(deps, task)) ? bodyOf(task, await why(task)) : undefined));
  };
  const post = async ({ id: given, input: value, ...options }: z.output<typeof postBody>) => {
    const id = given === undefined ? deps.makeId(deps.clock.now()) : (idOfUuid(given) as string);
    const input = writeExact(value ?? null);
    const known = given === undefined ? undefined : await board.task(id);
    if (known !== undefined && (known.step !== options.task || !isSameJson(known.input, input))) throw idTaken(given as string);
    if (known === undefined) await board.post([looseTask({ ...options, id, input })]);
    const task = await knownTask(deps, id);
    // Without the reason why it waits, which differs when the answer is given again.
    return json(known === undefined ? 201 : 200, taskBody(task, null, deps.clock.now()), { location: `${apiPrefix}/tasks/${id}` });
  };
  return [
    operation({
      ...{ id: "listRunTasks", tag, method: "GET", path: "/runs/:id/tasks", action: "task.read", stored: true },
      summary: "List the tasks of one run, in the order of its steps.",
      query: z.strictObject({ limit, after: position }),
      answers: {
        200: { description: "A page; it may be short, even empty, and still have a next.", schema: pageOf(taskShape) },
        ...runNotFound,
      },
      async handle({ params, query }) {
        const { steps, next } = await stepsOf(deps, params.id as string, query);
        return pageOfTasks(
          steps.flatMap(({ task }) => task ?? []),
          next,
        );
      },
    }),
    operation({
      ...{ id: "listRunSteps", tag, method: "GET", path: "/runs/:id/steps", action: "run.read" },
      summary: "List every step of one run, also those that have not started.",
      query: z.strictObject({ limit, after: position, lines: flag.describe("true adds the last log line of each") }),
      answers: { 200: { description: "A page of steps, in the order of the definition.", schema: pageOf(stepShape) }, ...runNotFound },
      async handle({ params, query }) {
        const { plan, steps, next } = await stepsOf(deps, params.id as string, query);
        const lastLine = (task: TaskRow | undefined) => (task === undefined ? null : deps.logs.lastLine(task.id));
        const why = deps.waiting();
        return jsonPage(reader, { items: steps, next }, async ({ node, task }) => {
          const waiting = task === undefined ? null : await why(task);
          const deadLetters = task === undefined ? [] : await deps.deadLetters(task);
          const lastError = await lastErrorOf(deps, task);
          const childRunId = node.kind === "run" && task !== undefined ? await childOf(deps, task) : undefined;
          const line = query.lines ? await lastLine(task) : undefined;
          return stepBody(plan, node, task, deps.clock.now(), { waiting, lastError, childRunId, deadLetters, lastLine: line });
        });
      },
    }),
    operation({
      ...{ id: "listTasks", tag, method: "GET", path: "/tasks", action: "task.read", stored: true },
      summary: "List tasks of all runs, newest first.",
      query: listQuery,
      answers: { 200: { description: "A page; it may be short, even empty, and still have a next.", schema: pageOf(taskShape) } },
      async handle({ query }) {
        const { state } = query;
        const { items, next } = await reader.tasks({ ...query, state: state === "sleeping" || state === "awaiting" ? "queued" : state });
        const wanted = items.filter((task) => state === undefined || shownState(task, deps.clock.now()) === state);
        return pageOfTasks(wanted, next);
      },
    }),
    operation({
      ...{ id: "getTask", tag, method: "GET", path: "/tasks/:id", action: "task.read", stored: true },
      summary: "Look at one task; with `waitMs`, wait for its end.",
      query: z.strictObject({ waitMs }),
      answers: { 200: { description: "Its current state: it may still be open when the wait is over.", schema: taskShape }, ...noSuchTask },
      async handle({ params, query, request }) {
        const task = await knownTask(deps, params.id as string);
        if (query.waitMs === 0 || !isOpen(task.state)) return json(200, await body(task));
        await board.result(task.id, givingUp(deps, request, query.waitMs));
        return json(200, await body(await knownTask(deps, task.id)));
      },
    }),
    operation({
      ...{ id: "postTask", tag, method: "POST", path: "/tasks", action: "run.start" },
      summary: "Queue one task without a workflow.",
      body: postBody,
      answers: {
        201: { description: "It is queued.", schema: taskShape },
        200: { description: "A task with this id was queued before; this is its current state.", schema: taskShape },
        409: { description: "The task with this id has another name or input." },
      },
      handle: ({ body: given }) => post(given),
    }),
    operation({
      ...{ id: "cancelTask", tag, method: "POST", path: "/tasks/:id/cancel", action: "run.steer" },
      summary: "Cancel one task. A cancelled step fails its run, like a failed step. A task that has ended does not change.",
      answers: {
        202: { description: "The task afterwards. Its worker is informed at its next heartbeat.", schema: taskShape },
        ...noSuchTask,
      },
      async handle({ params }) {
        const { id } = await knownTask(deps, params.id as string);
        await board.cancel(id);
        return json(202, await body(await knownTask(deps, id)));
      },
    }),
  ];
}

function idTaken(id: string): LongshoreError {
  return new LongshoreError("LONGSHORE_CONFLICT", `The task ${id} exists and has another name or input: make a new id for another task.`, {
    detail: { field: "id", expected: "a new UUID" },
  });
}

/** Whether the task is shown to people. */
async function isSeen({ originOf }: Pick<TaskDeps, "originOf">, task: TaskRow): Promise<boolean> {
  return isShown(task) && !(await originOf(task)).isHidden;
}

export async function knownTask(deps: Pick<TaskDeps, "originOf" | "reader">, id: string): Promise<TaskRow> {
  const task = await deps.reader.task(id);
  if (task === undefined || !(await isSeen(deps, task)))
    throw new LongshoreError("LONGSHORE_NOT_FOUND", `There is no task ${id}.`, { detail: { field: "id" } });
  return task;
}

/** Only a record that no worker takes has started a run. */
async function childOf({ reader, slices }: TaskDeps, { id, attempt, lane, runId }: TaskRow): Promise<string | undefined> {
  if (lane !== null || runId === null) return undefined;
  await slices.turn(wholeRow);
  return (await reader.childHeadOf(id, attempt))?.id;
}

async function lastErrorOf({ reader }: TaskDeps, task: TaskRow | undefined): Promise<string | undefined> {
  if (task?.state !== "queued" || task.attempt === 0) return undefined;
  return (await reader.lastError(task.id)) ?? undefined;
}

/** One page of a run's steps with their tasks. They are looked up one by one, so a page costs the same in a run of any size. */
async function stepsOf(deps: TaskDeps, runId: string, page: { limit: number; after?: number }) {
  const run = await knownRun((id) => deps.reader.run(id), runId);
  const definition = await deps.reader.definitionById(run.definitionId);
  if (definition === undefined) throw new Error(`Run ${runId} has no definition ${run.definitionId}.`);
  const plan = deps.plan(definition);
  const from = page.after ?? 0;
  // For a durable function, the commands come after the function itself.
  const total = plan.driven ? run.recorded + 1 : plan.nodes.length;
  const to = Math.min(from + page.limit, total);
  const steps: { node: PlanNode; task: TaskRow | undefined }[] = [];
  let chars = 0;
  let at = from;
  for (; at < to && chars < pageCharsMax; at++) {
    const planned = plan.nodes[at];
    await deps.slices.turn(wholeRow);
    if (planned?.hidden) continue;
    const task = await deps.reader.task(taskIdOf(run.id, at));
    const node = planned ?? (task === undefined ? undefined : taskNode(plan, task));
    if (node === undefined) continue;
    const size = task === undefined ? 0 : task.input.length + (task.output?.length ?? 0);
    deps.slices.spent(size);
    chars += size;
    steps.push({ node, task });
  }
  return { plan, steps, next: at < total ? String(at) : null };
}
