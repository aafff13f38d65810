// A run as users see it. The API returns this form, and so does the client of a server in the program's own process.

import { signalCountsOf } from "../signal/signal.ts";
import type { Run } from "./run.ts";

/** `parse` reads the JSON texts of a run; null where there is none. */
export function runStatus<Value>(run: Run, parse: (text: string | null) => Value) {
  const { sent, kept } = signalCountsOf(run);
  return {
    id: run.id,
    workflow: run.workflow,
    definitionId: run.definitionId,
    state: run.state,
    input: parse(run.input),
    output: parse(run.output),
    variables: parse(run.variables),
    error: run.error,
    createdAt: run.createdAt,
    startAt: run.startAt,
    endedAt: run.endedAt,
    endBy: run.endBy,
    priority: run.priority,
    left: run.left,
    failed: run.failed,
    retries: run.retries,
    alias: run.alias,
    parentTaskId: run.parentTaskId,
    signals: { sent, kept },
  };
}
