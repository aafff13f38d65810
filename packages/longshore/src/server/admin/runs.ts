// Runs: starting, looking, cancelling, trying again.

import { z } from "zod";
import { LongshoreError } from "../../errors.ts";
import type { Run } from "../../run/run.ts";
import type { Engine } from "../engine.ts";
import { json, type Operation, operation } from "./operation.ts";
import { isShown, pageOf, runBody, runShape, taskBody, taskShape } from "./shapes.ts";

const tag = "runs";
/** Names and keys are kept in indexes: long ones would make every row dear. */
const nameCharsMax = 200;
const keyCharsMax = 256;

const name = z.string().min(1).max(nameCharsMax).describe(`a name of 1 to ${nameCharsMax} characters`);
const missing = { 404: { description: "There is no such run." } };

const startBody = z.strictObject({
  workflow: name.describe("the name of a definition"),
  input: z.unknown().optional().describe("any JSON value; null when absent"),
  key: z
    .string()
    .min(1)
    .max(keyCharsMax)
    .optional()
    .describe(`a text of 1 to ${keyCharsMax} characters; starting twice with one key starts one run`),
});

export function runOperations(engine: Engine): Operation[] {
  const { runs } = engine;
  return [
    operation({
      id: "startRun",
      summary: "Start a run.",
      tag,
      method: "POST",
      path: "/runs",
      scope: "operator",
      body: startBody,
      answers: {
        201: { description: "It has started.", schema: runShape },
        200: { description: "A run with this key was started before; this is how it stands.", schema: runShape },
        404: { description: "There is no such workflow." },
      },
      async handle({ body }) {
        const { run, created } = await runs.start({
          workflow: body.workflow,
          input: JSON.stringify(body.input ?? null),
          key: body.key,
        });
        return json(created ? 201 : 200, runBody(run), { location: `/api/longshore/v1/runs/${run.id}` });
      },
    }),
    operation({
      id: "getRun",
      summary: "Look at one run.",
      tag,
      method: "GET",
      path: "/runs/:id",
      scope: "read",
      answers: { 200: { description: "How it stands.", schema: runShape }, ...missing },
      handle: async ({ params }) => json(200, runBody(known(await runs.run(params.id as string), params.id))),
    }),
    operation({
      id: "cancelRun",
      summary: "Cancel a run. One that has ended stays as it is.",
      tag,
      method: "POST",
      path: "/runs/:id/cancel",
      scope: "operator",
      answers: { 202: { description: "The run afterwards. Workers learn of it by their next heartbeat.", schema: runShape }, ...missing },
      handle: async ({ params }) => json(202, runBody(known(await runs.cancel(params.id as string), params.id))),
    }),
    operation({
      id: "retryRun",
      summary: "Try again what did not succeed, in the same run, keeping what did.",
      tag,
      method: "POST",
      path: "/runs/:id/retry",
      scope: "operator",
      answers: {
        202: { description: "It goes on.", schema: runShape },
        409: { description: "It is still running, or has succeeded." },
        ...missing,
      },
      handle: async ({ params }) => json(202, runBody(known(await runs.retry(params.id as string), params.id))),
    }),
    operation({
      id: "rerunRun",
      summary: "Start a new run of the same version with the same input.",
      tag,
      method: "POST",
      path: "/runs/:id/rerun",
      scope: "operator",
      answers: { 201: { description: "The new run.", schema: runShape }, ...missing },
      async handle({ params }) {
        const run = known(await runs.rerun(params.id as string), params.id);
        return json(201, runBody(run), { location: `/api/longshore/v1/runs/${run.id}` });
      },
    }),
    operation({
      id: "listRunTasks",
      summary: "The tasks of one run, in the order of its steps.",
      tag,
      method: "GET",
      path: "/runs/:id/tasks",
      scope: "read",
      answers: { 200: { description: "Its tasks.", schema: pageOf(taskShape) }, ...missing },
      async handle({ params }) {
        known(await runs.run(params.id as string), params.id);
        const tasks = engine.store.runs.records(params.id as string).filter(isShown);
        return json(200, { items: tasks.sort((a, b) => a.node - b.node).map((task) => taskBody(task)), next: null });
      },
    }),
  ];
}

function known(run: Run | undefined, id: string | undefined): Run {
  if (run === undefined) throw new LongshoreError("LONGSHORE_NOT_FOUND", `There is no run ${id}.`, { detail: { field: "id" } });
  return run;
}
