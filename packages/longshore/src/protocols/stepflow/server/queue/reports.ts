// The reports of workers of every backend: heartbeats and results. The wire id proves which hand-out is meant. A report on a hand-out that
// has ended gets NOT_FOUND, so that the worker forgets the task.

import type { Caller } from "../../../../core/actions.ts";
import type { Clock } from "../../../../core/clock.ts";
import { isTransient } from "../../../../core/errors.ts";
import type { Json } from "../../../../core/json/json.ts";
import { cutMiddle } from "../../../../core/text.ts";
import type { Verdict } from "../../../../core/verdict.ts";
import type { Board } from "../../../../engine/board/board.ts";
import type { Workers } from "../../../../engine/board/workers.ts";
import type { Logs } from "../../../../engine/log/log.ts";
import type { Encodable } from "../../../../net/protobuf/protobuf.ts";
import { failureReport } from "../../dialect/result.ts";
import { taskErrorNames } from "../../wire/codes.ts";
import { deferralOf } from "../../wire/deferral.ts";
import {
  type CompleteTaskRequest,
  type TaskError,
  type TaskErrorCode,
  type TaskHeartbeatRequest,
  type TaskHeartbeatResponse,
  TaskStatus,
} from "../../wire/messages.ts";
import { holdOfWireId } from "../../wire/task-id.ts";
import { invalid, notFound } from "../refuse.ts";
import { Discoveries } from "./discovery.ts";
import type { Holders } from "./holders.ts";
import type { UnclaimedOffers } from "./unclaimed-offers.ts";

export interface ReportDeps {
  readonly clock: Clock;
  readonly board: Pick<Board, "extend" | "complete" | "defer" | "fail" | "task">;
  readonly workers: Pick<Workers, "seen">;
  readonly logs: Pick<Logs, "append">;
  readonly discoveries: Discoveries;
  readonly unclaimed: UnclaimedOffers;
  readonly holders: Pick<Holders, "reported">;
}

type Hold = { taskId: string; grant: number };

/** Maximum length of a worker id: programs make these ids, and a longer one is a mistake. */
const workerIdCharsMax = 512;
/** Maximum length of a progress text: it is for people, and has a few lines. */
const statusCharsMax = 2_000;

export class Reports {
  readonly #deps: ReportDeps;

  constructor(deps: ReportDeps) {
    this.#deps = deps;
  }

  /** The first heartbeat makes its sender the owner of the task. */
  async heartbeat(request: TaskHeartbeatRequest, caller: Caller): Promise<Encodable<typeof TaskHeartbeatResponse>> {
    const { taskId: wireId, workerId } = request;
    const hold = this.#holdIn(wireId);
    if (workerId === "") throw invalid("worker_id", "is empty, expected the name of the worker");
    if (workerId.length > workerIdCharsMax)
      throw invalid("worker_id", `has ${workerId.length} characters, expected at most ${workerIdCharsMax}`);
    if (hold === "discovery") return { shouldAbort: false, status: TaskStatus.IN_PROGRESS };
    const verdict = await this.#extend({ ...hold, holder: workerId }, request);
    if (verdict === "busy") return { shouldAbort: true, status: TaskStatus.ALREADY_CLAIMED };
    if (verdict !== "ok" && verdict !== "cancel") throw notFound("task", wireId);
    this.#deps.workers.seen(workerId, { protocol: "stepflow" });
    await this.#deps.holders.reported(hold, caller);
    return { shouldAbort: verdict === "cancel", status: TaskStatus.IN_PROGRESS };
  }

