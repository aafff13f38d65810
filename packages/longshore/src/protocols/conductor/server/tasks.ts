// The requests of workers: polls and updates. README.md, "The life of a task".
//
// What happens when a worker polls: `poll` or `pollBatch` below -> engine/board/board.ts `claim` -> engine/board/local-board.ts `claim`. A task's id on this wire
// names the task and the try, so a report on a try that has ended is recognised as late by its id.

import type { Clock } from "../../../core/clock.ts";
import type { Json } from "../../../core/json/json.ts";
import { parseExact, writeExact } from "../../../core/json/json-exact.ts";
import type { Growth } from "../../../core/list-text.ts";
import type { Verdict } from "../../../core/verdict.ts";
import type { Board } from "../../../engine/board/board.ts";
import type { Extension } from "../../../engine/board/store.ts";
import { type Hold, isOpen, type TaskRow } from "../../../engine/board/task.ts";
import type { Workers } from "../../../engine/board/workers.ts";
import type { Logs } from "../../../engine/log/log.ts";
import type { Reader } from "../../../engine/run/reader.ts";
import type { Runs } from "../../../engine/run/runs.ts";
import type { HttpReply, HttpRequest } from "../../../net/http/http.ts";
import { dialectName } from "../dialect/compile.ts";
import { parseAttemptId } from "../dialect/ids.ts";
import { isSystemLane } from "../dialect/operators.ts";
import { laneName } from "../dialect/placement.ts";
import { fillSecrets, namesSecret } from "../dialect/secrets.ts";
import { settingsOf } from "../dialect/settings.ts";
import { pollReturnsHeader, pollTimeoutMsDefault, pollTimeoutMsMax } from "../wire/shapes.ts";
import { RecentPolls } from "./recent-polls.ts";
import type { Registry } from "./registry.ts";
import type { RunRenderer } from "./render-run.ts";
import { currentTry, nobody, renderTask, type TaskSurroundings, type Try } from "./render-task.ts";
import { badRequest, json, jsonText, noContent, notFound, text } from "./replies.ts";
import { neededInQuery, textInQuery, wholeIn } from "./request.ts";
import { logsOf, parseResult, type Report } from "./result-body.ts";
import { type DefinitionView, loosePart } from "./view.ts";

export interface TasksDeps {
  readonly reader: Reader;
  readonly clock: Clock;
  readonly board: Board;
  readonly runs: Runs;
  readonly logs: Logs;
  readonly workers: Workers;
  readonly registry: Registry;
  readonly renderer: RunRenderer;
  /** Secrets and variables by name. They are in no record, and only the worker that runs a task receives them. */
  secret(name: string): string | null;
  variable(name: string): string | null;
}

/** Maximum number of tasks in one response; a worker that requests more gets them with the next poll. */
const countMax = 1_000;
/** The lease of an attempt when neither its definition nor its workflow sets it. */
const responseSecondsDefault = 3_600;
const protocolName = "conductor";

export class Tasks {
  readonly polls = new RecentPolls();
  readonly #deps: TasksDeps;

  constructor(deps: TasksDeps) {
    this.#deps = deps;
  }

  poll = async (request: HttpRequest): Promise<HttpReply> => {
    const tasks = await this.#take(request, 1, pollTimeoutMsDefault);
    const [first] = tasks;
    return first === undefined ? noContent : this.#handed(tasks, await this.#render(first));
  };

