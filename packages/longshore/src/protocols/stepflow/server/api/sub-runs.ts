// Runs that steps of this server start: those of eval, map and iterate. They are identified by the step and a key. So a step that runs
// again after a restart starts nothing twice.

import { whenAborted } from "../../../../core/results.ts";
import type { TaskRow } from "../../../../engine/board/task.ts";
import type { Reader } from "../../../../engine/run/reader.ts";
import type { Run } from "../../../../engine/run/run.ts";
import type { Runs } from "../../../../engine/run/runs.ts";
import { GrpcError } from "../../../../net/grpc/status.ts";
import { settingsOf } from "../../dialect/settings.ts";
import type { SubRun, SubRunResult, SubRuns } from "../builtin/flows.ts";
import { type ComponentWork, StepFailure } from "../lane.ts";
import { wireRunId } from "../run-id.ts";
import type { Flows } from "./flows.ts";
import type { ItemRuns } from "./items.ts";
import { resultOf } from "./render.ts";
import { openFamily } from "./run-family.ts";
import type { Submitter } from "./submit.ts";

export interface SubRunDeps {
  readonly runs: Runs;
  readonly reader: Reader;
  readonly flows: Flows;
  readonly submitter: Submitter;
  readonly items: ItemRuns;
}

export class StepRuns implements SubRuns {
  readonly #deps: SubRunDeps;

  constructor(deps: SubRunDeps) {
    this.#deps = deps;
  }

  async run(work: ComponentWork, subRun: SubRun): Promise<SubRunResult> {
    const started = await this.#start(work, subRun);
    const ended = await work.lend(() => this.#deps.runs.result(started.id, whenAborted(work.signal)));
    work.signal.throwIfAborted();
    if (ended === undefined) throw new StepFailure({ code: "ORCHESTRATOR_ERROR", message: `the run ${wireRunId(started.id)} was removed` });
    return { runId: wireRunId(ended.id), results: await this.#results(ended) };
  }

  /** Cancels the runs of a step that was cancelled. */
  async abandon(task: TaskRow): Promise<void> {
    const { runs, reader } = this.#deps;
    const run = task.runId === null ? undefined : await reader.run(task.runId);
    if (run === undefined) return;
    for (const other of await openFamily(reader, settingsOf(run).rootRunId ?? run.id)) {
      if (settingsOf(other).parentTaskId === task.id) await runs.cancelFound(other);
    }
  }

  async #start(work: ComponentWork, subRun: SubRun): Promise<Run> {
    const { reader, flows, submitter } = this.#deps;
    const parent = await reader.run(work.task.runId as string);
    if (parent === undefined) throw new Error(`The run of task ${work.task.id} does not exist.`);
    try {
      const flowId = typeof subRun.flow === "string" ? subRun.flow : await flows.keepInline(subRun.flow);
      return await submitter.submit({
        flowId,
        inputs: subRun.inputs,
        ...(subRun.maxConcurrency === undefined ? {} : { maxConcurrency: subRun.maxConcurrency }),
        parent: { run: parent, taskId: work.task.id, key: `${tryOf(work.task)} ${subRun.key}` },
      });
    } catch (error) {
      // An error that refuses a client's request becomes the failure of the step.
      if (error instanceof GrpcError) throw new StepFailure({ code: "INVALID_INPUT", message: `${work.component}: ${error.message}` });
      throw error;
    }
  }

  async #results(run: Run): Promise<SubRunResult["results"]> {
    if (settingsOf(run).items === undefined) return [resultOf(run)];
    const results: SubRunResult["results"][number][] = [];
    for await (const item of this.#deps.items.each(run.id)) results.push(resultOf(item));
    return results;
  }
}

/**
 * The prefix of the step's keys. A step that is retried after a failure, or with its run, starts new runs. A step that was lost, such as by
 * a restart, continues with its runs.
 */
function tryOf({ id, firstAttempt, attempt, lost }: TaskRow): string {
  // A retry of the run continues the numbers of the attempts, and counts failures and losses from zero. So this number rises with every
  // attempt, except after a loss.
  return `${id} ${firstAttempt} ${attempt - firstAttempt - lost}`;
}
