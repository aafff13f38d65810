// Makes the events of a run, which clients follow, from the run's records. Events are not stored, so they cannot disagree with the records and
// cannot be lost in a restart.

import type { Json } from "../../../../core/json/json.ts";
import type { TaskRow, TaskRowHead } from "../../../../engine/board/task.ts";
import { isOpen } from "../../../../engine/board/task.ts";
import type { AttemptView, Reader } from "../../../../engine/run/reader.ts";
import { isRunOpen, type RunHead } from "../../../../engine/run/run.ts";
import type { Encodable } from "../../../../net/protobuf/protobuf.ts";
import { settingsOf } from "../../dialect/settings.ts";
import { type StatusEvent, StatusEventType } from "../../wire/api-messages.ts";
import { wireRun, wireRunId } from "../run-id.ts";
import { flowIdOf, resultOf, statusOf, stepResultOf } from "./render.ts";
import type { FlowView, StepView } from "./view.ts";

/** One event, before it has its number. */
export interface RunHistoryEvent {
  readonly type: number;
  readonly at: number;
  /**
   * The place of an event among those of the same millisecond. Places are compared element by element. The start of the run comes first,
   * then its items in their order. Within an item, the steps are in the order in which they started. For a step, its start comes first,
   * then the runs that it has started, then its end. So causes come before effects.
   */
  readonly place: readonly (number | string)[];
  /** Makes the event. With `reader` it also reads the result: results may be large, so a waiting event does not keep them in memory. */
  toEvent(reader?: Reader): Encodable<typeof StatusEvent> | Promise<Encodable<typeof StatusEvent>>;
  /** True for the last event of the requested run. */
  readonly last?: boolean;
}

/** The place of a run's events among those of the requested run: none for that run itself. */
export type Within = readonly (number | string)[];

const beginning = 0;
const middle = 1;
const end = 2;
/** The place of runs whose step is not known: behind every step. */
const unplaced = Number.MAX_SAFE_INTEGER;

/** The beginning and the end of a run that the wire shows; `own` is the requested run. */
export function eventsOfRun(run: RunHead, within: Within, own: boolean): RunHistoryEvent[] {
  const runId = wireRunId(run.id);
  const settings = settingsOf(run);
  const flowId = flowIdOf(run, settings);
  const itemCount = settings.items ?? 1;
  const parentRunId = wireRunId(settings.parentRunId ?? "");
  const created: RunHistoryEvent = own
    ? {
        type: StatusEventType.RUN_CREATED,
        at: run.createdAt,
        place: [...within, beginning],
        toEvent: () => ({ runCreated: { runId, flowId, itemCount } }),
      }
    : {
        type: StatusEventType.SUB_RUN_CREATED,
        at: run.createdAt,
        place: [...within, beginning],
        toEvent: () => ({ subRunCreated: { runId, parentRunId, flowId, itemCount } }),
      };
  if (run.endedAt === null) return [created];
  const completed: RunHistoryEvent = {
    type: StatusEventType.RUN_COMPLETED,
    at: run.endedAt,
    place: [...within, end],
    toEvent: () => ({ runCompleted: { runId, status: statusOf(run.state) } }),
    ...(own ? { last: true } : {}),
  };
  return [created, completed];
}

/** The events of an item at its beginning and at its end. `item` is its run on the board. */
export function eventsOfItem(item: RunHead, view: FlowView, within: Within): RunHistoryEvent[] {
  const { id } = item;
  const { itemIndex } = wireRun(id);
  const runId = wireRunId(id);
  const at = [...within, middle, itemIndex];
  const needed = view.steps.filter(({ demanded }) => !demanded).map(({ stepId }) => stepId);
  const events: RunHistoryEvent[] = [];
  if (needed.length > 0) events.push(stepsNeeded(runId, itemIndex, needed, item.createdAt, [...at, beginning]));
  if (item.endedAt === null || isRunOpen(item.state)) return events;
  events.push({
    type: StatusEventType.ITEM_COMPLETED,
    at: item.endedAt,
    place: [...at, end],
    async toEvent(reader) {
      const run = reader && (await reader.run(id));
      const result = run === undefined || isRunOpen(run.state) ? undefined : resultOf(run);
      return { itemCompleted: { runId, itemIndex, ...(result?.outcome === "success" ? { result: result.result } : {}) } };
    },
  });
  return events;
}

