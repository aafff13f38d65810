// Runs: starting, reading, cancelling, retrying.

import { z } from "zod";
import { idOfUuid } from "../../../core/ids.ts";
import { writeExact } from "../../../core/json/json-exact.ts";
import { noSuchRun } from "../../../engine/run/no-such-run.ts";
import { isRunOpen, type Run } from "../../../engine/run/run.ts";
import { awaitedGate, runsWaiting } from "../../../engine/run/run-waiting.ts";
import type { HttpRequest } from "../../../net/http/http.ts";
import type { ProtocolEngine } from "../../server-half.ts";
import { delay, priority } from "../dialect/code-source.ts";
import { apiPrefix, journalShape, runShape } from "../wire/shapes.ts";
import { runBody, waitingBody } from "./bodies.ts";
import { json, jsonText, type Operation, operation } from "./operation.ts";
import { position, waitMs } from "./query.ts";
import { runListOperation, type WaitingOf } from "./run-list.ts";
import { givingUp } from "./waits.ts";

const tag = "runs";
/** Names and keys are stored in indexes: long ones would make every row expensive. */
const nameCharsMax = 200;
const keyCharsMax = 256;
/** Control characters in a name would break logs and terminals, and SQLite may cut a text at NUL. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused.
const plain = /^[^\u0000-\u001f\u007f]*$/;

const startBody = z.strictObject({
  workflow: z.string().min(1).max(nameCharsMax).regex(plain).describe("the name of a definition"),
  input: z.unknown().optional().describe("any JSON value; null when absent"),
  key: z
    .string()
    .min(1)
    .max(keyCharsMax)
    .regex(plain)
    .optional()
    .describe(`a text of 1 to ${keyCharsMax} characters; starting twice with one key and input starts one run`),
  delayMs: delay.optional().describe(`${delay.description}, until the run begins; 0 when absent`),
  priority: priority.optional().describe(`${priority.description}; added to the priority of its tasks`),
});

export const runNotFound = { 404: { description: "There is no such run." } };

type RunDeps = Pick<ProtocolEngine, "board" | "clock" | "runs" | "reader" | "shown" | "journal" | "summaries" | "waiting">;

export function runOperations(deps: RunDeps): Operation[] {
  const { runs, shown } = deps;
  const bodyOf = async (run: Run) => runBody(await shown.run(run));
  const bodyWith = async (run: Run, waitingOf: WaitingOf | undefined) => {
    if (waitingOf === undefined) return bodyOf(run);
    const waiting = isRunOpen(run.state) ? waitingBody(await waitingOf(run.id, awaitedGate(run))) : null;
    return { ...(await bodyOf(run)), waiting };
  };
  const wholeBody = (run: Run) => bodyWith(run, isRunOpen(run.state) ? runsWaiting(deps) : undefined);
  /** The run at its end, or after this time. */
  const atEnd = (run: Run, ms: number, request: HttpRequest): Run | Promise<Run> =>
    ms === 0 || !isRunOpen(run.state) ? run : knownRun((id) => runs.result(id, givingUp(deps, request, ms)), run.id);
  const newRun = async (run: Run) => json(201, await bodyOf(run), { location: `${apiPrefix}/runs/${run.id}` });
  return [
    operation({
      ...{ id: "startRun", tag, method: "POST", path: "/runs", action: "run.start" },
      summary: "Start a run; with `waitMs`, wait for its end.",
      query: z.strictObject({ waitMs }),
      body: startBody,
      answers: {
        201: { description: "It has started. With `waitMs`: its state at the end, or when the wait is over.", schema: runShape },
        200: { description: "A run with this key was started before; this is its current state.", schema: runShape },
        404: { description: "There is no such workflow." },
        409: { description: "The run with this key was started with another input; `run` names it." },
      },
      async handle({ body: { input, ...options }, query, request }) {
        const { run, created } = await runs.start({ ...options, input: writeExact(input ?? null) });
        const last = await atEnd(run, query.waitMs, request);
        return created ? newRun(last) : json(200, await bodyOf(last));
      },
    }),
    runListOperation({ ...deps, bodyOf: bodyWith }),
    operation({
      ...{ id: "getRun", tag, method: "GET", path: "/runs/:id", action: "run.read", stored: true },
      summary: "Read one run; with `waitMs`, wait for its end.",
      query: z.strictObject({ waitMs }),
      answers: { 200: { description: "Its current state: it may still run when the wait is over.", schema: runShape }, ...runNotFound },
      async handle({ params, query, request }) {
        const run = await knownRun((id) => runs.run(id), params.id);
        return json(200, await wholeBody(await atEnd(run, query.waitMs, request)));
      },
    }),
    operation({
      ...{ id: "getJournal", tag, method: "GET", path: "/runs/:id/journal", action: "run.read" },
      summary: "Read the commands of a durable function with their results, to replay it.",
      query: z.strictObject({ after: position }),
      answers: { 200: { description: "A page; the first one has the input.", schema: journalShape }, ...runNotFound },
      async handle({ params, query: { after = 0 } }) {
        const run = await knownRun((id) => runs.run(id), params.id);
        return jsonText(200, (await deps.journal.page(run.id, after)) ?? '{"entries":[]}');
      },
    }),
  ];
}

/** The id may be written as a UUID: some protocols show it in this form, because their clients require a UUID. */
export async function knownRun<Found = Run>(find: (id: string) => Promise<Found | undefined>, id = ""): Promise<Found> {
  const run = await find(idOfUuid(id) ?? id);
  if (run === undefined) throw noSuchRun(id);
  return run;
}
