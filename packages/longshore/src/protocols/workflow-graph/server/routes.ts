// The server half of workflow-graph: every endpoint, request in and answer out. README.md of this protocol is the contract.
//
// What happens when a worker claims: `claim` below -> engine/board/board.ts `claim` -> engine/board/local-board.ts. A lease is a hold: its
// id names the task and the grant, so a report on an ended lease is recognised as late.

import type { Action } from "../../../core/actions.ts";
import type { Clock } from "../../../core/clock.ts";
import { LongshoreError } from "../../../core/errors.ts";
import { type SpanIds, traceparent } from "../../../core/trace.ts";
import type { Verdict } from "../../../core/verdict.ts";
import type { Board } from "../../../engine/board/board.ts";
import type { Hold, TaskRow } from "../../../engine/board/task.ts";
import type { Workers } from "../../../engine/board/workers.ts";
import type { Logs } from "../../../engine/log/log.ts";
import type { Definition } from "../../../engine/run/dialect.ts";
import type { JournalReader } from "../../../engine/run/journal.ts";
import type { Plan } from "../../../engine/run/plan.ts";
import type { Reader } from "../../../engine/run/reader.ts";
import type { Runs } from "../../../engine/run/runs.ts";
import type { HttpReply, HttpRequest, Problem, Route, RouteGroup } from "../../../net/http/http.ts";
import { commandLane } from "../dialect/compile.ts";
import { statusOfVerdict, traceHeader, turnHeader } from "../wire/codes.ts";
import { handlerLabelPrefix } from "../wire/shapes.ts";
import { addCommands, addReported, readJournal } from "./functions.ts";
import { type LogStreamDeps, LogStreams } from "./log-stream.ts";
import { type Claim, type Completion, expectJson, parseClaim, parseComplete, parseDefer, parseFail, parseRegister } from "./parse.ts";
import { pushLogs } from "./push-logs.ts";
import { Refused, textReply, tooLarge } from "./refuse.ts";
import { isRecorded, type LeaseHold, parseLeaseId, renderClaim } from "./render.ts";
import { answerRepeat, receiptOf } from "./repeated-reports.ts";
import { claimHeaders, conflict, jsonHeaders, no, noJob, notFound, ok, registered, yes } from "./replies.ts";
import { parseReports, replyToAll } from "./reports.ts";
import { type ClaimedRun, RunLookup, taskIdIn } from "./run-lookup.ts";
import { loosePart } from "./view.ts";
import { isOfThisWire, protocolName, renderWorker } from "./workers.ts";
import { Workflows } from "./workflows.ts";

/** The texts of the reports are parsed in one turn of the event loop: this takes some milliseconds. */
const reportsBytesMax = 262_144;

/** What this protocol needs of the server. */
export interface WorkflowGraphDeps {
  readonly clock: Clock;
  readonly board: Board;
  readonly runs: Runs;
  readonly logs: Logs;
  readonly reader: Reader;
  readonly workers: Workers;
  readonly journal: JournalReader;
  plan(definition: Definition): Plan;
  readonly listen: LogStreamDeps["listen"];
  /** The span of the attempt that a worker gets with a task. */
  spanOf(task: TaskRow): SpanIds | undefined;
}

