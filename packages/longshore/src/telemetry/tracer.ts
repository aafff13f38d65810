// Makes the spans of executions: a fresh id below the caller's span, or a trace of its own where there is no caller.

import { randomFillSync } from "node:crypto";
import type { SpanEnd, TracedWork, Tracer } from "../runner/telemetry.ts";
import type { SpanIds } from "../trace.ts";
import type { Attributes, SpanRecord } from "./records.ts";

export interface TracerOptions {
  readonly nowMs: () => number;
  readonly ended: (span: SpanRecord) => void;
}

export function makeTracer({ nowMs, ended }: TracerOptions): Tracer {
  const random = randomHex();
  return {
    begin: (work) => {
      const { parent } = work.trace;
      const ids: SpanIds = { traceId: parent?.traceId ?? random(16), spanId: random(8) };
      const startMs = nowMs();
      return {
        ids,
        // A handler reads `ctx.trace`; there is no ambient span here.
        run: (fn) => fn(),
        end: (end) => ended(recordOf(work, ids, startMs, nowMs(), end)),
      };
    },
  };
}

function recordOf(work: TracedWork, ids: SpanIds, startMs: number, endMs: number, { task, error }: SpanEnd): SpanRecord {
  const { trace } = work;
  return {
    ids,
    parentSpanId: trace.parent?.spanId,
    name: trace.name ?? "task.execute",
    kind: trace.kind ?? "consumer",
    startMs,
    endMs,
    attributes: attributesOf(work, task),
    error: error === undefined ? undefined : { name: error.name, message: error.message, stack: error.stack },
  };
}

/** The attributes of every span, whatever the protocol; those of the protocol come last. */
export function attributesOf({ transport, worker, ids, attempt, trace }: TracedWork, task: string): Attributes {
  const attributes: Record<string, string | number | boolean> = {
    "longshore.task": task,
    "longshore.transport": transport,
    "longshore.task_id": ids.taskId,
    "longshore.attempt": attempt,
  };
  if (ids.runId !== "") attributes["longshore.run_id"] = ids.runId;
  if (ids.stepId !== "") attributes["longshore.step_id"] = ids.stepId;
  if (worker !== undefined) attributes["longshore.worker"] = worker;
  return { ...attributes, ...trace.attributes };
}

/** Random bytes are fetched many at a time: a call for eight of them costs as much as one for thousands. */
function randomHex(): (bytes: number) => string {
  const fetched = Buffer.alloc(4_096);
  let used = fetched.length;
  return (bytes) => {
    if (used + bytes > fetched.length) {
      randomFillSync(fetched);
      used = 0;
    }
    used += bytes;
    const hex = fetched.toString("hex", used - bytes, used);
    // All zeros mean "no span".
    return /^0+$/.test(hex) ? `${hex.slice(1)}1` : hex;
  };
}
