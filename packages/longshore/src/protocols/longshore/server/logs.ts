// The logs of a run: a page of stored chunks, and a stream that sends stored chunks first and then new ones.
//
//   event: log, id: <position>    one chunk of text; none is left out
//   event: lagged                 the reader is slower than the workers: nothing is lost, but it is behind
//   event: end the run or the requested step has ended, no worker works on it any more, and everything has been sent
//
// Only `log` frames carry an id, so that a client never resumes from a control frame.

import { z } from "zod";
import { LongshoreError } from "../../../core/errors.ts";
import { isOpen } from "../../../engine/board/task.ts";
import { isFullPage, type LogSource, type StoredChunk } from "../../../engine/log/store.ts";
import type { Plan } from "../../../engine/run/plan.ts";
import { isRunOpen, type Run } from "../../../engine/run/run.ts";
import { stepTaskIn } from "../../../engine/run/step-task.ts";
import type { EventSink, ServerSentEvent } from "../../../net/http/http.ts";
import type { ProtocolEngine } from "../../server-half.ts";
import { chunkShape } from "../wire/shapes.ts";
import { earlierLog } from "./log-search.ts";
import { badInput, json, type Operation, operation } from "./operation.ts";
import { limit, position, wholeNumber } from "./query.ts";
import { knownRun, runNotFound } from "./runs.ts";

const tag = "logs";
const step = z.string().max(512).optional().describe("only the log of this step");
/** How many names a reader of a log keeps: a function may have 20,000 steps, and there may be hundreds of readers. */
const namesMax = 1_000;

const textCharsMax = 200;
/** Parameters that only a log from its end has. */
const newestOnly = {
  before: position.describe("a whole number: the `next` of the page before, with order=newest"),
  attempt: wholeNumber.pipe(z.number().min(1)).optional().describe("only this attempt of each step, from 1"),
  stream: z.enum(["stdout", "stderr"]).optional().describe("only this stream"),
  text: z
    .string()
    .min(1)
    .max(textCharsMax)
    .optional()
    .describe(`only lines with this text of 1 to ${textCharsMax} characters; upper and lower case are the same`),
};
const logQuery = z
  .strictObject({
    step,
    order: z
      .enum(["oldest", "newest"])
      .default("oldest")
      .describe("which page is first: that with the oldest or with the newest chunks; oldest when absent"),
    after: position,
    ...newestOnly,
    limit,
  })
  .superRefine((given, context) => {
    const wrong = given.order === "newest" ? (["after"] as const) : (Object.keys(newestOnly) as (keyof typeof newestOnly)[]);
    for (const name of wrong) {
      if (given[name] === undefined) continue;
      context.addIssue({
        code: "custom",
        path: [name],
        message: given.order === "newest" ? "not with order=newest" : "needs order=newest",
      });
    }
  });

const logPageShape = z.object({
  items: z.array(chunkShape),
  next: z.string().nullable(),
  looked: z
    .number()
    .int()
    .optional()
    .describe("With order=newest: how many characters this page has visited. A page may be short, even empty, and still have a next."),
});

type LogDeps = Pick<ProtocolEngine, "listen" | "logs" | "logStore" | "plan" | "reader" | "slices">;

export function logOperations(deps: LogDeps): Operation[] {
  wakeAtTheEnd(deps);
  return [
    operation({
      ...{ id: "listRunLogs", tag, method: "GET", path: "/runs/:id/logs", action: "log.read", stored: true },
      summary: "Read the logs of one run, in order of arrival; with `order=newest`, from its end, with filters.",
      query: logQuery,
      answers: {
        200: { description: "A page in order of arrival. `next` is null when there is nothing more now.", schema: logPageShape },
        ...runNotFound,
      },
      async handle({ params, query }) {
        const { source, body } = await sourceOf(deps, params.id as string, query.step);
        if (query.order === "newest") return json(200, await fromTheEnd(deps, source, query, body));
        const found = await deps.logStore.since(source, query.after ?? 0, query.limit);
        const next = isFullPage(found, query.limit) ? String(found.at(-1)?.position) : null;
        const items: Awaited<ReturnType<typeof body>>[] = [];
        for (const chunk of found) items.push(await body(chunk));
        return json(200, { items, next });
      },
    }),
    operation({
      ...{ id: "streamRunLogs", tag, method: "GET", path: "/runs/:id/logs/stream", action: "log.read" },
      summary: "Follow the logs of one run: what is stored, then what arrives, until the run is over. Resumes by Last-Event-ID.",
      openEnded: true,
      query: z.strictObject({ step, after: position }),
      answers: { 200: { description: "Events `log`, `lagged` and `end`.", contentType: "text/event-stream" }, ...runNotFound },
      async handle({ params, query, request }) {
        const followed = await sourceOf(deps, params.id as string, query.step);
        const after = resumeAfter(request.headers["last-event-id"]) ?? query.after ?? 0;
        return { status: 200, events: (sink) => void follow(deps, followed, after, sink) };
      },
    }),
  ];
}

