// Waits for a run, and then makes the response. The wait ends when the run has ended or waits for a signal, or when a named step has ended.

import type { Clock } from "../../../core/clock.ts";
import { isOpen, type TaskRow } from "../../../engine/board/task.ts";
import type { Reader } from "../../../engine/run/reader.ts";
import { isRunOpen, type Run, type RunHead } from "../../../engine/run/run.ts";
import type { HttpReply, HttpRequest } from "../../../net/http/http.ts";
import { attemptIdOf } from "../dialect/ids.ts";
import { workflowStatusOf } from "../dialect/records.ts";
import { settingsOf } from "../dialect/settings.ts";
import type { RunRenderer } from "./render-run.ts";
import { namesOf, objectText } from "./render-task.ts";
import { badRequest, jsonText, notFound, nothing } from "./replies.ts";
import { textInQuery } from "./request.ts";

export interface Awaiting {
  readonly clock: Clock;
  readonly reader: Reader;
  readonly renderer: RunRenderer;
  /** Calls the listener for every task and run that a commit changed, until the returned function is called. */
  listen(listener: { task?(task: TaskRow): void; run?(run: Run): void }): () => void;
}

/** The ids of what was found. Texts of runs and tasks may have megabytes, so they are read only when the response is made. */
export interface Found {
  readonly run: Pick<Run, "id" | "state">;
  /** The step at which it waits, and the run of that step. */
  readonly blocking: Blocking | undefined;
  readonly timedOut: boolean;
}

interface Blocking {
  readonly taskId: string;
  readonly runId: string;
}

export async function awaitRun(
  deps: Awaiting,
  runId: string,
  options: { references: readonly string[]; waitMs: number; signal: AbortSignal },
): Promise<Found> {
  const endsAt = deps.clock.now() + options.waitMs;
  for (;;) {
    const change = nextChange(deps, runId, endsAt, options.signal);
    try {
      const found = await look(deps, runId, options.references);
      if (!isRunOpen(found.run.state) || found.blocking !== undefined) return { ...found, timedOut: false };
      if (deps.clock.now() >= endsAt || options.signal.aborted) return { ...found, timedOut: true };
      await change.happened;
    } finally {
      change.stop();
    }
  }
}

async function look(deps: Awaiting, runId: string, references: readonly string[]): Promise<Omit<Found, "timedOut">> {
  const run = await deps.reader.runHead(runId);
  if (run === undefined) throw notFound(`No such workflow found by id: ${runId}`);
  return { run: { id: run.id, state: run.state }, blocking: await findBlocking(deps, run, references) };
}

/**
 * Waits for a change of the run, or of a run inside it (its id begins with the id of this run). Other changes wake no waiter: thousands of
 * clients may wait, and each that wakes reads its run. Listens before the read, so that no change between the read and the wait is missed.
 */
export function nextChange(
  deps: Pick<Awaiting, "clock" | "listen">,
  runId: string,
  endsAt: number,
  signal: AbortSignal,
): { happened: Promise<void>; stop(): void } {
  let wake = () => {};
  const happened = new Promise<void>((resolve) => {
    wake = resolve;
  });
  const within = `${runId}-`;
  const changed = (id: string | null) => {
    if (id === runId || id?.startsWith(within)) wake();
  };
  const unlisten = deps.listen({ task: (task) => changed(task.runId), run: (run) => changed(run.id) });
  const stopTimer = deps.clock.at(endsAt, wake);
  signal.addEventListener("abort", wake, { once: true });
  return {
    happened,
    stop() {
      unlisten();
      stopTimer();
      signal.removeEventListener("abort", wake);
    },
  };
}

async function findBlocking(deps: Awaiting, run: RunHead, references: readonly string[]): Promise<Found["blocking"]> {
  const view = await deps.renderer.viewOf(run);
  for (const task of await deps.reader.heads(run.id)) {
    const type = view.steps[task.node]?.task.type;
    if (references.includes(task.step) && !isOpen(task.state) && task.state !== "forgotten") return { taskId: task.id, runId: run.id };
    if (task.state !== "queued" || task.lane !== null) continue;
    if (type === "WAIT" && task.dueAt === task.queuedAt) return { taskId: task.id, runId: run.id };
    const child = type === "SUB_WORKFLOW" ? await deps.reader.childOf(task.id, task.attempt) : undefined;
    const inside = child !== undefined && isRunOpen(child.state) ? await findBlocking(deps, child, references) : undefined;
    if (inside !== undefined) return inside;
  }
  return undefined;
}

