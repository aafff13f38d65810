// Turns a run that has ended into a value or an error, for the program that waits for it.

import { LongshoreError } from "../core/errors.ts";
import type { RunStatus } from "./client.ts";

/** The run of `result()` has failed, was cancelled, or took too long: see `run.state`. The code of this error is LONGSHORE_RUN_FAILED. */
export class RunFailed extends LongshoreError {
  override readonly name: string = "RunFailed";
  /** The run as it ended. */
  readonly run: RunStatus;

  constructor(run: RunStatus) {
    const why = run.error === null ? "" : `: ${run.error}`;
    super("LONGSHORE_RUN_FAILED", `Run ${run.id} of workflow ${run.workflow} ${endings[run.state] ?? run.state}${why}`, {
      detail: { run: run.id },
    });
    this.run = run;
  }
}

const endings: Readonly<Record<string, string>> = { failed: "has failed", cancelled: "was cancelled", "timed-out": "took too long" };

/** The output of a run that has ended. Throws RunFailed when it did not succeed. */
export function outputOf<Output>(run: RunStatus<Output>): Output {
  if (run.state === "succeeded") return run.output as Output;
  throw new RunFailed(run);
}

/** The output of a task that has ended. Throws LONGSHORE_TASK_FAILED when it is not done. */
export function taskOutputOf({ step, state, output, error }: EndedTask): unknown {
  if (state === "done") return output;
  throw new LongshoreError("LONGSHORE_TASK_FAILED", `Task ${step} ${state}${error === null ? "" : `: ${error}`}`);
}

interface EndedTask {
  readonly step: string;
  readonly state: string;
  readonly output: unknown;
  readonly error: string | null;
}