async function fromTheEnd(deps: LogDeps, source: LogSource, query: z.output<typeof logQuery>, body: Followed["body"]) {
  const { before, attempt, stream, text, limit: most } = query;
  const page = await earlierLog(deps, source, {
    before,
    limit: most,
    stream,
    text,
    attempt: attempt === undefined ? undefined : attempt - 1,
  });
  const items: Awaited<ReturnType<typeof body>>[] = [];
  for (const chunk of page.chunks) items.push(await body(chunk));
  return { items, next: page.next === null ? null : String(page.next), looked: page.looked };
}

interface Followed {
  readonly run: Run;
  readonly source: LogSource;
  body(chunk: StoredChunk): Promise<object>;
}

async function sourceOf(deps: LogDeps, runId: string, stepId: string | undefined): Promise<Followed> {
  const run = await knownRun((id) => deps.reader.run(id), runId);
  const definition = await deps.reader.definitionById(run.definitionId);
  if (definition === undefined) throw new Error(`Run ${runId} has no definition ${run.definitionId}.`);
  const plan = deps.plan(definition);
  const names = new StepNames(deps.reader, plan);
  const body = async (chunk: StoredChunk) => chunkBody(await names.of(chunk), chunk);
  if (stepId === undefined) return { run, source: { runId: run.id }, body };
  const taskId = await stepTaskIn(deps.reader, plan, { runId: run.id, stepId });
  if (taskId === undefined)
    throw new LongshoreError("LONGSHORE_NOT_FOUND", `Run ${runId} has no step ${stepId}.`, { detail: { field: "query.step" } });
  return { run, source: { taskId }, body };
}

function chunkBody(stepId: string, chunk: StoredChunk) {
  const { position: at, taskId, attempt, stream, sequence, data } = chunk;
  return { position: at, taskId, step: stepId, attempt: attempt + 1, stream, sequence, at: chunk.at, data };
}

/** The name of the step of each log line. Names of a durable function's steps are in the rows of its commands; each is read once. */
class StepNames {
  readonly #reader: LogDeps["reader"];
  readonly #plan: Plan;
  readonly #known = new Map<string, string>();

  constructor(reader: LogDeps["reader"], plan: Plan) {
    this.#reader = reader;
    this.#plan = plan;
  }

  async of({ taskId, attempt }: StoredChunk): Promise<string> {
    const planned = this.#plan.nodes[Number(taskId.slice(taskId.lastIndexOf(".") + 1))];
    if (planned !== undefined) return planned.id;
    // A later attempt may be another command, because a function that begins again may give other commands.
    const key = `${taskId} ${attempt}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    await this.#reader.turn(1);
    const name = (await this.#reader.taskHead(taskId))?.step ?? "";
    if (this.#known.size === namesMax) this.#known.clear();
    this.#known.set(key, name);
    return name;
  }
}

/** Never rejects: a reader whose store failed gets the end of its stream without `end`, and resumes from its last id. */
async function follow(deps: LogDeps, { run, source, body }: Followed, after: number, sink: EventSink): Promise<void> {
  const ended = async () => isOver(deps, await deps.reader.run(run.id), source);
  try {
    for await (const event of deps.logs.follow(source, { after, signal: sink.gone, ended, reader: sink })) {
      const frame =
        event.kind === "lagged"
          ? { event: "lagged", data: JSON.stringify({ behind: event.behind }) }
          : { event: "log", id: String(event.chunk.position), data: JSON.stringify(await body(event.chunk)) };
      if (!(await send(sink, frame))) return;
    }
    if (sink.gone.aborted) return;
    const state = (await deps.reader.run(run.id))?.state ?? run.state;
    await send(sink, { event: "end", data: JSON.stringify({ state }) });
  } catch {
    // The stream ends without the event `end`, which shows the client that something failed.
  } finally {
    sink.end();
  }
}

/** Workers of a cancelled run may still send their last lines. */
async function isOver(deps: LogDeps, run: Run | undefined, source: LogSource): Promise<boolean> {
  if (run === undefined) return true;
  if ("taskId" in source) {
    const task = await deps.reader.task(source.taskId);
    return task === undefined ? !isRunOpen(run.state) : !isOpen(task.state);
  }
  if (isRunOpen(run.state)) return false;
  return (await deps.reader.heads(run.id)).every((task) => !isOpen(task.state));
}

/** Followers read again when a run or one of its tasks ends. */
function wakeAtTheEnd({ listen, logs }: LogDeps): void {
  listen({
    task(task) {
      if (logs.following === 0 || isOpen(task.state)) return;
      logs.wake({ taskId: task.id });
      if (task.runId !== null) logs.wake({ runId: task.runId });
    },
    run(run) {
      if (logs.following > 0 && !isRunOpen(run.state)) logs.wake({ runId: run.id });
    },
  });
}

function resumeAfter(header: string | string[] | undefined): number | undefined {
  if (header === undefined || header === "") return undefined;
  if (typeof header === "string" && /^\d{1,15}$/.test(header)) return Number(header);
  throw badInput("Last-Event-ID is not a position of this log.", "last-event-id", "the id of an event of this stream");
}

/** Waits for a slow reader; returns false when it has disconnected. */
async function send(sink: EventSink, frame: ServerSentEvent): Promise<boolean> {
  while (!sink.gone.aborted) {
    if (sink.send(frame)) return true;
    await sink.drained();
  }
  return false;
}
