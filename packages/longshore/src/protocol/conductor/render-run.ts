// A run as Conductor's wire has it: README.md, "A workflow". Every try of every task is a record of its own, in the order in which they
// were scheduled.

import type { Task } from "../../board/task.ts";
import { dialectName } from "../../dialect/conductor/compile.ts";
import { unquoteJson } from "../../dialect/conductor/quoting.ts";
import { workflowStatusOf } from "../../dialect/conductor/records.ts";
import { type Settings, settingsOf } from "../../dialect/conductor/settings.ts";
import type { AttemptView, Reader } from "../../run/reader.ts";
import { childIdOf, isRunOpen, type Run, type RunState } from "../../run/run.ts";
import { currentTry, earlierTry, namesOf, objectText, renderTask, type Try } from "./render-task.ts";
import type { DefinitionView, StepView, Views } from "./view.ts";

const states: readonly RunState[] = ["running", "paused", "succeeded", "failed", "cancelled", "timed-out"];
export const stateOfStatus: ReadonlyMap<string, RunState> = new Map(states.map((state) => [workflowStatusOf(state), state]));

/** One record of a run: a try, and the step that it is one of. */
export interface Recorded {
  readonly shown: Try;
  readonly task: Task;
  readonly step: StepView;
  readonly reasonBefore: string | null;
  readonly childId: string | undefined;
}

export class RunRenderer {
  readonly #reader: Reader;
  readonly #views: Views;
  readonly #now: () => number;

  constructor(reader: Reader, views: Views, now: () => number) {
    this.#reader = reader;
    this.#views = views;
    this.#now = now;
  }

  async viewOf(run: Run): Promise<DefinitionView> {
    const definition = await this.#reader.definitionById(run.definitionId);
    if (definition === undefined) throw new Error(`Run ${run.id} has no definition ${run.definitionId}.`);
    return this.#views.of(definition);
  }

  /** Every try of every step that has begun, in the order of Conductor's `seq`. */
  async records(run: Run, view: DefinitionView): Promise<Recorded[]> {
    const all: Recorded[] = [];
    for (const task of await this.#reader.records(run.id)) {
      if (task.state === "forgotten") continue;
      all.push(...(await this.recordsOf(task, view)));
    }
    return all.sort((a, b) => a.shown.ordinal - b.shown.ordinal);
  }

  /** Every try of one step, oldest first. */
  async recordsOf(task: Task, view: DefinitionView): Promise<Recorded[]> {
    const step = view.steps[task.node];
    return step === undefined ? [] : this.#triesOf(task, step, view);
  }