const strategies = ["TARGET_WORKFLOW", "BLOCKING_WORKFLOW", "BLOCKING_TASK", "BLOCKING_TASK_INPUT"] as const;
export type Strategy = (typeof strategies)[number];

export function parseStrategy(request: HttpRequest): Strategy {
  const text = textInQuery(request, "returnStrategy") ?? "TARGET_WORKFLOW";
  const strategy = strategies.find((each) => each === text);
  if (strategy !== undefined) return strategy;
  throw badRequest(`returnStrategy is ${JSON.stringify(text.slice(0, 100))}, expected one of ${strategies.join(", ")}.`);
}

export async function renderSignal(deps: Awaiting, found: Found, options: { strategy: Strategy; requestId?: string }): Promise<HttpReply> {
  const { strategy, requestId } = options;
  const target = found.run;
  const common = {
    responseType: strategy,
    targetWorkflowId: target.id,
    targetWorkflowStatus: workflowStatusOf(target.state),
    ...(requestId === undefined ? {} : { requestId }),
    signalTimeout: found.timedOut,
  };
  if (strategy === "BLOCKING_TASK" || strategy === "BLOCKING_TASK_INPUT") {
    return found.blocking === undefined ? nothing : jsonText(await withTask(deps, common, found.blocking));
  }
  const id = strategy === "TARGET_WORKFLOW" ? target.id : (found.blocking?.runId ?? target.id);
  return jsonText(await deps.renderer.answerWith({ ...common, workflowId: id }, () => knownRun(deps, id), shownFields));
}

/** Fields of a run, in the order of the wire. */
const shownFields = [
  "correlationId",
  "input",
  "output",
  "priority",
  "variables",
  "tasks",
  "createdBy",
  "createTime",
  "status",
  "updateTime",
];

/** The texts of the task, which may have megabytes, are put in as they are. */
async function withTask(deps: Awaiting, common: object, { taskId, runId }: Blocking): Promise<string> {
  const run = await knownRun(deps, runId);
  const task = await deps.reader.task(taskId);
  const view = await deps.renderer.viewOf(run);
  const recorded = task === undefined ? undefined : (await deps.renderer.recordsOf(task, view)).at(-1);
  if (task === undefined || recorded === undefined) throw notFound(`No such task found by id: ${taskId}`);
  const settings = settingsOf(run);
  const { shown, step } = recorded;
  const bare = deps.renderer.taskText({ ...recorded, shown: { ...shown, input: "{}", output: "{}" } }, run, settings);
  const fields = JSON.parse(bare) as { [field: string]: unknown };
  const names = namesOf(step, shown.input);
  const first = { ...common, workflowId: run.id, correlationId: settings.correlationId };
  const rest = {
    taskType: names.type,
    taskId: attemptIdOf(task.id, task.attempt),
    referenceTaskName: task.step,
    retryCount: fields.retryCount,
    taskDefName: names.definitionName,
    retriedTaskId: fields.retriedTaskId,
    workflowType: run.workflow,
    reasonForIncompletion: fields.reasonForIncompletion,
    priority: settings.priority,
    createdBy: fields.workerId,
    createTime: fields.startTime,
    updateTime: fields.updateTime,
    status: fields.status,
  };
  const texts = `"input":${objectText(shown.input, "input")},"output":${objectText(shown.output ?? "{}", "result")}`;
  return `${JSON.stringify(first).slice(0, -1)},${texts},${JSON.stringify(rest).slice(1)}`;
}

async function knownRun({ reader }: Awaiting, id: string): Promise<Run> {
  const run = await reader.run(id);
  if (run === undefined) throw notFound(`No such workflow found by id: ${id}`);
  return run;
}
