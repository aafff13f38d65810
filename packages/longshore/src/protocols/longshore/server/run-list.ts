// The list of runs: with their data, or as summaries with many filters.

import { z } from "zod";
import { idOfUuid } from "../../../core/ids.ts";
import { isRunOpen, type Run } from "../../../engine/run/run.ts";
import { type RunFilter, type RunSummary, type SummaryQuery, type ValueFilter, valueCharsMax } from "../../../engine/run/run-summary.ts";
import { runsWaiting } from "../../../engine/run/run-waiting.ts";
import type { ProtocolEngine } from "../../server-half.ts";
import { anyRunListShape, type RunSummaryBody } from "../wire/run-list-shapes.ts";
import { runStates } from "../wire/shapes.ts";
import { waitingBody } from "./bodies.ts";
import { jsonPage } from "./json-page.ts";
import { badInput, checked, type Operation, operation } from "./operation.ts";
import { cursor, flag, limit, listOf, time, wholeNumber } from "./query.ts";

const nameCharsMax = 200;
/** Each workflow and each state has its own index, and a page reads from all of them. */
const namesMax = 20;
/** Maximum length of a filter text: people type less. */
const textCharsMax = 200;
const valuesMax = 8;

const state = z.enum(runStates);
const name = z.string().min(1).max(nameCharsMax);
const text = z.string().min(1).max(textCharsMax);

/** `input.customer.id:17`. */
const valueFilter = z
  .string()
  .max(2 * textCharsMax)
  .regex(/^(?:input|output)\.[^:]+:/)
  .transform((given): ValueFilter => {
    const colon = given.indexOf(":");
    const [of, ...path] = given.slice(0, colon).split(".");
    return { of: of as ValueFilter["of"], path, value: given.slice(colon + 1) };
  });

const valueFilters = z.union([valueFilter.transform((one) => [one]), z.array(valueFilter).max(valuesMax)]);

/** Parameters that only summaries have. */
const summaryOnly = {
  dialect: listOf(name, namesMax).optional().describe(`1 to ${namesMax} dialects with commas between them`),
  createdAfter: time
    .optional()
    .describe("a time: only runs that were created later. A child run is found only if the first run of its family was also created later"),
  createdBefore: time.optional().describe("a time: only runs that were created earlier"),
  endedAfter: time.optional().describe("a time: only runs that ended later"),
  endedBefore: time.optional().describe("a time: only runs that ended earlier"),
  minMs: wholeNumber.optional().describe("milliseconds: only runs that took at least this long, or have been open for at least this long"),
  error: text.optional().describe(`1 to ${textCharsMax} characters that the error contains`),
  parent: z.string().max(512).optional().describe("the id of a run: only runs that its steps have started"),
  alias: z.string().max(512).optional().describe("the id of the run in its protocol"),
  text: text
    .optional()
    .describe(`1 to ${textCharsMax} characters in id, workflow, alias, input, output or error; upper and lower case are the same`),
  where: valueFilters
    .optional()
    .describe(
      `PATH:VALUE, such as input.customer.id:17; up to ${valuesMax}, and all must match. Texts above ${valueCharsMax} characters never match`,
    ),
};

const query = z
  .strictObject({
    view: z.enum(["whole", "summary"]).default("whole").describe("whole: with inputs and outputs; summary: without them"),
    workflow: listOf(name, namesMax)
      .optional()
      .describe(`only runs of this workflow; with view=summary, 1 to ${namesMax} with commas between them`),
    state: listOf(state, runStates.length)
      .optional()
      .describe(`one of ${runStates.join(", ")}; with view=summary, several with commas between them`),
    ...summaryOnly,
    waiting: flag.describe("true adds what each open run waits for"),
    limit,
    before: cursor,
  })
  .superRefine((given, context) => {
    if (given.view === "summary") return;
    const refuse = (path: string, message: string) => context.addIssue({ code: "custom", path: [path], message });
    for (const name of Object.keys(summaryOnly) as (keyof typeof summaryOnly)[]) {
      if (given[name] !== undefined) refuse(name, "needs view=summary");
    }
    for (const name of ["workflow", "state"] as const) {
      if ((given[name]?.length ?? 0) > 1) refuse(name, "several need view=summary");
    }
  });

type ListQuery = z.output<typeof query>;

/** Returns what an open run waits for. */
export type WaitingOf = ReturnType<typeof runsWaiting>;

/** Parameters of a list that are not filters. */
const ofLists: ReadonlySet<string> = new Set(["view", "waiting", "limit", "before"]);

/** The filters of `GET /runs?view=summary`, written as its parameters. */
export function runFilterOf(given: Readonly<Record<string, string | readonly string[]>>): RunFilter {
  for (const name of Object.keys(given))
    if (ofLists.has(name)) throw badInput(`filter.${name} is not a filter.`, `filter.${name}`, "a filter");
  const { limit: _limit, before: _before, ...filter } = summaryQuery(checked(query, { ...given, view: "summary" }, "filter"));
  return filter;
}

type RunListDeps = Pick<ProtocolEngine, "reader" | "summaries" | "waiting"> & {
  bodyOf(run: Run, waitingOf: WaitingOf | undefined): Promise<unknown>;
};

export function runListOperation(deps: RunListDeps): Operation {
  return operation({
    ...{ id: "listRuns", tag: "runs", method: "GET", path: "/runs", action: "run.read", stored: true },
    summary: "List runs, newest first; with `view=summary`, without their data and with more filters.",
    query,
    answers: { 200: { description: "A page; it may be short, even empty, and still have a next.", schema: anyRunListShape } },
    async handle({ query: given }) {
      const waitingOf = given.waiting ? runsWaiting(deps) : undefined;
      if (given.view === "summary") {
        const page = await deps.summaries.page(summaryQuery(given));
        return jsonPage(deps.reader, page, (run) => summaryWith(run, waitingOf));
      }
      const { limit: most, before, workflow: [workflow] = [], state: [wanted] = [] } = given;
      const page = await deps.reader.runs({ limit: most, before, workflow, state: wanted });
      return jsonPage(deps.reader, page, (run) => deps.bodyOf(run, waitingOf));
    },
  });
}

async function summaryWith(run: RunSummary, waitingOf: WaitingOf | undefined): Promise<RunSummaryBody> {
  const body = summaryBody(run);
  if (waitingOf === undefined) return body;
  return { ...body, waiting: isRunOpen(run.state) ? waitingBody(await waitingOf(run.id, run.gate)) : null };
}

function summaryQuery(given: ListQuery): SummaryQuery {
  const { workflow, state: states, dialect, createdAfter, createdBefore, endedAfter, endedBefore, parent, where, ...rest } = given;
  return {
    ...{ workflows: workflow, states, dialects: dialect, values: where },
    created: createdAfter === undefined && createdBefore === undefined ? undefined : { after: createdAfter, before: createdBefore },
    ended: endedAfter === undefined && endedBefore === undefined ? undefined : { after: endedAfter, before: endedBefore },
    parent: parent === undefined ? undefined : (idOfUuid(parent) ?? parent),
    ...{ limit: rest.limit, before: rest.before, minMs: rest.minMs, error: rest.error, alias: rest.alias, text: rest.text },
  };
}

function summaryBody({ parentAttempt, gate: _gate, ...run }: RunSummary): RunSummaryBody {
  return { ...run, durationMs: run.endedAt === null ? null : run.endedAt - run.createdAt, parentAttempt: parentAttempt + 1 };
}
