// The spans of a server: a run, its steps, and their attempts. Each run is a separate trace. The ids of its spans are computed from the ids
// of the run and its tasks. So a worker can use the span of its attempt as a parent, and a trace continues after a restart.

import { hash } from "node:crypto";
import type { FinishedSpan, SpanIds, SpanWriter } from "../core/trace.ts";
import { isDriver, type TaskRow } from "../engine/board/task.ts";
import type { AttemptEnd } from "../engine/board/work-listener.ts";
import type { Run } from "../engine/run/run.ts";
import type { Engine } from "./engine.ts";

/** Writes a span for each run, step and attempt that ends, until the returned function is called. */
export function writeSpans(engine: Pick<Engine, "listen" | "listenToWork">, writer: SpanWriter): () => void {
  const stops = [
    engine.listen({
      task(task) {
        if (task.endedAt !== null && wasWorked.has(task.state) && !isDriver(task)) writer.write(stepOf(task, task.endedAt));
      },
      run(run) {
        if (run.endedAt !== null) writer.write(runOf(run, run.endedAt));
      },
    }),
    engine.listenToWork({
      handedOut: () => {},
      attemptOver: (task, end) => writer.write(attemptOf(task, end)),
    }),
  ];
  return () => {
    for (const stop of stops) stop();
  };
}

const wasWorked: ReadonlySet<string> = new Set(["done", "failed", "cancelled"]);

/** The span of the attempt that a worker gets with this task. A durable function has one for each turn. */
export function attemptSpan(task: TaskRow): SpanIds {
  const place = isDriver(task) ? `turn ${task.grant}` : `attempt ${task.attempt}`;
  return { traceId: traceOf(task), spanId: idOf(`${task.id} ${place}`, 16) };
}

/** A task without a run is a separate trace. */
function traceOf({ runId, id }: TaskRow): string {
  return idOf(runId ?? id, 32);
}

/** The next life of a run, and of a step, is another span. */
function runSpan(id: string, life: number): SpanIds {
  return { traceId: idOf(id, 32), spanId: idOf(`${id} run ${life}`, 16) };
}

function stepSpan(runId: string, taskId: string, firstAttempt: number): SpanIds {
  return { traceId: idOf(runId, 32), spanId: idOf(`${taskId} step ${firstAttempt}`, 16) };
}

function runOf(run: Run, endMs: number): FinishedSpan {
  const { id, workflow, state, retries, parentTaskId } = run;
  // The id of a task begins with the id of its run.
  const parentRunId = parentTaskId?.slice(0, parentTaskId.lastIndexOf("."));
  return {
    ids: runSpan(id, retries),
    ...(parentTaskId === null || parentRunId === undefined ? {} : { cause: stepSpan(parentRunId, parentTaskId, 0) }),
    name: `run ${workflow}`,
    startMs: retries === 0 ? run.createdAt : run.countedFrom,
    endMs,
    attributes: {
      "longshore.run_id": id,
      "longshore.workflow": workflow,
      "longshore.state": state,
      ...(parentRunId === undefined ? {} : { "longshore.parent_run_id": parentRunId }),
    },
    ...(state === "succeeded" || state === "cancelled" ? {} : { error: run.error ?? state }),
  };
}

function stepOf(task: TaskRow, endMs: number): FinishedSpan {
  const { id, runId, step, state, firstAttempt } = task;
  return {
    ids: stepSpan(runId ?? id, id, firstAttempt),
    // The life of the run is not known here, so a step of a later life is shown below the first life.
    ...(runId === null ? {} : { parent: runSpan(runId, 0) }),
    name: `step ${step}`,
    startMs: task.postedAt,
    endMs,
    attributes: { ...attributesOf(task), "longshore.state": state },
    ...(state === "failed" ? { error: task.error ?? state } : {}),
  };
}

function attemptOf(task: TaskRow, { state, endedAt, fault, error }: AttemptEnd): FinishedSpan {
  const { id, runId, firstAttempt } = task;
  const step = stepSpan(runId ?? id, id, firstAttempt);
  return {
    ids: attemptSpan(task),
    parent: isDriver(task) && runId !== null ? runSpan(runId, 0) : step,
    name: `attempt ${task.lane?.name ?? task.step}`,
    startMs: task.startedAt ?? endedAt,
    endMs: endedAt,
    attributes: {
      ...attributesOf(task),
      "longshore.attempt": task.attempt + 1,
      "longshore.state": state,
      ...(fault === null ? {} : { "longshore.fault": fault }),
      ...(task.holder === null ? {} : { "longshore.worker": task.holder }),
    },
    ...(state === "failed" ? { error: error ?? state } : {}),
  };
}

/** The same names as on the spans of workers. */
function attributesOf({ id, runId, step, lane }: TaskRow): Record<string, string> {
  return {
    "longshore.task_id": id,
    "longshore.step_id": step,
    ...(runId === null ? {} : { "longshore.run_id": runId }),
    ...(lane === null ? {} : { "longshore.task": lane.name }),
  };
}

/** Hexadecimal digits that are computed from the text, and differ for each text. */
function idOf(text: string, digits: number): string {
  return hash("sha256", text, "hex").slice(0, digits);
}
