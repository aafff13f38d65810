// What Conductor's operators use beside workflows: open tasks of a type, checks of runs, and the queues that end waiting tasks.

import type { Board } from "../../../engine/board/board.ts";
import { isOpen, type TaskRow } from "../../../engine/board/task.ts";
import type { Reader } from "../../../engine/run/reader.ts";
import type { HttpReply, HttpRequest } from "../../../net/http/http.ts";
import { parseAttemptId } from "../dialect/ids.ts";
import { settingsOf } from "../dialect/settings.ts";
import type { RunRenderer } from "./render-run.ts";
import { badRequest, json, jsonText, notFound, nothing, text } from "./replies.ts";
import { type ReportsByReference, settleMerged } from "./reports-by-reference.ts";
import { wholeIn } from "./request.ts";
import type { Workflows } from "./workflows.ts";

export interface AdministrationDeps {
  readonly reader: Reader;
  readonly renderer: RunRenderer;
  readonly board: Board;
  readonly workflows: Workflows;
  readonly references: ReportsByReference;
  readonly version: string;
}

/** Maximum number of tasks in one list, and maximum number of tasks that are visited for it. */
const pageMax = 1_000;
const visitedMax = 20_000;
/** Tasks in one read. */
const readMax = 100;

/** The statuses that have a queue. */
const queued = new Set(["COMPLETED", "FAILED"]);
const statuses = new Set([
  ...queued,
  ...["IN_PROGRESS", "CANCELED", "FAILED_WITH_TERMINAL_ERROR", "COMPLETED_WITH_ERRORS", "SCHEDULED", "TIMED_OUT", "SKIPPED"],
]);

export class Administration {
  readonly #deps: AdministrationDeps;

  constructor(deps: AdministrationDeps) {
    this.#deps = deps;
  }

  /** The real server returns its system properties: paths, addresses and the text of its database's URL. */
  config = (): HttpReply => json({ version: this.#deps.version });

  /** The open tasks of a type, newest first. */
  tasks = async (request: HttpRequest): Promise<HttpReply> => {
    const type = request.params.type as string;
    const start = wholeIn(request, "start", 0);
    const count = Math.min(wholeIn(request, "count", 100), pageMax);
    if (start < 0 || start > visitedMax) throw badRequest(`start is ${start}, expected a number from 0 to ${visitedMax}.`);
    return jsonText(await this.#deps.reader.listBody(() => this.#texts(type, start, start + Math.max(count, 0)), { cut: true }));
  };

  async *#texts(type: string, from: number, to: number): AsyncGenerator<string, void, void> {
    let at = 0;
    for await (const task of this.#open(type)) {
      if (at >= to) return;
      if (at++ >= from) yield* this.#textOf(task);
    }
  }

  async *#open(type: string): AsyncGenerator<TaskRow, void, void> {
    let before: string | undefined;
    for (let visited = 0; visited < visitedMax; ) {
      const page = await this.#deps.reader.tasks({ lane: type, limit: readMax, ...(before === undefined ? {} : { before }) });
      for (const task of page.items) {
        visited++;
        if (isOpen(task.state)) yield task;
      }
      if (page.next === null) return;
      before = page.next;
    }
  }

  async *#textOf(task: TaskRow): AsyncGenerator<string, void, void> {
    const { reader, renderer } = this.#deps;
    const run = task.runId === null ? undefined : await reader.runHead(task.runId);
    if (run === undefined) return;
    const recorded = (await renderer.recordsOf(task, await renderer.viewOf(run))).at(-1);
    if (recorded !== undefined) yield renderer.taskText(recorded, run, settingsOf(run));
  }

  /** Event queues hold messages for event handlers. This server has none that wait. */
  queues = (): HttpReply => json({});

  /** Here a run is decided when something in it changes. So there is nothing to put into a queue, which `false` means. */
  sweep = async (request: HttpRequest): Promise<HttpReply> => text(`false.${(await this.#known(request)).id}`);

  /** A task and its place in a queue are one row, so there is nothing to repair. */
  repair = async (request: HttpRequest): Promise<HttpReply> => {
    await this.#known(request);
    return text("false");
  };

  /** Ends a waiting task by its reference name. */
  update = async (request: HttpRequest): Promise<HttpReply> => {
    checkQueue(request);
    await this.#deps.references.settlePending(request);
    return nothing;
  };

  /** Ends a waiting task by its id. */
  updateById = async (request: HttpRequest): Promise<HttpReply> => {
    checkQueue(request);
    const { workflow, task: taskId } = request.params as { workflow: string; task: string };
    const id = parseAttemptId(taskId);
    const task = id === undefined ? undefined : await this.#deps.reader.task(id.taskId);
    if (id === undefined || task?.runId !== workflow || task.attempt !== id.attempt || !isOpen(task.state))
      throw notFound(`Found no running task ${taskId} of workflow ${workflow} to update`);
    await settleMerged(this.#deps, task, request);
    return nothing;
  };

  #known(request: HttpRequest) {
    return this.#deps.workflows.known(request.params.workflow as string);
  }
}

function checkQueue({ params }: HttpRequest): void {
  const status = params.status as string;
  if (!statuses.has(status)) throw badRequest(`The status is ${JSON.stringify(status.slice(0, 100))}, expected COMPLETED or FAILED.`);
  if (!queued.has(status)) throw badRequest(`There is no queue for handling ${status} status`);
}
