// Records the tasks that a worker receives and the replies to its reports.

import { openRecorder, type RecordedWork, type Recorder } from "../core/recording.ts";
import type { Events, TaskEvent } from "./events.ts";

/** Watches the worker until the returned recorder is closed. */
export function record(events: Events, path: string): Recorder {
  const recorder = openRecorder(path);
  events.watch("executionStarted", (event) => recorder.write({ kind: "taken", ...workOf(event) }));
  events.watch("taskEnded", (event) => {
    recorder.write({ kind: "reported", ...workOf(event), outcome: event.kind, verdict: event.verdict ?? null });
  });
  return recorder;
}

function workOf({ transport, task, ids, attempt }: TaskEvent): RecordedWork {
  const { runId, stepId, taskId, grantId } = ids;
  return { transport, task, runId, stepId, taskId, grantId, attempt };
}
