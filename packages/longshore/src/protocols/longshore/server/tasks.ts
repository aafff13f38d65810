// Tasks and their attempts, and the steps of a run whether or not their turn has come.

import { z } from "zod";
import { LongshoreError } from "../../../core/errors.ts";
import { wholeRow } from "../../../core/slices/slices.ts";
import type { TaskRow } from "../../../engine/board/task.ts";
import type { PlanNode } from "../../../engine/run/plan.ts";
import { pageCharsMax } from "../../../engine/run/reader.ts";
import { taskIdOf } from "../../../engine/run/run.ts";
import type { Engine } from "../../../server/engine.ts";
import { json, type Operation, operation } from "./operation.ts";
import { cursor, flag, limit, position } from "./query.ts";
import { knownRun, noSuchRun } from "./runs.ts";
import { attemptBody, attemptShape, isShown, pageOf, stepBody, stepShape, taskBody, taskShape, taskStates } from "./shapes.ts";

const tag = "tasks";
const noSuchTask = { 404: { description: "There is no such task." } };

const listQuery = z.strictObject({
  state: z
    .enum(taskStates)
    .optional()
    .describe(`one of ${taskStates.join(", ")}`),
  lane: z.string().max(512).optional().describe("only tasks of this lane"),
  limit,
  before: cursor,
});

export function taskOperations(engine: Engine): Operation[] {
  const { board, reader } = engine;
  const body = async (task: TaskRow) => taskBody(engine.shown.task(task), await engine.waiting()(task));
  const bodies = async (tasks: readonly TaskRow[]) => {
    const why = engine.waiting();
    const shown = tasks.filter((task) => isShown(task) && !engine.isHidden(task));
    return Promise.all(shown.map(async (task) => taskBody(engine.shown.task(task), await why(task))));
  };
  return [
    operation({
      ...{ id: "listRunTasks", tag, method: "GET", path: "/runs/:id/tasks", action: "task.read" },
      summary: "List the tasks of one run, in the order of its steps.",
      query: z.strictObject({ limit, after: position }),
      answers: {
        200: { description: "A page; it may be short, even empty, and still have a next.", schema: pageOf(taskShape) },
        ...noSuchRun,
      },
      async handle({ params, query }) {
        const { steps, next } = await stepsOf(engine, params.id as string, query);
        return json(200, { items: await bodies(steps.flatMap(({ task }) => task ?? [])), next });
      },
    }),
    operation({
      ...{ id: "listRunSteps", tag, method: "GET", path: "/runs/:id/steps", action: "run.read" },
      summary: "List every step of one run, also those whose turn has not come.",
      query: z.strictObject({ limit, after: position, lines: flag.describe("true adds the last log line of each") }),
      answers: { 200: { description: "A page of steps, in the order of the definition.", schema: pageOf(stepShape) }, ...noSuchRun },
      async handle({ params, query }) {
        const { plan, steps, next } = await stepsOf(engine, params.id as string, query);
        const lastLine = (task: TaskRow | undefined) => (task === undefined ? null : engine.logs.lastLine(task.id));
        const why = engine.waiting();
        const items: ReturnType<typeof stepBody>[] = [];
        // One after another: what was read of one step is not held while the others are read.
        for (const { node, task } of steps) {
          const waiting = task === undefined ? null : await why(task);
          const deadLetters = task === undefined ? [] : await engine.deadLetters(task);
          const lastError = await lastErrorOf(engine, task);
          const line = query.lines ? await lastLine(task) : undefined;
          items.push(stepBody(plan, node, task, { waiting, lastError, deadLetters, lastLine: line }));
        }
        return json(200, { items, next });
      },
    }),
    operation({
      ...{ id: "listTasks", tag, method: "GET", path: "/tasks", action: "task.read" },
      summary: "List tasks of all runs, newest first.",
      query: listQuery,
      answers: { 200: { description: "A page; it may be short, even empty, and still have a next.", schema: pageOf(taskShape) } },
      async handle({ query }) {
        const { items, next } = await reader.tasks(query);
        return json(200, { items: await bodies(items), next });
      },
    }),
    operation({
      ...{ id: "getTask", tag, method: "GET", path: "/tasks/:id", action: "task.read" },
      summary: "Look at one task.",
      answers: { 200: { description: "Its current state.", schema: taskShape }, ...noSuchTask },
      handle: async ({ params }) => json(200, await body(await knownTask(engine, params.id as string))),
    }),
    operation({
      ...{ id: "listTaskAttempts", tag, method: "GET", path: "/tasks/:id/attempts", action: "task.read" },
      summary: "List the attempts of one task, oldest first.",
      answers: { 200: { description: "The last one is the current one.", schema: pageOf(attemptShape) }, ...noSuchTask },
      async handle({ params }) {
        const { id } = await knownTask(engine, params.id as string);
        return json(200, { items: (await reader.attempts(id)).map(attemptBody), next: null });
      },
    }),
    operation({
      ...{ id: "cancelTask", tag, method: "POST", path: "/tasks/:id/cancel", action: "run.steer" },
      summary: "Cancel one task. A step that is cancelled fails its run, as a failed one does; one that has ended stays as it is.",
      answers: {
        202: { description: "The task afterwards. Its worker is informed at its next heartbeat.", schema: taskShape },
        ...noSuchTask,
      },
      async handle({ params }) {
        const { id } = await knownTask(engine, params.id as string);
        await board.cancel(id);
        return json(202, await body(await knownTask(engine, id)));
      },
    }),
  ];
}

async function knownTask({ reader, isHidden }: Engine, id: string): Promise<TaskRow> {
  const task = await reader.task(id);
  if (task === undefined || !isShown(task) || isHidden(task))
    throw new LongshoreError("LONGSHORE_NOT_FOUND", `There is no task ${id}.`, { detail: { field: "id" } });
  return task;
}

async function lastErrorOf({ reader }: Engine, task: TaskRow | undefined): Promise<string | undefined> {
  if (task?.state !== "queued" || task.attempt === 0) return undefined;
  return (await reader.lastError(task.id)) ?? undefined;
}

/** One page of a run's steps with their tasks. Looked up one by one, so a page costs the same in a run of any size. */
async function stepsOf(engine: Engine, runId: string, page: { limit: number; after?: number }) {
  const run = await knownRun((id) => engine.reader.run(id), runId);
  const definition = await engine.reader.definitionById(run.definitionId);
  if (definition === undefined) throw new Error(`Run ${runId} has no definition ${run.definitionId}.`);
  const plan = engine.plan(definition);
  const from = page.after ?? 0;
  const to = Math.min(from + page.limit, plan.nodes.length);
  const steps: { node: PlanNode; task: TaskRow | undefined }[] = [];
  let chars = 0;
  let at = from;
  for (; at < to && chars < pageCharsMax; at++) {
    const node = plan.nodes[at] as PlanNode;
    await engine.slices.turn(wholeRow);
    if (node.hidden) continue;
    const task = await engine.reader.task(taskIdOf(run.id, at));
    const size = task === undefined ? 0 : task.input.length + (task.output?.length ?? 0);
    engine.slices.spent(size);
    chars += size;
    steps.push({ node, task });
  }
  return { plan, steps, next: at < plan.nodes.length ? String(at) : null };
}
