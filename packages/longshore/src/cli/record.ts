// Records what the server has acknowledged to a command about a run.

import { openRecorder } from "../core/recording.ts";
import type { Run } from "./api.ts";

export function recordRun(path: string | undefined, kind: "run-started" | "run-ordered" | "run-ended", run: Run): void {
  if (path === undefined) return;
  const recorder = openRecorder(path);
  recorder.write({ kind, runId: run.id, workflow: run.workflow, state: run.state });
  recorder.close();
}