  async #triesOf(task: Task, step: StepView, view: DefinitionView): Promise<Recorded[]> {
    const earlier = task.attempt > task.firstAttempt ? (await this.#reader.attempts(task.id)).slice(0, -1) : [];
    const own = earlier.filter((attempt) => attempt.attempt >= task.firstAttempt);
    const inputs = inputsOf(own, task.input);
    const tries = [...own.map((attempt, at) => earlierTry(task, attempt, inputs[at] as string, step)), currentTry(task, step)];
    const records: Recorded[] = tries.map((shown, at) => ({
      shown: view.dialect === dialectName ? { ...shown, input: unquoteJson(shown.input) } : shown,
      task,
      step,
      reasonBefore: tries[at - 1]?.error ?? null,
      childId: childOf(step, task, shown.attempt),
    }));
    return step.node?.kind === "run" ? Promise.all(records.map((recorded) => this.#withChild(recorded))) : records;
  }

  /** A child that is not there, because its step was cancelled before it began, is not named. */
  async #withChild(recorded: Recorded): Promise<Recorded> {
    const { childId, shown } = recorded;
    const child = childId === undefined ? undefined : await this.#reader.run(childId);
    return child === undefined ? { ...recorded, childId: undefined, shown: { ...shown, output: null } } : recorded;
  }

  taskText(recorded: Recorded, run: Run, settings: Settings): string {
    const { shown, step, reasonBefore, childId } = recorded;
    return renderTask(shown, { step, workflowId: run.id, workflowType: run.workflow, settings, childId, reasonBefore, now: this.#now() });
  }

  async run(run: Run, withTasks: boolean): Promise<string> {
    const view = await this.viewOf(run);
    const settings = settingsOf(run);
    const records = await this.records(run, view);
    const ended = !isRunOpen(run.state);
    // Told when a run ends; one that was tried again still says it.
    const tells = ended || run.retries > 0;
    const failed = tells ? records.filter(({ shown }) => shown.status === "FAILED" || shown.status === "FAILED_WITH_TERMINAL_ERROR") : [];
    const unique = (names: readonly string[]) => JSON.stringify([...new Set(names)]);
    const parts: (string | undefined)[] = [
      '"ownerApp":""',
      `"createTime":${run.createdAt}`,
      `"updateTime":${run.endedAt ?? lastChange(records, run)}`,
      maybe("createdBy", settings.createdBy),
      `"status":"${workflowStatusOf(run.state)}"`,
      `"endTime":${run.endedAt ?? 0}`,
      `"workflowId":${JSON.stringify(run.id)}`,
      maybe("parentWorkflowId", settings.parentWorkflowId),
      maybe("parentWorkflowTaskId", settings.parentWorkflowTaskId),
      `"tasks":[${withTasks ? records.map((recorded) => this.taskText(recorded, run, settings)).join(",") : ""}]`,
      `"input":${objectText(shownInput(run), "input")}`,
      `"output":${objectText(run.output ?? "{}", "result")}`,
      maybe("correlationId", settings.correlationId),
      // What a permissive task said so far is told at the end.
      maybe("reasonForIncompletion", ended ? run.error : null),
      maybe("event", settings.event),
      `"taskToDomain":${JSON.stringify(settings.taskToDomain ?? {})}`,
      `"failedReferenceTaskNames":${unique(failed.map(({ step }) => step.task.taskReferenceName))}`,
      `"workflowDefinition":${view.text}`,
      `"priority":${settings.priority}`,
      `"variables":${shownVariables(run, view)}`,
      `"lastRetriedTime":${run.retries > 0 && run.countedFrom > run.createdAt ? run.countedFrom : 0}`,
      `"failedTaskNames":${unique(failed.map(({ step, shown }) => namesOf(step, shown.input).definitionName))}`,
      '"history":[]',
      maybe("idempotencyKey", settings.idempotencyKey),
      '"rateLimited":false',
      `"startTime":${run.createdAt}`,
      `"workflowName":${JSON.stringify(run.workflow)}`,
      `"workflowVersion":${view.version}`,
    ];
    return `{${parts.filter((part) => part !== undefined).join(",")}}`;
  }
}

/** JSON text, for people: a secret of the definition is its reference, data is as it came. */
export function shownInput(run: Run): string {
  return settingsOf(run).quotedInput ? unquoteJson(run.input) : run.input;
}

export function shownVariables(run: Run, { dialect }: DefinitionView): string {
  const variables = run.variables ?? "{}";
  return dialect === dialectName ? unquoteJson(variables) : variables;
}

/** Known before it exists. */
function childOf(step: StepView, task: Task, attempt: number): string | undefined {
  return step.node?.kind === "run" && task.runId !== null ? childIdOf(task.runId, task.node, attempt) : undefined;
}

/** What each try was given: its own where that was kept, else that of the one after it. */
function inputsOf(attempts: readonly AttemptView[], last: string): string[] {
  let following = last;
  const inputs = attempts.map(() => "");
  for (let at = attempts.length - 1; at >= 0; at--) {
    following = attempts[at]?.input ?? following;
    inputs[at] = following;
  }
  return inputs;
}

function lastChange(records: readonly Recorded[], run: Run): number {
  return Math.max(run.createdAt, ...records.map(({ shown }) => Math.max(shown.updatedAt, shown.scheduledAt)));
}

function maybe(name: string, value: string | null | undefined): string | undefined {
  return value === null || value === undefined ? undefined : `"${name}":${JSON.stringify(value)}`;
}