export interface StepHistory {
  /** The status of the step on the wire. */
  readonly status: number;
  /** The attempts before the current one, where they are known. */
  readonly earlier?: readonly AttemptView[];
}

/** How a step began, and how it ended when it has. */
export function eventsOfStep(task: TaskRowHead, step: StepView, within: Within, history: StepHistory): RunHistoryEvent[] {
  if (task.runId === null || task.state === "forgotten") return [];
  const { itemIndex } = wireRun(task.runId);
  const runId = wireRunId(task.runId);
  const { stepIndex, stepId } = step;
  const at = [...within, middle, itemIndex, middle, task.ordinal];
  const events: RunHistoryEvent[] = [];
  const { status, earlier = [] } = history;
  const firstAt = earlier[0]?.attemptAt ?? task.attemptAt;
  if (step.demanded) events.push(stepsNeeded(runId, itemIndex, [stepId], firstAt, [...at, -1]));
  // A step that fails because of another step, or that no branch has chosen, never begins.
  const tries = task.lane === null ? [] : [...earlier.map(({ attempt, attemptAt }) => ({ attempt, attemptAt })), task];
  for (const { attempt, attemptAt } of tries) {
    events.push({
      type: StatusEventType.STEP_STARTED,
      at: attemptAt,
      place: [...at, beginning, attempt],
      toEvent: () => ({ stepStarted: { runId, itemIndex, stepIndex, stepId, attempt: attempt + 1 } }),
    });
  }
  if (isOpen(task.state) || task.endedAt === null) return events;
  const { id, attempt } = task;
  events.push({
    type: StatusEventType.STEP_COMPLETED,
    at: task.endedAt,
    place: [...at, end],
    async toEvent(reader) {
      const result = reader && resultIn(await reader.task(id), attempt, step);
      return { stepCompleted: { runId, itemIndex, stepIndex, stepId, status, ...result } };
    },
  });
  return events;
}

/** The result of an attempt, while it is the newest of its task and succeeded. */
function resultIn(task: TaskRow | undefined, attempt: number, step: StepView): { result?: Json } {
  const outcome = task?.attempt === attempt ? stepResultOf(task, step) : null;
  return outcome?.outcome === "success" ? { result: outcome.result } : {};
}

/** The place of a run that a step of another has started: inside that step. */
export function withinStep(
  within: Within,
  step: { readonly itemIndex: number; readonly ordinal: number } | undefined,
  run: RunHead,
): Within {
  const { itemIndex, ordinal } = step ?? { itemIndex: unplaced, ordinal: 0 };
  return [...within, middle, itemIndex, middle, ordinal, middle, run.id];
}

function stepsNeeded(runId: string, itemIndex: number, stepIds: string[], at: number, place: (number | string)[]): RunHistoryEvent {
  return { type: StatusEventType.STEPS_NEEDED, at, place, toEvent: () => ({ stepsNeeded: { runId, itemIndex, stepIds } }) };
}

/** By time, and by place within one millisecond. */
export function byTime(a: RunHistoryEvent, b: RunHistoryEvent): number {
  return a.at - b.at || comparePlaces(a.place, b.place);
}

function comparePlaces(a: RunHistoryEvent["place"], b: RunHistoryEvent["place"]): number {
  for (let at = 0; at < a.length && at < b.length; at++) {
    const [left, right] = [a[at] as number | string, b[at] as number | string];
    if (left !== right) return left < right ? -1 : 1;
  }
  return a.length - b.length;
}