  pollBatch = async (request: HttpRequest): Promise<HttpReply> => {
    const count = Math.min(wholeIn(request, "count", 1), countMax);
    const timeoutMs = wholeIn(request, "timeout", pollTimeoutMsDefault);
    if (timeoutMs > pollTimeoutMsMax) throw badRequest("Long Poll Timeout value cannot be more than 5 seconds");
    const tasks = count < 1 ? [] : await this.#take(request, count, timeoutMs);
    if (tasks.length === 0) return emptyBatch;
    const texts =
      tasks.length === 1 ? [await this.#render(tasks[0] as TaskRow)] : await Promise.all(tasks.map((task) => this.#render(task)));
    return this.#handed(tasks, `[${texts.join(",")}]`);
  };

  update = async (request: HttpRequest): Promise<HttpReply> => {
    const report = parseResult(request);
    const tried = await this.#tried(report);
    if (tried === undefined) throw await this.#unknown(report);
    await this.#report(tried, report);
    return text(report.taskId);
  };

  /** Like `update`; the response also contains the next task of the same type. Never 404: clients would take it for a missing endpoint. */
  updateV2 = async (request: HttpRequest): Promise<HttpReply> => {
    const report = parseResult(request);
    const tried = await this.#tried(report);
    if (tried === undefined) return noContent;
    const { lane } = tried.task;
    const reporting = this.#report(tried, report);
    const goesOn = report.extendLease || report.status === "IN_PROGRESS" || lane === null;
    // The claim is made in the same tick, so that the report and the next task share one commit.
    const next = goesOn ? noTasks : this.#claim(lane.name, report.workerId ?? "", 1, 0, request);
    const [, tasks] = await Promise.all([reporting, next]);
    const [first] = tasks;
    return first === undefined ? noContent : this.#handed(tasks, await this.#render(first));
  };

  get = async (request: HttpRequest): Promise<HttpReply> => {
    const taskId = request.params.task as string;
    const body = await this.#deps.reader.longBody(async (growth) => {
      const shown = await this.#textOf(taskId, growth);
      if (shown === undefined) throw notFound(`Task not found for taskId: ${taskId}`);
      return [shown];
    });
    return jsonText(body);
  };

  /** One try of a task, the newest or an earlier one. */
  async #textOf(attemptId: string, growth: Growth): Promise<string | undefined> {
    const { reader } = this.#deps;
    const id = parseAttemptId(attemptId);
    const task = id === undefined ? undefined : await reader.task(id.taskId);
    if (id === undefined || task === undefined || task.state === "forgotten" || id.attempt > task.attempt) return undefined;
    // The texts of earlier tries may be as large again. So they are read only when it is this task's turn.
    growth.count(task.input.length + (task.output?.length ?? 0));
    await growth.turn();
    const run = task.runId === null ? undefined : await reader.runHead(task.runId);
    if (run === undefined) return id.attempt === task.attempt ? this.#render(task) : undefined;
    const view = await this.#deps.renderer.viewOf(run);
    const records = await this.#deps.renderer.recordsOf(task, view);
    // A try that was cancelled with its run and continued in its place is shown as the try that replaced it.
    const recorded = records.find(({ shown }) => shown.attempt >= id.attempt);
    return recorded === undefined ? undefined : this.#deps.renderer.taskText(recorded, run, settingsOf(run));
  }

  pollData = (request: HttpRequest): HttpReply => json(this.polls.of(neededInQuery(request, "taskType")));

  allPollData = async (): Promise<HttpReply> => jsonText(await this.#deps.reader.listBody(() => textsOf(this.polls.all())));

  /** The try that a report is about; undefined when there is none. */
  async #tried(report: Report): Promise<Tried | undefined> {
    const id = parseAttemptId(report.taskId);
    const task = id === undefined ? undefined : await this.#deps.board.task(id.taskId);
    if (id === undefined || task === undefined || id.attempt > task.attempt) return undefined;
    // As on the real server, the report may name another run, if that run exists.
    const isOwn = (task.runId ?? task.id) === report.workflowInstanceId;
    return isOwn || (await this.#deps.reader.runHead(report.workflowInstanceId)) !== undefined ? { task, attempt: id.attempt } : undefined;
  }

  /** Calls the board before it returns: the caller's next operation runs after the report, in the same commit. */
  #report({ task, attempt }: Tried, report: Report): Promise<unknown> {
    const settled = settle(this.#deps.board, { taskId: task.id, attempt }, task, report);
    if (report.logs.length === 0 || report.extendLease) return settled;
    return Promise.all([settled, this.#log(task, attempt, report)]);
  }

  async #unknown(report: Report): Promise<Error> {
    const run = await this.#deps.runs.run(report.workflowInstanceId);
    if (run === undefined) return notFound(`No such workflow found by id: ${report.workflowInstanceId}`);
    return notFound(`No such task found by id: ${report.taskId}`);
  }

  #log(task: TaskRow, attempt: number, report: Report): Promise<unknown> {
    const chunks = logsOf(report.logs, this.#deps.clock.now());
    return this.#deps.logs.append({ taskId: task.id, runId: task.runId, attempt, grant: task.grant, chunks });
  }

  #take(request: HttpRequest, count: number, waitMs: number): Promise<TaskRow[]> {
    const type = request.params.type as string;
    const domain = textInQuery(request, "domain");
    const worker = textInQuery(request, "workerid") ?? "";
    this.polls.polled(type, domain, worker, this.#deps.clock.now());
    return this.#claim(laneName(type, domain), worker, count, waitMs, request);
  }

  async #claim(lane: string, worker: string, max: number, waitMs: number, request: HttpRequest): Promise<TaskRow[]> {
    const reach = { names: [lane], labels: noLabels };
    const holder = worker === "" ? nobody : worker;
    this.#deps.workers.seen(holder, { protocol: protocolName, reach, everyMs: pollTimeoutMsMax, agent: request.headers["user-agent"] });
    const termMs = responseSecondsDefault * 1_000;
    if (waitMs <= 0) return this.#deps.board.claim({ reach, holder, termMs, max });
    return this.#deps.board.claim({ reach, holder, termMs, max, waitMs, signal: request.gone });
  }

  async #render(task: TaskRow): Promise<string> {
    const now = this.#deps.clock.now();
    const run = task.runId === null ? undefined : await this.#deps.runs.run(task.runId);
    if (run === undefined) {
      const step = loosePart(task);
      return renderTask(currentTry(task, step), {
        step,
        workflowId: task.id,
        workflowType: "",
        settings: { version: 1, priority: 0 },
        now,
      });
    }
    const view = await this.#deps.renderer.viewOf(run);
    // A later attempt also contains the end of the one before it.
    const recorded = task.attempt > task.firstAttempt ? (await this.#deps.renderer.recordsOf(task, view)).at(-1) : undefined;
    const step = view.steps[task.node] ?? loosePart(task);
    const around = { step, workflowId: run.id, workflowType: run.workflow, settings: settingsOf(run), now };
    const { shown, before } = recorded ?? { shown: currentTry(task, step), before: undefined };
    return this.#handOut(task, shown, { ...around, before }, view);
  }

  /** The task as the worker receives it: with secrets, and with the values that its definition requests by name. */
  #handOut(task: TaskRow, shown: Try, around: TaskSurroundings, view: DefinitionView): string {
    if (view.dialect !== dialectName) return renderTask(shown, around);
    const { secret, variable } = this.#deps;
    const input = namesSecret(task.input) ? writeExact(fillSecrets(parseExact(task.input) as Json, secret)) : task.input;
    const names = around.step.definition?.runtimeMetadata ?? [];
    if (names.length === 0) return renderTask({ ...shown, input }, around);
    const found = names.map((name) => [name, secret(name) ?? variable(name)] as const);
    const known = found.filter((entry): entry is [string, string] => entry[1] !== null);
    const runtimeMetadata = known.length === 0 ? undefined : Object.fromEntries(known);
    return renderTask({ ...shown, input }, { ...around, runtimeMetadata });
  }

  /** Gives back tasks whose response the client never read. */
  #handed(tasks: readonly TaskRow[], body: string): HttpReply {
    const undelivered = () => {
      for (const { id: taskId, grant } of tasks) this.#deps.board.giveBack({ taskId, grant }).catch(() => undefined);
    };
    return { ...jsonText(body), headers: polledHeaders, undelivered };
  }
}

