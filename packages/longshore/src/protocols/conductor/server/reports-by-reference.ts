// Reports that name the run and the step, and not the task's id. Also signals, which end the step that waits for a signal.

import { randomUUID } from "node:crypto";
import { isObject, type JsonObject } from "../../../core/json/json.ts";
import { parseExact } from "../../../core/json/json-exact.ts";
import type { Verdict } from "../../../core/verdict.ts";
import type { Board } from "../../../engine/board/board.ts";
import { isOpen, type TaskRow } from "../../../engine/board/task.ts";
import type { Reader } from "../../../engine/run/reader.ts";
import { isRunOpen, type Run } from "../../../engine/run/run.ts";
import type { Runs } from "../../../engine/run/runs.ts";
import type { HttpReply, HttpRequest } from "../../../net/http/http.ts";
import { attemptIdOf } from "../dialect/ids.ts";
import { type Awaiting, awaitRun, parseStrategy, renderSignal } from "./await-run.ts";
import type { RunRenderer } from "./render-run.ts";
import { jsonText, notFound, nothing, text } from "./replies.ts";
import { objectOf, textInQuery, wholeIn } from "./request.ts";
import { type Report, statusOf, withOutput } from "./result-body.ts";
import { settle } from "./tasks.ts";

export interface ReportsByReferenceDeps extends Awaiting {
  readonly board: Board;
  readonly runs: Runs;
  readonly reader: Reader;
  readonly renderer: RunRenderer;
}

/** Default and maximum time that a request with a signal waits for the effect of the signal. */
const signalMsDefault = 5_000;
const signalMsMax = 60_000;

export class ReportsByReference {
  readonly #deps: ReportsByReferenceDeps;

  constructor(deps: ReportsByReferenceDeps) {
    this.#deps = deps;
  }

  update = async (request: HttpRequest): Promise<HttpReply> => {
    const run = await this.#run(request);
    const task = await this.#pending(run, request.params.reference as string);
    if (task === undefined) {
      reportOf(request, task);
      return nothing;
    }
    await settleMerged(this.#deps, task, request);
    return text(attemptIdOf(task.id, task.attempt));
  };

  updateSync = async (request: HttpRequest): Promise<HttpReply> => {
    await this.settlePending(request);
    return jsonText(await this.#deps.renderer.answer(() => this.#run(request), true));
  };

  signal = async (request: HttpRequest): Promise<HttpReply> => {
    await this.#signal(request, await this.#run(request));
    return nothing;
  };

  signalSync = async (request: HttpRequest): Promise<HttpReply> => {
    const run = await this.#run(request);
    const strategy = parseStrategy(request);
    if (!(await this.#signal(request, run))) throw notFound(`Found no blocked task in workflow ${run.id} to signal`);
    const waitMs = Math.min(wholeIn(request, "timeoutMillis", signalMsDefault), signalMsMax);
    const found = await awaitRun(this.#deps, run.id, { references: [], waitMs, signal: request.gone });
    return renderSignal(this.#deps, found, { strategy, requestId: randomUUID() });
  };

  /** Reports on a task that waits or runs, by its reference name. */
  async settlePending(request: HttpRequest): Promise<void> {
    const run = await this.#run(request);
    const reference = request.params.reference as string;
    const task = await this.#pending(run, reference);
    if (task === undefined) throw notFound(`Found no running task ${reference} of workflow ${run.id} to update`);
    await settleMerged(this.#deps, task, request);
  }

  async #run(request: HttpRequest): Promise<Run> {
    const id = request.params.workflow as string;
    const run = await this.#deps.runs.run(id);
    if (run === undefined) throw notFound(`No such workflow found by id: ${id}`);
    return run;
  }

  async #pending(run: Run, reference: string): Promise<TaskRow | undefined> {
    if (!isRunOpen(run.state)) return undefined;
    const records = await this.#deps.reader.heads(run.id);
    const found = records.find((task) => task.step === reference && isOpen(task.state) && task.state !== "cancelling");
    return found === undefined ? undefined : this.#deps.reader.task(found.id);
  }

  /**
   * Reports on the step that waits for a signal. When another signal has ended it in the meantime, this one goes to the next step. Returns
   * false when none waits.
   */
  async #signal(request: HttpRequest, run: Run): Promise<boolean> {
    for (let before: string | undefined; ; ) {
      const task = await this.#blocked(run);
      if (task === undefined) {
        reportOf(request, task);
        return false;
      }
      const attempt = attemptIdOf(task.id, task.attempt);
      // A report that is refused although the step still waits is refused again.
      if ((await settleMerged(this.#deps, task, request)) === "ok" || attempt === before) return true;
      before = attempt;
    }
  }

  /** A step that waits for a signal, in this run or in a child run. */
  async #blocked(run: Run): Promise<TaskRow | undefined> {
    if (!isRunOpen(run.state)) return undefined;
    const view = await this.#deps.renderer.viewOf(run);
    for (const task of await this.#deps.reader.heads(run.id)) {
      if (task.state !== "queued" || task.lane !== null) continue;
      const type = view.steps[task.node]?.task.type;
      if ((type === "WAIT" && task.dueAt === task.queuedAt) || type === "HUMAN") return this.#deps.reader.task(task.id);
      const child = type === "SUB_WORKFLOW" ? await this.#deps.reader.childOf(task.id, task.attempt) : undefined;
      const inside = child === undefined ? undefined : await this.#blocked(child);
      if (inside !== undefined) return inside;
    }
    return undefined;
  }
}

/**
 * Reports on a task. When another report has changed its output since it was read, this one is merged again: otherwise, the other's output
 * would be lost.
 */
export async function settleMerged(
  { board, reader }: Pick<ReportsByReferenceDeps, "board" | "reader">,
  task: TaskRow,
  request: HttpRequest,
): Promise<Verdict> {
  for (let read: TaskRow | undefined = task; read !== undefined; read = await reader.task(task.id)) {
    const hold = { taskId: task.id, attempt: task.attempt, output: read.output };
    const verdict = await settle(board, hold, read, reportOf(request, read));
    if (verdict !== "busy") return verdict;
  }
  return "gone";
}

/** The body is the output, merged into the output so far; some clients wrap it in `taskOutput`. */
function reportOf(request: HttpRequest, task: TaskRow | undefined): Report {
  const status = statusOf(request.params.status);
  const body = objectOf(request, "the output");
  const given = isObject(body.taskOutput) && Object.keys(body).length === 1 ? (body.taskOutput as JsonObject) : body;
  const before = task?.output === null || task === undefined ? {} : (parseExact(task.output) as unknown);
  const report = {
    taskId: task === undefined ? "" : attemptIdOf(task.id, task.attempt),
    workflowInstanceId: task?.runId ?? "",
    status,
    workerId: textInQuery(request, "workerid"),
    reason: undefined,
    callbackSeconds: 0,
    merge: false,
    logs: [],
    extendLease: false,
  };
  return withOutput(report, { ...(isObject(before) ? (before as JsonObject) : {}), ...given }, request);
}