export function workflowGraphRoutes(deps: WorkflowGraphDeps): RouteGroup {
  const finder = new RunLookup(deps);
  deps.listen({ run: (run) => finder.changed(run) });
  const workflows = new Workflows(deps, finder, new LogStreams(deps));
  const jobs = new Jobs(deps, finder);
  const claim = route("POST", "/api/jobs/claim", "task.claim", "text", jobs.claim);
  const routes: Route[] = [
    route("POST", "/api/workers/register", "worker.sign", "text", jobs.register),
    route("POST", "/api/workers/:worker/heartbeat", "worker.sign", "none", jobs.workerHeartbeat),
    route("GET", "/api/workers", "worker.read", "none", jobs.workers),
    claim,
    route("POST", "/api/jobs/:lease/heartbeat", "task.report", "none", jobs.heartbeat),
    { ...route("POST", "/api/jobs/:lease/complete", "task.report", "text", jobs.complete), also: "task.claim" },
    { ...route("POST", "/api/jobs/reports", "task.report", "text", jobs.reports), also: "task.claim", bodyMax: reportsBytesMax },
    route("POST", "/api/jobs/:lease/fail", "task.report", "text", jobs.fail),
    route("POST", "/api/jobs/:lease/defer", "task.report", "text", jobs.defer),
    route("POST", "/api/jobs/:lease/logs", "log.write", "text", (request) => pushLogs(deps, finder, request)),
    route("GET", "/api/jobs/:lease/journal", "task.look", "none", (request) => readJournal(deps, request)),
    route("POST", "/api/jobs/:lease/commands", "task.report", "text", (request) => addCommands(deps, request)),
    route("GET", "/api/jobs/:workflow/:job/cancelled", "task.look", "none", jobs.cancelled),
    route("GET", "/api/workflows", "run.read", "none", workflows.list),
    route("POST", "/api/workflows", "definition.write", "text", workflows.create),
    route("POST", "/api/workflows/sample", "definition.write", "none", workflows.sample),
    route("GET", "/api/workflows/:workflow/status", "run.read", "none", workflows.status),
    route("POST", "/api/workflows/:workflow/run", "run.start", "none", workflows.run),
    route("POST", "/api/workflows/:workflow/cancel", "run.steer", "none", workflows.cancel),
    route("GET", "/api/workflows/:workflow/jobs/:job/logs", "log.read", "none", workflows.logs),
    { ...route("GET", "/api/workflows/:workflow/jobs/:job/logs/stream", "log.read", "none", workflows.stream), openEnded: true },
  ];
  return {
    name: "workflow-graph",
    routes,
    refuse: (problem, refused) => refuse(problem, refused === claim),
    thrown: (error) => (error instanceof Refused ? error.reply : undefined),
  };
}

function route(method: Route["method"], path: string, action: Action, body: Route["body"], handle: Route["handle"]): Route {
  return { method, path, action, body, handle };
}

/** Errors of the server in this wire's format. A claim never gets a transient error as its reply: workers parse it. */
function refuse(problem: Problem, isClaim: boolean): HttpReply {
  switch (problem.kind) {
    case "overloaded":
    case "unavailable":
      return isClaim ? noJob : textReply(503, problem.message);
    case "too-large":
      return problem.status === 413 ? textReply(413, tooLarge) : textReply(problem.status, problem.message);
    case "unauthorized":
    case "forbidden":
    case "bad-request":
      return textReply(problem.status, problem.message);
    case "not-found":
    case "method-not-allowed":
    case "internal":
      return { status: problem.status };
  }
}

/** The lanes from which a worker without handlers may take. */
const commandOnly: readonly string[] = [commandLane];

class Jobs {
  readonly #deps: WorkflowGraphDeps;
  readonly #finder: RunLookup;

  constructor(deps: WorkflowGraphDeps, finder: RunLookup) {
    this.#deps = deps;
    this.#finder = finder;
  }

  register = async (request: HttpRequest): Promise<HttpReply> => {
    expectJson(request.headers);
    const { worker_id, labels } = parseRegister(request.text);
    this.#deps.workers.register(worker_id, protocolName, labels, request.headers["user-agent"]);
    return registered;
  };

