// Serves inputs and outputs of any size as separate JSON texts, and the attempts of a task with their inputs and outputs.

import { z } from "zod";
import { wholeHead } from "../../../core/text.ts";
import type { TaskRow } from "../../../engine/board/task.ts";
import type { AttemptView } from "../../../engine/run/reader.ts";
import type { HttpReply } from "../../../net/http/http.ts";
import type { ProtocolEngine } from "../../server-half.ts";
import { attemptShape, pageOf } from "../wire/shapes.ts";
import { attemptBody } from "./bodies.ts";
import { type Answer, jsonText, type Operation, operation } from "./operation.ts";
import { flag, wholeNumber } from "./query.ts";
import { knownRun, runNotFound } from "./runs.ts";
import { knownTask, noSuchTask } from "./tasks.ts";

/** Longer values of an attempt are left out, because each of a thousand attempts may have megabytes. */
const attemptCharsMax = 65_536;
/** Characters of all values in one answer. When there are more, the oldest attempts have no values. */
const pageCharsMax = 2 * 1_048_576;

const max = wholeNumber.optional().describe("the characters that are sent at most; all when absent");

const answers: Readonly<Record<number, Answer>> = {
  200: {
    description: "The JSON text. `longshore-chars` is its length; when `max` has cut it, it is sent as `text/plain`.",
    contentType: "application/json",
  },
  204: { description: "There is no such value, or not yet." },
};

type DataDeps = Pick<ProtocolEngine, "originOf" | "reader" | "shown" | "slices">;

export function dataOperations(deps: DataDeps): Operation[] {
  const { reader, shown } = deps;
  const ofRun = (field: "input" | "output", id: string) =>
    operation({
      ...{ id, tag: "runs", method: "GET", path: `/runs/:id/${field}`, action: "run.read", stored: true },
      summary: `Read the ${field} of a run as JSON text.`,
      query: z.strictObject({ max }),
      answers: { ...answers, ...runNotFound },
      handle: async ({ params, query }) =>
        valueReply((await shown.run(await knownRun((run) => reader.run(run), params.id)))[field], query.max),
    });
  const ofTask = (field: "input" | "output", id: string) =>
    operation({
      ...{ id, tag: "tasks", method: "GET", path: `/tasks/:id/${field}`, action: "task.read", stored: true },
      summary: `Read the ${field} of the current attempt of a task as JSON text.`,
      query: z.strictObject({ max }),
      answers: { ...answers, ...noSuchTask },
      handle: async ({ params, query }) => valueReply((await shown.task(await knownTask(deps, params.id as string)))[field], query.max),
    });
  return [
    ofRun("input", "getRunInput"),
    ofRun("output", "getRunOutput"),
    ofTask("input", "getTaskInput"),
    ofTask("output", "getTaskOutput"),
    operation({
      ...{ id: "listTaskAttempts", tag: "tasks", method: "GET", path: "/tasks/:id/attempts", action: "task.read", stored: true },
      summary: "List the attempts of one task, oldest first; with `io`, with their inputs and outputs.",
      query: z.strictObject({ io: flag.describe(`true adds inputs and outputs of up to ${attemptCharsMax} characters each`) }),
      answers: { 200: { description: "The last one is the current one.", schema: pageOf(attemptShape) }, ...noSuchTask },
      async handle({ params, query: { io } }) {
        const task = await knownTask(deps, params.id as string);
        const attempts = await reader.attempts(task.id, io ? pageCharsMax : 0);
        const texts = io ? await withValues(deps, task, attempts) : attempts.map((attempt) => JSON.stringify(attemptBody(attempt)));
        return jsonText(200, await reader.listBody(() => texts, { around: () => ['{"items":[', '],"next":null}'] }));
      },
    }),
  ];
}

function valueReply(text: string | null, most = Number.POSITIVE_INFINITY): HttpReply {
  if (text === null) return { status: 204 };
  const isCut = text.length > most;
  const type = isCut ? "text/plain; charset=utf-8" : "application/json";
  const headers = { "content-type": type, "longshore-chars": String(text.length) };
  return { status: 200, headers, body: isCut ? wholeHead(text, most) : text };
}

/** An attempt without a stored input has the input of the next attempt. */
async function withValues({ shown, slices }: DataDeps, task: TaskRow, attempts: readonly AttemptView[]): Promise<string[]> {
  const texts: string[] = [];
  let input: string | null = null;
  for (const attempt of attempts.toReversed()) {
    input = attempt.input ?? input;
    const given = input === null ? null : (await shown.task({ ...task, input })).input;
    slices.spent((given?.length ?? 0) + (attempt.output?.length ?? 0));
    const head = JSON.stringify(attemptBody(attempt)).slice(0, -1);
    texts.push(`${head}${fieldText("input", given)}${fieldText("output", attempt.output)}}`);
  }
  return texts.reverse();
}

/** The values are JSON texts, so nothing is parsed. */
function fieldText(name: "input" | "output", text: string | null): string {
  if (text === null) return "";
  return `,"${name}Chars":${text.length}${text.length > attemptCharsMax ? "" : `,"${name}":${text}`}`;
}
