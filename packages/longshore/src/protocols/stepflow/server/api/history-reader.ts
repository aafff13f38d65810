// Makes the events of a run, and of the runs that it started, from their records: all events, or those of one changed record. Records are
// read without inputs and results; an event reads its result on request.

import type { TaskRowHead } from "../../../../engine/board/task.ts";
import type { Reader } from "../../../../engine/run/reader.ts";
import type { RunHead } from "../../../../engine/run/run.ts";
import { settingsOf } from "../../dialect/settings.ts";
import { ExecutionStatus } from "../../wire/messages.ts";
import { wireRun } from "../run-id.ts";
import {
  eventsOfItem,
  eventsOfRun,
  eventsOfStep,
  type RunHistoryEvent,
  type StepHistory,
  type Within,
  withinStep,
} from "./event-history.ts";
import type { Followers, History } from "./followers.ts";
import type { ItemRuns } from "./items.ts";
import { headStatusOf, type Renderer, stepResultOf, stepStatusOf } from "./render.ts";
import type { StepView } from "./view.ts";

export interface HistoryDeps {
  readonly reader: Reader;
  readonly renderer: Renderer;
  readonly items: ItemRuns;
  readonly followers: Followers;
}

/** How many runs of one family are searched for members. */
const familyMax = 100_000;

/** Throws RESOURCE_EXHAUSTED when there are too many events. */
export async function readHistory(deps: HistoryDeps, runId: string, withSubRuns: boolean): Promise<History> {
  const { followers } = deps;
  const events: RunHistoryEvent[] = [];
  const add = (more: readonly RunHistoryEvent[]) => {
    followers.checkHold(events.length, more.length);
    followers.events += more.length;
    for (const event of more) events.push(event);
  };
  try {
    const reader = new HistoryReader(deps, runId, new Map([[runId, []]]), add);
    return { ...(await reader.all(withSubRuns)), members: reader.members, events };
  } finally {
    followers.events -= events.length;
  }
}

export class HistoryReader {
  readonly members: Map<string, Within>;
  readonly #deps: HistoryDeps;
  readonly #runId: string;
  readonly #add: (events: readonly RunHistoryEvent[]) => void;

  constructor(deps: HistoryDeps, runId: string, members: Map<string, Within>, add: (events: readonly RunHistoryEvent[]) => void) {
    this.#deps = deps;
    this.#runId = runId;
    this.members = members;
    this.#add = add;
  }

  async all(withSubRuns: boolean): Promise<{ startedAt: number | undefined; rootId: string }> {
    const { reader, renderer } = this.#deps;
    const run = await reader.runHead(this.#runId);
    if (run === undefined) return { startedAt: undefined, rootId: "" };
    const found = { startedAt: await renderer.startOf(run), rootId: settingsOf(run).rootRunId ?? run.id };
    await this.#readRun(run);
    if (!withSubRuns) return found;
    for (const id of await this.#family(found.rootId)) {
      const other = await reader.runHead(id);
      if (other !== undefined && (await this.#join(other))) await this.#readRun(other);
    }
    return found;
  }

  /** Adds the events of a changed run. */
  async run(id: string): Promise<void> {
    const run = await this.#deps.reader.runHead(id);
    if (run === undefined) return;
    const { runId } = wireRun(run.id);
    if (runId === run.id && !this.members.has(run.id)) {
      // A new run. Its tasks may have been reported before it.
      if (await this.#join(run)) await this.#readRun(run);
      return;
    }
    const within = this.members.get(runId);
    if (within === undefined) return;
    if (run.id === runId) this.#add(eventsOfRun(run, within, run.id === this.#runId));
    if (settingsOf(run).items === undefined) this.#add(eventsOfItem(run, await this.#deps.renderer.viewOf(run), within));
  }

  /** Adds the events of a changed task. */
  async task(id: string): Promise<void> {
    const { reader, renderer } = this.#deps;
    const task = await reader.taskHead(id);
    if (task === undefined) return;
    const within = this.members.get(wireRun(task.runId as string).runId);
    const item = within === undefined ? undefined : await reader.runHead(task.runId as string);
    // The task that starts the items of a run is not one of their steps.
    if (item === undefined || within === undefined || settingsOf(item).items !== undefined) return;
    const step = (await renderer.viewOf(item)).byNode.get(task.node);
    if (step !== undefined) this.#add(eventsOfStep(task, step, within, { status: await this.#statusOf(task, step) }));
  }

  /** The ids of all runs of the family, oldest first: a run comes before the runs that it started. */
  async #family(rootId: string): Promise<string[]> {
    const found: { id: string; createdAt: number; depth: number }[] = [];
    const order = { by: "created", down: false } as const;
    const { heads } = await this.#deps.reader.search({ aliases: [rootId], order, offset: 0, limit: familyMax });
    for await (const run of heads) found.push({ id: run.id, createdAt: run.createdAt, depth: settingsOf(run).depth ?? 0 });
    return found.sort((a, b) => a.createdAt - b.createdAt || a.depth - b.depth).map(({ id }) => id);
  }

  /** Returns true for a run whose parent is followed. From now on, this run is followed too. */
  async #join(run: RunHead): Promise<boolean> {
    if (this.members.has(run.id)) return true;
    const { parentRunId, parentTaskId } = settingsOf(run);
    const around = parentRunId === undefined ? undefined : this.members.get(parentRunId);
    if (around === undefined) return false;
    const task = parentTaskId === undefined ? undefined : await this.#deps.reader.taskHead(parentTaskId);
    const step = task?.runId == null ? undefined : { itemIndex: wireRun(task.runId).itemIndex, ordinal: task.ordinal };
    this.members.set(run.id, withinStep(around, step, run));
    return true;
  }

  /** Adds all events of a run that the wire knows. */
  async #readRun(run: RunHead): Promise<void> {
    const within = this.members.get(run.id) as Within;
    this.#add(eventsOfRun(run, within, run.id === this.#runId));
    if (settingsOf(run).items === undefined) return this.#readItem(run, within);
    for await (const item of this.#deps.items.heads(run.id)) await this.#readItem(item, within);
  }

  async #readItem(item: RunHead, within: Within): Promise<void> {
    const { reader, renderer } = this.#deps;
    const view = await renderer.viewOf(item);
    this.#add(eventsOfItem(item, view, within));
    for (const task of await reader.heads(item.id)) {
      const step = view.byNode.get(task.node);
      if (step !== undefined) this.#add(eventsOfStep(task, step, within, await this.#historyOf(task, step)));
    }
  }

  async #historyOf(task: TaskRowHead, step: StepView): Promise<StepHistory> {
    const status = await this.#statusOf(task, step);
    if (task.attempt <= task.firstAttempt) return { status };
    const earlier = (await this.#deps.reader.attempts(task.id, 0)).slice(0, -1);
    return { status, earlier: earlier.filter(({ attempt }) => attempt >= task.firstAttempt) };
  }

  async #statusOf(head: TaskRowHead, step: StepView): Promise<number> {
    const known = headStatusOf(head, step);
    if (known !== undefined) return known;
    const task = await this.#deps.reader.task(head.id);
    return task === undefined ? ExecutionStatus.FAILED : stepStatusOf(task, stepResultOf(task, step));
  }
}
