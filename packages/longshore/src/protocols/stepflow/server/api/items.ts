// The task of a run with items. It starts a run for each item, at most as many at once as the run allows, and counts how they end. After a
// restart it waits for item runs that exist already.

import { LongshoreError } from "../../../../core/errors.ts";
import type { Json } from "../../../../core/json/json.ts";
import { parseExact, writeExact } from "../../../../core/json/json-exact.ts";
import { whenAborted } from "../../../../core/results.ts";
import type { TaskRow } from "../../../../engine/board/task.ts";
import type { Definition } from "../../../../engine/run/dialect.ts";
import type { Plan } from "../../../../engine/run/plan.ts";
import type { Reader } from "../../../../engine/run/reader.ts";
import { isRunOpen, type Run, type RunHead, type RunState } from "../../../../engine/run/run.ts";
import type { Runs } from "../../../../engine/run/runs.ts";
import { flowPlanOf } from "../../dialect/compile.ts";
import type { ItemCounts } from "../../dialect/items.ts";
import { limitKeyOf } from "../../dialect/placement.ts";
import { type FlowSettings, settingsOf } from "../../dialect/settings.ts";
import { type ComponentWork, StepFailure } from "../lane.ts";
import { itemPrefix, itemRunId, wireRun } from "../run-id.ts";

export interface ItemDeps {
  readonly runs: Runs;
  readonly reader: Reader;
  plan(definition: Definition): Plan;
}

export class ItemRuns {
  readonly #deps: ItemDeps;

  constructor(deps: ItemDeps) {
    this.#deps = deps;
  }

  /** Performs the task and returns the counts. It fails when an item failed, so that a retry of the run tries it again. */
  async perform(work: ComponentWork): Promise<Json> {
    const run = await this.#runOf(work.task);
    const counts = await work.lend(() => this.#all(run, work.signal)).catch(failedForLimit);
    if (counts.failed === 0) return counts as unknown as Json;
    const message = `${counts.failed} of ${settingsOf(run).items} items failed`;
    throw new StepFailure({ code: "COMPONENT_FAILED", message, data: counts as unknown as Json }, { final: true });
  }

  /** Cancels the open items. */
  async abandon(task: TaskRow): Promise<void> {
    for await (const item of this.heads(task.runId as string)) if (isRunOpen(item.state)) await this.#deps.runs.cancelFound(item);
  }

  /** The runs of the items without inputs and results. */
  async *heads(runId: string): AsyncGenerator<RunHead> {
    yield* this.#deps.reader.headsUnder(itemPrefix(runId));
  }

  /** The runs of the items that have begun, in order. */
  async *each(runId: string): AsyncGenerator<Run> {
    yield* this.#deps.reader.runsUnder(itemPrefix(runId));
  }

  async #runOf(task: TaskRow): Promise<Run> {
    const run = await this.#deps.reader.run(task.runId as string);
    if (run === undefined) throw new Error(`The run ${task.runId} of task ${task.id} does not exist.`);
    return run;
  }

  async #all(run: Run, signal: AbortSignal): Promise<ItemCounts> {
    const inputs = parseExact(run.input) as Json[];
    const settings = settingsOf(run);
    const counts = { completed: 0, failed: 0, cancelled: 0 };
    const begun = new Set<number>();
    const left: number[] = [];
    for await (const item of this.heads(run.id)) {
      const { itemIndex } = wireRun(item.id);
      begun.add(itemIndex);
      if (isRunOpen(item.state) || isToTryAgain(item, run)) left.push(itemIndex);
      else count(counts, item.state);
    }
    for (let index = 0; index < inputs.length; index++) if (!begun.has(index)) left.push(index);
    const item = await this.#settingsOf(run, settings);
    let next = 0;
    const follow = async (stop: AbortSignal): Promise<void> => {
      for (let index = left[next++]; index !== undefined && !stop.aborted; index = left[next++]) {
        count(counts, await this.#one(run, { ...item, item: index }, inputs[index] as Json, stop));
      }
    };
    // One signal for each loop, so that listeners do not accumulate on the shared signal.
    const stops = Array.from({ length: Math.min(settings.maxConcurrency, left.length) }, () => new AbortController());
    const stopAll = () => {
      for (const stop of stops) stop.abort();
    };
    signal.addEventListener("abort", stopAll, { once: true });
    try {
      // The run may have been cancelled while its items were read.
      signal.throwIfAborted();
      await Promise.all(stops.map((stop) => follow(stop.signal)));
    } finally {
      // If one loop fails because the store cannot be written, the others stop too. The task then runs again.
      stopAll();
      signal.removeEventListener("abort", stopAll);
    }
    signal.throwIfAborted();
    return counts;
  }

  /** The settings that all item runs share. */
  async #settingsOf(run: Run, settings: FlowSettings): Promise<FlowSettings> {
    const { items: _count, itemDefinitionId = "", rootRunId = run.id, parentTaskId: _task, ...common } = settings;
    const definition = await this.#deps.reader.definitionById(itemDefinitionId);
    if (definition === undefined) throw new Error(`Run ${run.id} has no definition ${itemDefinitionId}.`);
    // At most `maxConcurrency` items run at once. Only items with parallel steps can exceed the limit, so only they need a limit key.
    const wide = flowPlanOf(this.#deps.plan(definition)).width > 1;
    return { ...common, rootRunId, parentRunId: run.id, ...(wide ? { limitKey: limitKeyOf(run.id) } : {}) };
  }

  /** Starts the run of an item, unless it exists, and waits until it ends. */
  async #one(run: Run, settings: FlowSettings, input: Json, signal: AbortSignal): Promise<RunState> {
    const { runs } = this.#deps;
    const started = await runs.begin({
      id: itemRunId(run.id, settings.item as number),
      unlessThere: true,
      workflow: run.workflow,
      definitionId: settingsOf(run).itemDefinitionId as string,
      input: writeExact(input),
      variables: run.variables,
      ...(settings.rootRunId === undefined ? {} : { rootId: settings.rootRunId }),
      settings: JSON.stringify(settings),
    });
    if (isToTryAgain(started.run, run)) await runs.retry(started.run.id);
    else if (!isRunOpen(started.run.state)) return started.run.state;
    const ended = await runs.result(started.run.id, whenAborted(signal));
    // The run was removed.
    return ended?.state ?? "cancelled";
  }
}

/** When the family of a run is full, the run cannot start its items, and an immediate retry would fail too. */
function failedForLimit(error: unknown): never {
  if (!(error instanceof LongshoreError) || error.code !== "LONGSHORE_LIMIT") throw error;
  throw new StepFailure({ code: "COMPONENT_FAILED", message: error.message }, { final: true });
}

/** A retry of a run also retries its items that did not succeed, once for each retry. */
function isToTryAgain(item: RunHead, run: RunHead): boolean {
  return !isRunOpen(item.state) && item.state !== "succeeded" && item.retries < run.retries;
}

function count(counts: { completed: number; failed: number; cancelled: number }, state: RunState): void {
  if (state === "succeeded") counts.completed++;
  else if (state === "cancelled") counts.cancelled++;
  else counts.failed++;
}