/** A task, and which try of it is meant. */
interface Tried {
  readonly task: TaskRow;
  readonly attempt: number;
}

const noTasks: readonly TaskRow[] = [];
const noLabels: readonly string[] = [];
const polledHeaders = { "content-type": "application/json", [pollReturnsHeader]: "true" } as const;
const emptyBatch: HttpReply = { status: 200, headers: polledHeaders, body: "[]" };

async function verdictOf(extension: Promise<Extension>): Promise<Verdict> {
  return (await extension).verdict;
}

/** Applies a report to the board. */
export function settle(board: Board, hold: Hold, task: TaskRow, report: Report): Promise<Verdict> {
  if (report.extendLease) return verdictOf(board.extend(hold));
  const by = report.workerId;
  switch (report.status) {
    case "COMPLETED":
      return board.complete(hold, report.output, { by, merge: report.merge });
    case "IN_PROGRESS":
      // A record without a lane, or one that the server itself works on, only stores the report's output.
      if (task.lane === null || isSystemLane(task.lane.name))
        return isOpen(task.state) ? verdictOf(board.extend(hold, { output: report.output })) : Promise.resolve("stale");
      return board.defer(hold, report.callbackSeconds * 1_000, report.output);
    case "CANCELED":
      return board.withdraw(hold, { error: report.reason ?? "", output: report.output, by });
    default: {
      const retryable = report.status === "FAILED";
      return board.fail(hold, { error: report.reason ?? "", retryable, output: report.output, by });
    }
  }
}

function* textsOf(values: Iterable<object>): Generator<string, void, void> {
  for (const value of values) yield JSON.stringify(value);
}