  /** `call` is the id of the call in a cluster, where it may be performed again. */
  async complete(request: CompleteTaskRequest, call?: string): Promise<void> {
    const { taskId: wireId, response, error, listComponents } = request;
    if (call !== undefined && this.#deps.discoveries.wasAnsweredBy(wireId, call)) return;
    const hold = this.#holdIn(wireId);
    if (hold === "discovery") return this.#completeDiscovery(request, call);
    if (listComponents !== undefined) throw invalid("list_components", "does not answer this task, expected response or error");
    if (response === undefined && error === undefined) throw invalid("result", "is missing, expected one of response and error");
    if (response !== undefined && response.output === undefined)
      throw invalid("response.output", "is missing, expected a value, of which null is one");
    const { board } = this.#deps;
    const deferral = error === undefined ? undefined : deferralOf(error);
    const verdict = await (error === undefined
      ? board.complete(hold, JSON.stringify(response?.output ?? null))
      : deferral === undefined
        ? board.fail(hold, failureReport(flowErrorOf(error)))
        : board.defer(hold, deferral.delayMs, JSON.stringify(deferral.output)));
    refuseUnlessTaken(verdict, wireId);
  }

  /** Also notes that the worker has read the assignment, whatever the report's result is. */
  #holdIn(wireId: string): Hold | "discovery" {
    if (wireId === "") throw invalid("task_id", "is empty, expected the id of an assignment");
    this.#deps.unclaimed.heard(wireId);
    const isDiscovery = Discoveries.owns(wireId);
    const hold = isDiscovery ? undefined : holdOfWireId(wireId);
    if (isDiscovery && this.#deps.discoveries.isOpen(wireId)) return "discovery";
    if (hold === undefined) throw notFound("task", wireId);
    return hold;
  }

  async #completeDiscovery(request: CompleteTaskRequest, call: string | undefined): Promise<void> {
    const { taskId: wireId, response, error, listComponents } = request;
    if (response !== undefined) throw invalid("response", "does not answer this task, expected list_components or error");
    if (error === undefined && listComponents === undefined)
      throw invalid("result", "is missing, expected one of list_components and error");
    // The server stopped waiting while this report was on its way.
    if (!(await this.#deps.discoveries.answer(wireId, listComponents?.components ?? null, call))) throw notFound("task", wireId);
  }

  async #extend(hold: Hold & { holder: string }, { progress, statusMessage }: TaskHeartbeatRequest): Promise<Verdict> {
    const { board } = this.#deps;
    const message = statusMessage === undefined ? undefined : cutMiddle(statusMessage, statusCharsMax);
    const plain = async () => (await board.extend(hold, { holder: hold.holder })).verdict;
    if (progress === undefined && statusMessage === undefined) return plain();
    const output = JSON.stringify({ progress, message });
    const before = await board.task(hold.taskId);
    // A worker repeats unchanged progress with every heartbeat; only changes are written.
    if (before?.output === output) return plain();
    let verdict: Verdict;
    try {
      verdict = (await board.extend(hold, { holder: hold.holder, output })).verdict;
    } catch (error) {
      if (!isTransient(error)) throw error;
      // A hold can be renewed while the store cannot be written; progress cannot be stored then.
      return plain();
    }
    // A failed log write must not fail the heartbeat.
    if (verdict === "ok" && message !== undefined && message !== messageIn(before?.output))
      await this.#log(hold, before, message).catch(() => {});
    return verdict;
  }

  async #log(hold: Hold, task: Awaited<ReturnType<Board["task"]>>, message: string): Promise<void> {
    if (task === undefined) return;
    const { id: taskId, runId, attempt } = task;
    const chunk = { stream: "stdout" as const, sequence: 0, data: `${message}\n`, at: this.#deps.clock.now() };
    await this.#deps.logs.append({ taskId, runId, attempt, grant: hold.grant, chunks: [chunk] });
  }
}

/** A report that was applied before is accepted, and so is a late report on a cancelled task. */
function refuseUnlessTaken(verdict: Verdict, wireId: string): void {
  if (verdict === "ok" || verdict === "again" || verdict === "cancel") return;
  throw notFound("task", wireId);
}

/** An unknown code counts as a failure of the worker, as in the reference. */
function flowErrorOf({ code, message, data }: TaskError): { code: TaskErrorCode; message: string; data?: Json } {
  return { code: taskErrorNames.get(code) ?? "WORKER_ERROR", message, ...(data === undefined ? {} : { data }) };
}

/** The newest progress message. The earlier output of a task may have any form. */
function messageIn(output: string | null | undefined): string | undefined {
  if (output === null || output === undefined || !output.includes('"message":')) return undefined;
  return (JSON.parse(output) as { message?: string }).message;
}
