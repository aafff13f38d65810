// RunsService: client requests about runs. REST and gRPC both call it. Errors are thrown as GrpcError.

import type { Clock } from "../../../../core/clock.ts";
import { LongshoreError } from "../../../../core/errors.ts";
import type { JsonObject } from "../../../../core/json/json.ts";
import { parseExact } from "../../../../core/json/json-exact.ts";
import { whenAborted } from "../../../../core/results.ts";
import type { Reader } from "../../../../engine/run/reader.ts";
import { isRunOpen, type Run, type RunHead, taskIdOf } from "../../../../engine/run/run.ts";
import type { Runs } from "../../../../engine/run/runs.ts";
import { settingsOf } from "../../dialect/settings.ts";
import { ResultOrder } from "../../wire/messages.ts";
import { invalid, notFound, precondition } from "../refuse.ts";
import { itemRunId, ownRunId } from "../run-id.ts";
import type { Flows } from "./flows.ts";
import type { ItemRuns } from "./items.ts";
import { type ListFilter, listRuns } from "./list.ts";
import { flowIdOf, type Item, type Renderer, renderItem, renderStep, type Step, type Summary } from "./render.ts";
import { openDescendants } from "./run-family.ts";
import { isReached } from "./sequence.ts";
import type { RunRequest, Submitter } from "./submit.ts";

export interface RunServiceDeps {
  readonly clock: Clock;
  readonly runs: Runs;
  readonly reader: Reader;
  readonly flows: Flows;
  readonly items: ItemRuns;
  readonly renderer: Renderer;
  readonly submitter: Submitter;
  /** Removes a run that has ended, with everything that belongs to it. */
  removeRun(runId: string): Promise<boolean>;
}

/** How a client waits: for how long, and until it disconnects. */
export interface WaitOptions {
  readonly wait: boolean;
  readonly timeoutSecs?: number;
  /** The signal is read only when the client really has to wait. */
  readonly gone: () => AbortSignal;
}

/** As in the reference. */
const waitSecsDefault = 300;
/** A client that wants to wait longer must call again. */
const waitSecsMax = 24 * 3_600;
/** Maximum number of steps in one response for a run with many items. The steps of one item can be read by its index. */
const stepsMax = 10_000;

/** The rows that one summary counts against the reader's limit, because it reads the flow and sometimes the states of items. */
const summaryRows = 2;

interface Created {
  readonly summary: Summary;
  readonly ended: RunHead | undefined;
}

/** Called with the number of characters that are about to be rendered. May throw. */
type Count = (chars: number) => void;

interface StepsOf {
  readonly itemIndex: number;
  readonly startedAt: number;
  readonly count: Count;
}

export class RunService {
  readonly #deps: RunServiceDeps;

  constructor(deps: RunServiceDeps) {
    this.#deps = deps;
  }

