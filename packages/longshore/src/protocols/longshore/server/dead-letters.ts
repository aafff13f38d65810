// Dead letters over all runs, in groups, and a new try of the steps that have them.

import { z } from "zod";
import { wholeRow } from "../../../core/slices/slices.ts";
import { fingerprint } from "../../../engine/stats/fingerprint.ts";
import type { ProtocolEngine } from "../../server-half.ts";
import { bulkShape } from "../wire/bulk-shapes.ts";
import { deadLettersShape } from "../wire/dead-letter-shapes.ts";
import { dry, jobBody, perSecond } from "./bulk.ts";
import { json, type Operation, operation } from "./operation.ts";
import { cursor } from "./query.ts";

const tag = "dead letters";
/** Runs that one page visits: each may have thousands of steps. */
const runsMax = 50;
/** Letters of one page: the run that reaches this number is the last one. */
const lettersMax = 1_000;
const stepsMax = 1_000;
const charsMax = 512;

const name = z.string().min(1).max(charsMax);
const body = z.strictObject({
  steps: z
    .array(z.strictObject({ run: name, step: name }))
    .min(1)
    .max(stepsMax)
    .describe(`1 to ${stepsMax} steps, each with the id of its run`),
  dry,
  perSecond: perSecond("steps"),
});

type LetterDeps = Pick<ProtocolEngine, "bulk" | "deadLetterSources" | "deadLetters" | "reader" | "slices" | "summaries">;

export function deadLetterOperations(deps: LetterDeps): Operation[] {
  return [
    operation({
      ...{ id: "listDeadLetters", tag, method: "GET", path: "/dead-letters", action: "run.read" },
      summary: "List the inputs that steps could not process, over all runs, in groups of similar errors.",
      query: z.strictObject({ before: cursor }),
      answers: { 200: { description: "A page; it may be short, even empty, and still have a next.", schema: deadLettersShape } },
      handle: async ({ query }) => json(200, await letterPage(deps, query.before)),
    }),
    operation({
      ...{ id: "retryDeadLetters", tag, method: "POST", path: "/dead-letters/retry", action: "run.steer" },
      summary: "Begin again at steps that have dead letters, in their runs. Earlier attempts stay in the history of each step.",
      body,
      answers: { 202: { description: "An order to many runs, as `GET /bulk/{id}` shows it.", schema: bulkShape } },
      async handle({ body: { steps, dry, perSecond } }) {
        const job = await deps.bulk.create({
          ...{ action: "rerun-from", ids: steps.map(({ run }) => run), steps: steps.map(({ step }) => step) },
          ...{ filter: null, limit: stepsMax, reason: null, dry, perSecond: perSecond ?? null },
        });
        return json(202, jobBody(job));
      },
    }),
  ];
}

type LetterPage = z.output<typeof deadLettersShape>;

/** Only runs of dialects whose protocol knows dead letters are visited. */
async function letterPage(deps: LetterDeps, before: string | undefined): Promise<LetterPage> {
  const dialects = [...deps.deadLetterSources].map(({ dialect }) => dialect);
  if (dialects.length === 0) return { items: [], groups: [], next: null, looked: 0, of: null };
  const page = await deps.summaries.page({ dialects, limit: runsMax, ...(before === undefined ? {} : { before }) });
  const items: LetterPage["items"] = [];
  for (const { id: runId, workflow, state: runState } of page.items) {
    for await (const task of deps.reader.records(runId)) {
      await deps.slices.turn(wholeRow);
      for (const { uid, reason, error, tries } of await deps.deadLetters(task))
        if (items.length < lettersMax)
          items.push({ runId, workflow, runState, step: task.step, taskId: task.id, uid, reason, error, tries });
    }
  }
  return { items, groups: groupsOf(items), next: page.next, looked: page.looked, of: page.of };
}

function groupsOf(items: LetterPage["items"]): LetterPage["groups"] {
  const groups = new Map<string, LetterPage["groups"][number]>();
  for (const { reason, error, runId, step } of items) {
    const text = fingerprint(error ?? "");
    const key = JSON.stringify([reason, text]);
    const group = groups.get(key) ?? { reason, error: text, count: 0, steps: [] };
    group.count++;
    if (!group.steps.some((one) => one.run === runId && one.step === step)) group.steps.push({ run: runId, step });
    groups.set(key, group);
  }
  return [...groups.values()].sort((one, other) => other.count - one.count);
}
