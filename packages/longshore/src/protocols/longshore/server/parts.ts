// Parts: what the steps of a run have produced before their end.

import { z } from "zod";
import { LongshoreError } from "../../../core/errors.ts";
import type { Json } from "../../../core/json/json.ts";
import { parseExact } from "../../../core/json/json-exact.ts";
import { pollParts } from "../../../engine/part/follow.ts";
import type { Part } from "../../../engine/part/store.ts";
import { taskOfStep } from "../../../engine/run/step-task.ts";
import type { ProtocolEngine } from "../../server-half.ts";
import { pageOf } from "../wire/shapes.ts";
import { json, type Operation, operation } from "./operation.ts";
import { limit, position, waitMs } from "./query.ts";
import { knownRun } from "./runs.ts";

const ends = ["done", "failed", "cancelled", "skipped"] as const;

const partShape = z
  .object({
    uid: z.string().describe("Its name within the step; the same uid again is the same part."),
    sequence: z.number().int().describe("Its place among the parts of the step, from 1."),
    value: z.unknown(),
    at: z.number().describe("When it was stored, in epoch milliseconds."),
  })
  .meta({ id: "Part" });

const answer = pageOf(partShape).extend({
  ended: z.enum(ends).nullable().describe("How the step ended; null while it may produce more."),
});

type PartDeps = Pick<ProtocolEngine, "board" | "clock" | "parts" | "plan" | "reader" | "runs">;

export function partOperations(deps: PartDeps): Operation[] {
  return [
    operation({
      ...{ id: "listStepParts", tag: "runs", method: "GET", path: "/runs/:id/steps/:step/parts", action: "run.read" },
      summary: "Read the parts that a step has produced so far, oldest first; with `waitMs`, wait for more.",
      query: z.strictObject({ after: position, limit, waitMs }),
      answers: {
        200: {
          description: "A page. `next` is the `after` of the next page; null when the step has ended and no part is left.",
          schema: answer,
        },
        404: { description: "There is no such run, or it has no such step." },
      },
      async handle({ params, query, request }) {
        const source = await sourceOf(deps, params.id as string, params.step as string);
        const after = query.after ?? 0;
        const signal = AbortSignal.any([request.gone, deps.board.dismissed]);
        const waiting = { clock: deps.clock, waitMs: query.waitMs, signal };
        const { parts, ended } = await pollParts(deps.parts, { source, after, limit: query.limit }, waiting);
        const next = parts.length === 0 && ended !== null ? null : String(parts.at(-1)?.sequence ?? after);
        return json(200, { items: parts.map(partBody), next, ended });
      },
    }),
  ];
}

async function sourceOf(deps: PartDeps, runId: string, stepId: string): Promise<string> {
  const run = await knownRun((id) => deps.reader.run(id), runId);
  const source = await taskOfStep(deps, run.id, stepId);
  if (source !== undefined) return source;
  throw new LongshoreError("LONGSHORE_NOT_FOUND", `Run ${runId} has no step ${stepId}.`, { detail: { field: "step" } });
}

function partBody({ uid, sequence, value, at }: Part) {
  return { uid, sequence, value: parseExact(value) as Json, at };
}