  /** `ended` is the run whose results belong in the answer, when the client waits for them. */
  create(request: RunRequest, waiting: WaitOptions): Promise<Created> {
    checkWait(waiting);
    return this.submit(request).then((started) => this.#created(started, waiting));
  }

  /**
   * Starts a run and returns nothing large. Callers that wait for its end continue with `then`: an async function would keep each of
   * thousands of requests in memory with its inputs.
   */
  submit(request: RunRequest): Promise<RunHead> {
    return this.#deps.submitter.submit(request).then(headOf);
  }

  async #created(started: RunHead, waiting: WaitOptions): Promise<Created> {
    const run = await this.waitFor(started, waiting);
    return { summary: await this.#deps.renderer.summary(run), ended: waiting.wait ? run : undefined };
  }

  async list(request: ListFilter): Promise<{ runs: Summary[] }> {
    const { reader, renderer } = this.#deps;
    const runs = await listRuns(reader, request);
    const summaries: Summary[] = [];
    for (const run of runs) {
      await reader.turn(summaryRows);
      summaries.push(await renderer.summary(run));
    }
    return { runs: summaries };
  }

  async get(runId: string, waiting: WaitOptions): Promise<{ summary: Summary; run: RunHead }> {
    checkWait(waiting);
    const run = await this.waitFor(await this.findHead(runId), waiting);
    return { summary: await this.#deps.renderer.summary(run), run };
  }

  async flow(runId: string): Promise<{ flow: JsonObject; flowId: string }> {
    const run = await this.findHead(runId);
    const flowId = flowIdOf(run);
    const stored = await this.#deps.flows.text(flowId);
    return { flow: stored === undefined ? (await this.#deps.renderer.viewOf(run)).flow : (parseExact(stored) as JsonObject), flowId };
  }

  /** `asof` is the number of an event; the answer must not be older than it. */
  async step(runId: string, stepId: string, itemIndex = 0, asof?: number): Promise<{ step: Step }> {
    const run = await this.findHead(runId);
    const item = await this.#itemOf(run, itemIndex);
    const step = item === undefined ? undefined : (await this.#deps.renderer.viewOf(item)).steps.find((each) => each.stepId === stepId);
    const task = item === undefined || step === undefined ? undefined : await this.#deps.reader.task(taskIdOf(item.id, step.node));
    if (step === undefined || task === undefined || task.state === "forgotten") throw notFound("step", stepId);
    const shown = renderStep(task, step, itemIndex, await this.#deps.renderer.startOf(run));
    if (asof !== undefined && !isReached(shown.journalSeqno ?? 0, asof)) {
      throw precondition(
        "METADATA_NOT_CONSISTENT",
        `metadata not yet consistent: step has journal_seqno=${shown.journalSeqno}, requested asof=${asof}`,
      );
    }
    return { step: shown };
  }

  /**
   * Cancels the run and its descendants. A run that has ended is not changed, and what a retry starts meanwhile is not changed either. A
   * run is cancelled before the runs that it has started: otherwise their cancellation would count as its result.
   */
  async cancel(runId: string): Promise<{ summary: Summary }> {
    const { runs, reader, renderer } = this.#deps;
    const run = await this.find(runId);
    const cancelled = (await runs.cancel(run.id)) ?? run;
    // The run may be open: this request may have been performed before, and the run retried since then.
    if (!isRunOpen(cancelled.state)) {
      // The descendants are searched before the items. So the item that has started one of them is among the items.
      const found = await openDescendants(reader, run);
      await this.#cancelItems(cancelled, cancelled);
      for (const other of found) {
        const ended = await runs.cancelFound(other, cancelled);
        if (ended?.retries === other.retries && !isRunOpen(ended.state)) await this.#cancelItems(ended, cancelled);
      }
    }
    return { summary: await renderer.summary(cancelled) };
  }

  /** The items of a run are not among its descendants. Its task stops them too, but only when it learns that it was cancelled. */
  async #cancelItems(run: RunHead, cause: RunHead): Promise<void> {
    const { runs, items } = this.#deps;
    if (settingsOf(run).items === undefined) return;
    for await (const item of items.heads(run.id)) if (isRunOpen(item.state)) await runs.cancelFound(item, run, cause);
  }

  async remove(runId: string): Promise<void> {
    const { reader, removeRun, items } = this.#deps;
    const run = await this.findHead(runId);
    if (isRunOpen(run.state)) throw precondition("RUN_NOT_DELETABLE", `run '${runId}' is still running: cancel it first`);
    for await (const item of items.heads(run.id)) {
      // An item that is being cancelled with its run may be open for a moment.
      const ended = isRunOpen(item.state) ? await reader.runHead(item.id) : item;
      if (ended !== undefined && !isRunOpen(ended.state)) await removeRun(item.id);
    }
    await removeRun(run.id);
  }

  /** Our addition: retries, in the same run, the steps that did not succeed. */
  async retry(runId: string): Promise<{ summary: Summary }> {
    const { id } = await this.find(runId);
    try {
      const run = await this.#deps.runs.retry(id);
      return { summary: await this.#deps.renderer.summary(run as Run) };
    } catch (error) {
      // The core's message names the run by an id that this wire does not use.
      if (error instanceof LongshoreError && error.code === "LONGSHORE_CONFLICT")
        throw precondition("RUN_NOT_RETRYABLE", error.message.replace(id, runId));
      throw error;
    }
  }

  /** The run with the id that a client sent. Runs of items are not visible on this wire. */
  find(runId: string): Promise<Run> {
    return found(runId, (id) => this.#deps.reader.run(id));
  }

  findHead(runId: string): Promise<RunHead> {
    return found(runId, (id) => this.#deps.reader.runHead(id));
  }

  /**
   * The run once it has ended, or its state when the client's timeout is over. Thousands of clients may wait, so none keeps a text of its
   * run.
   */
  async waitFor(run: RunHead, { wait, timeoutSecs = waitSecsDefault, gone }: WaitOptions): Promise<RunHead> {
    if (!wait || !isRunOpen(run.state)) return run;
    const { clock, runs } = this.#deps;
    const untilMs = clock.now() + Math.min(timeoutSecs, waitSecsMax) * 1_000;
    const ended = await runs.result(run.id, (leave) => {
      const stop = clock.at(untilMs, leave);
      const stay = whenAborted(gone())(leave);
      return () => {
        stop();
        stay();
      };
    });
    return ended === undefined ? run : headOf(ended);
  }

  /**
   * The current result of every item, one by one, because together they may have gigabytes. `count` is called with the characters of each.
   */
  async *results(run: RunHead, order: number, count: Count = () => {}): AsyncGenerator<Item, void, void> {
    const { reader } = this.#deps;
    const { items } = settingsOf(run);
    const each = items === undefined ? [{ index: 0, id: run.id }] : await this.#itemsInOrder(run.id, items, order);
    for (const { index, id } of each) {
      await reader.turn(1);
      const item = id === undefined ? undefined : await reader.run(id);
      count(item?.output?.length ?? 0);
      yield renderItem(index, item, run);
    }
  }

  /** `id` is undefined for an item that has not begun. */
  async #itemsInOrder(runId: string, items: number, order: number): Promise<{ index: number; id: string | undefined }[]> {
    const ends = new Map<number, number>();
    for await (const item of this.#deps.items.heads(runId)) {
      ends.set(settingsOf(item).item ?? 0, isRunOpen(item.state) ? Number.POSITIVE_INFINITY : (item.endedAt ?? Number.POSITIVE_INFINITY));
    }
    const each = Array.from({ length: items }, (_none, index) => ({ index, id: ends.has(index) ? itemRunId(runId, index) : undefined }));
    if (order !== ResultOrder.BY_COMPLETION) return each;
    const endOf = (index: number) => ends.get(index) ?? Number.POSITIVE_INFINITY;
    const isBefore = (a: number, b: number) => (a === b ? 0 : a < b ? -1 : 1);
    return each.sort((a, b) => isBefore(endOf(a.index), endOf(b.index)) || a.index - b.index);
  }

  /** The steps that have begun, of one item or of all, one by one. `count` works as for results. */
  async *steps(run: RunHead, itemIndex?: number, count: Count = () => {}): AsyncGenerator<Step, void, void> {
    const startedAt = await this.#deps.renderer.startOf(run);
    if (itemIndex !== undefined || settingsOf(run).items === undefined) {
      const item = await this.#itemOf(run, itemIndex ?? 0);
      if (item !== undefined) yield* this.#stepsOf(item, { itemIndex: itemIndex ?? 0, startedAt, count });
      return;
    }
    let steps = 0;
    for await (const item of this.#deps.items.heads(run.id)) {
      for await (const step of this.#stepsOf(item, { itemIndex: settingsOf(item).item ?? 0, startedAt, count })) {
        if (steps++ === stepsMax) return;
        yield step;
      }
    }
  }

  async *#stepsOf(item: RunHead, { itemIndex, startedAt, count }: StepsOf): AsyncGenerator<Step, void, void> {
    const { reader, renderer } = this.#deps;
    for (const step of (await renderer.viewOf(item)).steps) {
      await reader.turn(1);
      const task = await reader.task(taskIdOf(item.id, step.node));
      if (task === undefined || task.state === "forgotten") continue;
      count(task.output?.length ?? 0);
      yield renderStep(task, step, itemIndex, startedAt);
    }
  }

  /** The run of an item on the board; undefined when there is no such item or it has not begun. */
  async #itemOf(run: RunHead, index: number): Promise<RunHead | undefined> {
    if (settingsOf(run).items !== undefined) return this.#deps.reader.runHead(itemRunId(run.id, index));
    return index === 0 ? run : undefined;
  }
}

/** The run without its texts. */
function headOf({ input: _1, output: _2, error: _3, variables: _4, backlog: _5, skips: _6, ...head }: RunHead & Partial<Run>): RunHead {
  return head;
}

async function found<R extends RunHead>(runId: string, read: (id: string) => Promise<R | undefined>): Promise<R> {
  if (runId === "") throw invalid("run_id", "is missing, expected the id of a run");
  const run = await read(ownRunId(runId));
  if (run === undefined || settingsOf(run).item !== undefined) throw notFound("run", runId);
  return run;
}

function checkWait({ timeoutSecs }: WaitOptions): void {
  if (timeoutSecs !== undefined && timeoutSecs < 0) throw invalid("timeout_secs", `is ${timeoutSecs}, expected 0 or more`);
}
