// Waiting for a run: until it has ended, or stands still at a step that waits for a signal, or a named step has ended; and what is
// answered then.

import { isOpen, type Task } from "../../board/task.ts";
import type { Clock } from "../../clock.ts";
import { attemptIdOf } from "../../dialect/conductor/ids.ts";
import { workflowStatusOf } from "../../dialect/conductor/records.ts";
import { settingsOf } from "../../dialect/conductor/settings.ts";
import type { HttpReply, HttpRequest } from "../../http.ts";
import { parseExact } from "../../json-exact.ts";
import type { Reader } from "../../run/reader.ts";
import { isRunOpen, type Run } from "../../run/run.ts";
import type { RunRenderer } from "./render-run.ts";
import { badRequest, json, nothing } from "./replies.ts";
import { textInQuery } from "./request.ts";

export interface Awaiting {
  readonly clock: Clock;
  readonly reader: Reader;
  readonly renderer: RunRenderer;
  /** Tells of every task and run that a commit changed; ends with the function that is returned. */
  listen(listener: { task?(task: Task): void; run?(run: Run): void }): () => void;
}

export interface Found {
  readonly run: Run;
  /** The step at which it stands, and the run that it is a step of. */
  readonly blocking: { readonly task: Task; readonly run: Run } | undefined;
  readonly timedOut: boolean;
}

export async function awaitRun(
  deps: Awaiting,
  runId: string,
  options: { references: readonly string[]; waitMs: number; signal: AbortSignal },
): Promise<Found> {
  const endsAt = deps.clock.now() + options.waitMs;
  for (;;) {
    const change = nextChange(deps, endsAt, options.signal);
    try {
      const run = await deps.reader.run(runId);
      if (run === undefined) throw new Error(`Run ${runId} has disappeared.`);
      const blocking = await findBlocking(deps, run, options.references);
      if (!isRunOpen(run.state) || blocking !== undefined) return { run, blocking, timedOut: false };
      if (deps.clock.now() >= endsAt || options.signal.aborted) return { run, blocking: undefined, timedOut: true };
      await change.happened;
    } finally {
      change.stop();
    }
  }
}

/** Listens from before the look, so that no change falls between the look and the wait. */
function nextChange(deps: Awaiting, endsAt: number, signal: AbortSignal): { happened: Promise<void>; stop(): void } {
  let wake = () => {};
  const happened = new Promise<void>((resolve) => {
    wake = resolve;
  });
  const unlisten = deps.listen({ task: () => wake(), run: () => wake() });
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

async function findBlocking(deps: Awaiting, run: Run, references: readonly string[]): Promise<Found["blocking"]> {
  const view = await deps.renderer.viewOf(run);
  for (const task of await deps.reader.heads(run.id)) {
    const type = view.steps[task.node]?.task.type;
    if (references.includes(task.step) && !isOpen(task.state) && task.state !== "forgotten") return blockedAt(deps, run, task.id);
    if (task.state !== "queued" || task.lane !== null) continue;
    if (type === "WAIT" && task.dueAt === task.queuedAt) return blockedAt(deps, run, task.id);
    const child = type === "SUB_WORKFLOW" ? await deps.reader.childOf(task.id, task.attempt) : undefined;
    const inside = child !== undefined && isRunOpen(child.state) ? await findBlocking(deps, child, references) : undefined;
    if (inside !== undefined) return inside;
  }
  return undefined;
}

async function blockedAt(deps: Awaiting, run: Run, taskId: string): Promise<Found["blocking"]> {
  const task = await deps.reader.task(taskId);
  return task === undefined ? undefined : { task, run };
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
    return found.blocking === undefined ? nothing : json({ ...common, ...(await taskPart(deps, found.blocking)) });
  }
  const shown = strategy === "TARGET_WORKFLOW" ? target : (found.blocking?.run ?? target);
  return json({ ...common, ...(await runPart(deps, shown)) });
}

async function runPart(deps: Awaiting, run: Run): Promise<object> {
  const whole = parseExact(await deps.renderer.run(run, true)) as { [field: string]: unknown };
  const { correlationId, input, output, priority, variables, tasks, createdBy, createTime, status, updateTime } = whole;
  return { workflowId: run.id, correlationId, input, output, priority, variables, tasks, createdBy, createTime, status, updateTime };
}

async function taskPart(deps: Awaiting, { task, run }: { task: Task; run: Run }): Promise<object> {
  const view = await deps.renderer.viewOf(run);
  const recorded = (await deps.renderer.recordsOf(task, view)).at(-1);
  const settings = settingsOf(run);
  const shown = recorded === undefined ? {} : (parseExact(deps.renderer.taskText(recorded, run, settings)) as { [field: string]: unknown });
  return {
    workflowId: run.id,
    correlationId: settings.correlationId,
    input: shown.inputData,
    output: shown.outputData,
    taskType: shown.taskType,
    taskId: attemptIdOf(task.id, task.attempt),
    referenceTaskName: task.step,
    retryCount: shown.retryCount,
    taskDefName: shown.taskDefName,
    retriedTaskId: shown.retriedTaskId,
    workflowType: run.workflow,
    reasonForIncompletion: shown.reasonForIncompletion,
    priority: settings.priority,
    createdBy: shown.workerId,
    createTime: shown.startTime,
    updateTime: shown.updateTime,
    status: shown.status,
  };
}
