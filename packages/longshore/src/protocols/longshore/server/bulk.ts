// Orders to many runs, as jobs that survive a crash and can be stopped.

import { z } from "zod";
import { LongshoreError } from "../../../core/errors.ts";
import type { BulkJob } from "../../../engine/bulk/bulk.ts";
import type { ProtocolEngine } from "../../server-half.ts";
import { bulkActions, bulkShape } from "../wire/bulk-shapes.ts";
import { pageOf } from "../wire/shapes.ts";
import { badInput, json, type Operation, operation } from "./operation.ts";
import { limit, waitMs } from "./query.ts";
import { runFilterOf } from "./run-list.ts";
import { givingUpSignal } from "./waits.ts";

const tag = "bulk";
/** More runs are named by a filter. */
const idsMax = 1_000;
const idCharsMax = 512;
/** Runs that one job orders: as many as are kept by default. */
const runsMax = 500_000;
const perSecondMax = 10_000;
const reasonCharsMax = 1_000;

const filterValue = z.union([z.string(), z.array(z.string())]);

/** Fields that all orders to many runs have. */
export const dry = z.boolean().default(false).describe("true or false; with true, nothing changes, and the job counts what it would do");
export function perSecond(items: string) {
  return z
    .number()
    .int()
    .min(1)
    .max(perSecondMax)
    .optional()
    .describe(`a whole number from 1 to ${perSecondMax}: how many ${items} a second`);
}

const body = z.strictObject({
  action: z.enum(bulkActions).describe(`one of ${bulkActions.join(", ")}`),
  ids: z.array(z.string().min(1).max(idCharsMax)).min(1).max(idsMax).optional().describe(`1 to ${idsMax} ids of runs`),
  filter: z.record(z.string(), filterValue).optional().describe("the filters of GET /runs?view=summary, by their names; {} for all runs"),
  limit: z
    .number()
    .int()
    .min(1)
    .max(runsMax)
    .default(runsMax)
    .describe(`a whole number from 1 to ${runsMax}: how many runs get the order at most`),
  reason: z
    .string()
    .min(1)
    .max(reasonCharsMax)
    .optional()
    .describe(`a text of 1 to ${reasonCharsMax} characters; the error of runs that are cancelled`),
  dry,
  perSecond: perSecond("runs"),
});

type BulkDeps = Pick<ProtocolEngine, "board" | "bulk" | "clock">;

export function bulkOperations(deps: BulkDeps): Operation[] {
  const { bulk } = deps;
  const known = (job: BulkJob | undefined, id: string): BulkJob => {
    if (job === undefined) throw new LongshoreError("LONGSHORE_NOT_FOUND", `There is no job ${id}.`, { detail: { field: "id" } });
    return job;
  };
  const notFound = { 404: { description: "There is no such job, or it ended more than 30 days ago." } };
  return [
    operation({
      ...{ id: "orderMany", tag, method: "POST", path: "/bulk", action: "run.steer" },
      summary: "Give an order to many runs: to these, or to all that match. Each run gets it or is refused by itself.",
      query: z.strictObject({ waitMs }),
      body,
      answers: { 202: { description: "The job; with `waitMs`, at its end or when the wait is over.", schema: bulkShape } },
      async handle({ body: { ids, filter, reason, perSecond, ...order }, query, request }) {
        if ((ids === undefined) === (filter === undefined))
          throw badInput("The body needs either ids or filter.", "ids", "ids or filter, not both");
        const job = await bulk.create({
          ...order,
          ids: ids === undefined ? null : [...new Set(ids)],
          filter: filter === undefined ? null : runFilterOf(filter),
          reason: reason ?? null,
          perSecond: perSecond ?? null,
        });
        if (query.waitMs > 0) await bulk.ended(job.id, givingUpSignal(deps, request, query.waitMs));
        return json(202, jobBody(known(await bulk.job(job.id), job.id)));
      },
    }),
    operation({
      ...{ id: "listBulk", tag, method: "GET", path: "/bulk", action: "run.read" },
      summary: "List orders to many runs, newest first.",
      query: z.strictObject({ limit }),
      answers: { 200: { description: "The newest.", schema: pageOf(bulkShape) } },
      handle: async ({ query }) => json(200, { items: (await bulk.list(query.limit)).map(jobBody), next: null }),
    }),
    operation({
      ...{ id: "getBulk", tag, method: "GET", path: "/bulk/:id", action: "run.read" },
      summary: "Read how far an order to many runs has come; with `waitMs`, wait for its end.",
      query: z.strictObject({ waitMs }),
      answers: { 200: { description: "The job.", schema: bulkShape }, ...notFound },
      async handle({ params, query, request }) {
        const id = params.id as string;
        if (query.waitMs > 0) await bulk.ended(id, givingUpSignal(deps, request, query.waitMs));
        return json(200, jobBody(known(await bulk.job(id), id)));
      },
    }),
    operation({
      ...{ id: "stopBulk", tag, method: "DELETE", path: "/bulk/:id", action: "run.steer" },
      summary: "Stop an order to many runs. Runs that have got it keep it.",
      answers: { 200: { description: "The job, stopped; as it was when it had ended.", schema: bulkShape }, ...notFound },
      handle: async ({ params }) => json(200, jobBody(known(await bulk.stop(params.id as string), params.id as string))),
    }),
  ];
}

/** Without the ids and the filter: the caller knows them. */
export function jobBody({ ids: _ids, steps: _steps, filter: _filter, ...job }: BulkJob) {
  return job;
}