  workerHeartbeat = (request: HttpRequest): HttpReply => {
    const id = request.params.worker as string;
    if (!this.#deps.workers.known(id)) return notFound;
    this.#deps.workers.seen(id);
    return ok;
  };

  workers = async (): Promise<HttpReply> => {
    return { status: 200, headers: jsonHeaders, body: await this.#deps.reader.listBody(() => this.#workerTexts()) };
  };

  async *#workerTexts(): AsyncGenerator<string, void, void> {
    for await (const worker of this.#deps.workers.inOrder()) if (isOfThisWire(worker)) yield JSON.stringify(renderWorker(worker));
  }

  /** The labels of the claim count, not those of the registration; a worker need not be registered. */
  claim = async (request: HttpRequest): Promise<HttpReply> => {
    expectJson(request.headers);
    const claim = parseClaim(request.text);
    let task: TaskRow | undefined;
    try {
      [task] = await this.#take(request, claim);
    } catch (error) {
      // When the store is unavailable, the claim gets an empty reply. Then workers claim again; many would crash on a body that is not
      // JSON.
      if (!(error instanceof LongshoreError)) throw error;
    }
    return task === undefined ? noJob : this.#grant(task, claim);
  };

  #grant(task: TaskRow, claim: Claim): HttpReply | Promise<HttpReply> {
    const run = task.runId === null ? undefined : this.#finder.claimed(task.runId);
    return run instanceof Promise ? run.then((found) => this.#granted(task, claim, found)) : this.#granted(task, claim, run);
  }

  heartbeat = async (request: HttpRequest): Promise<HttpReply> => {
    const hold = parseLeaseId(request.params.lease as string);
    if (hold === undefined) return conflict;
    const { verdict, holdUntil } = await this.#deps.board.extend(hold);
    if (statusOfVerdict[verdict] === 409) return conflict;
    await this.#alive(hold.taskId);
    if (!request.headers.accept?.includes("application/json")) return ok;
    return { status: 200, headers: jsonHeaders, body: `{"cancelled":${verdict === "cancel"},"expires_at_ms":${holdUntil ?? 0}}` };
  };

  complete = async (request: HttpRequest): Promise<HttpReply> => {
    expectJson(request.headers);
    const completion = parseComplete(request.text, request.parsed);
    return this.#completed(request.params.lease as string, completion, receiptOf(request, { outputs: completion.output }));
  };

  reports = async (request: HttpRequest): Promise<HttpReply> => {
    expectJson(request.headers);
    return replyToAll(parseReports(request.text, request.parsed), async ({ lease, verb, body, key, next }) => {
      if (verb === "commands") return addReported(this.#deps, lease, body);
      const { output, turn } = parseComplete(body);
      return this.#completed(lease, { output, turn, next }, receiptOf(request, { outputs: output }, key));
    });
  };

  async #completed(lease: string, { output, next, turn }: Completion, receipt: string | undefined): Promise<HttpReply> {
    const hold = parseLeaseId(lease);
    if (hold === undefined) return conflict;
    if (next === undefined) return this.#reported(hold, receipt, await this.#deps.board.complete(hold, output, { receipt }));
    const claim = this.#claimOf(next);
    const { verdict, task, tookTurn } = await this.#deps.board.completeAndClaim(hold, output, { receipt, turn }, claim);
    const reply = await (task === undefined ? this.#reported(hold, receipt, verdict) : this.#grant(task, next));
    return tookTurn ? { ...reply, headers: { ...reply.headers, [turnHeader]: "taken" } } : reply;
  }

  fail = async (request: HttpRequest): Promise<HttpReply> => {
    expectJson(request.headers);
    const failure = parseFail(request.text);
    const hold = parseLeaseId(request.params.lease as string);
    if (hold === undefined) return conflict;
    const receipt = receiptOf(request, { error: failure.error, retryable: failure.retryable });
    return this.#reported(hold, receipt, await this.#deps.board.fail(hold, { ...failure, receipt }));
  };

  /** A repeated deferral gets the same answer: it changes nothing. */
  defer = async (request: HttpRequest): Promise<HttpReply> => {
    expectJson(request.headers);
    const { delayMs, output } = parseDefer(request.text);
    const hold = parseLeaseId(request.params.lease as string);
    if (hold === undefined) return conflict;
    const verdict = await this.#deps.board.defer(hold, delayMs, output);
    return verdict === "again" || statusOfVerdict[verdict] === 200 ? ok : conflict;
  };

  cancelled = async (request: HttpRequest): Promise<HttpReply> => {
    const run = await this.#finder.claimedUnder(request.params.workflow as string);
    const view = run === undefined ? undefined : await this.#finder.viewOfRun(run);
    const taskId = run === undefined || view === undefined ? undefined : taskIdIn(view, run, request.params.job as string);
    if (run === undefined || taskId === undefined) return no;
    const task = await this.#deps.board.task(taskId);
    if (!isRecorded(task)) return run.state === "cancelled" ? yes : no;
    return task.state === "cancelling" || task.state === "cancelled" ? yes : no;
  };

  #take(request: HttpRequest, claim: Claim): Promise<TaskRow[]> {
    const waitMs = claim.waitSecs * 1_000;
    const wanted = this.#claimOf(claim);
    return this.#deps.board.claim(waitMs === 0 ? wanted : { ...wanted, waitMs, signal: request.gone });
  }

  #claimOf({ workerId: holder, labels, ttlSecs, waitSecs }: Claim) {
    const reach = { names: laneNames(labels), labels };
    this.#deps.workers.seen(holder, { protocol: protocolName, reach, does: doneBy(reach.names), everyMs: waitSecs * 1_000 });
    return { reach, serves: commandLane, holder, termMs: ttlSecs * 1_000 };
  }

  #granted(task: TaskRow, { workerId, ttlSecs }: Claim, run: ClaimedRun | undefined): HttpReply {
    const hold: Hold = { taskId: task.id, grant: task.grant };
    const part = run?.view.parts[task.node] ?? loosePart(task.step, task.lane?.labels ?? []);
    const workflowId = run?.ids.workflowId ?? JSON.stringify(task.id);
    const runId = run?.ids.runId ?? "null";
    const body = renderClaim(task, { part, workflowId, runId, workerId: JSON.stringify(workerId), ttlSecs });
    const span = this.#deps.spanOf(task);
    const headers = span === undefined ? claimHeaders : { ...claimHeaders, [traceHeader]: traceparent(span) };
    return { status: 200, headers, body, undelivered: () => this.#giveBack(hold) };
  }

  /** A repeated report gets 409. There are two exceptions: the client proves that it is the same report, or it is the same request. */
  #reported(hold: LeaseHold, receipt: string | undefined, verdict: Verdict): HttpReply | Promise<HttpReply> {
    if (statusOfVerdict[verdict] === 200) return ok;
    if (verdict !== "again" || receipt === undefined) return conflict;
    return this.#deps.board.receipt(hold.taskId, hold.grant).then((first) => answerRepeat(receipt, first));
  }

  /** A heartbeat of a lease is also a heartbeat of its worker. */
  async #alive(taskId: string): Promise<void> {
    const holder = (await this.#deps.board.task(taskId))?.holder;
    if (typeof holder === "string") this.#deps.workers.seen(holder);
  }

  /** The client disconnected before it read its lease. When the store cannot be written, the lease expires. */
  #giveBack(hold: Hold): void {
    this.#deps.board.giveBack(hold).catch(() => undefined);
  }
}

/** A worker that names handlers is listed with them, not with commands. */
function doneBy(names: readonly string[]): readonly string[] {
  return names.length > 1 ? names.slice(1) : names;
}

/** Every worker may take commands. With the label `handler:greet`, a worker may also take from the lane of the handler `greet`. */
function laneNames(labels: readonly string[]): readonly string[] {
  let names: string[] | undefined;
  for (const label of labels) {
    if (!label.startsWith(handlerLabelPrefix)) continue;
    names ??= [commandLane];
    names.push(label.slice(handlerLabelPrefix.length));
  }
  return names ?? commandOnly;
}
