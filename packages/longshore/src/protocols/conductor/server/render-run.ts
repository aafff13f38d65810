// A run on Conductor's wire: README.md, "A workflow". Every attempt of every task is a separate record, in the order of scheduling.

import type { Json, JsonObject } from "../../../core/json/json.ts";
import { parseExact, writeExact } from "../../../core/json/json-exact.ts";
import { type Growth, limitedGrowth } from "../../../core/list-text.ts";
import type { LongBytes } from "../../../core/long-bytes.ts";
import type { TaskRow } from "../../../engine/board/task.ts";
import type { AttemptView, Reader } from "../../../engine/run/reader.ts";
import { childIdOf, isRunOpen, type Run, type RunState } from "../../../engine/run/run.ts";
import { dialectName } from "../dialect/compile.ts";
import { hideCredentialsJson } from "../dialect/credentials.ts";
import { choosesByScript } from "../dialect/operators.ts";
import { unquoteJson } from "../dialect/quoting.ts";
import { chosenInput, isSystemTask, workflowStatusOf } from "../dialect/records.ts";
import { type Settings, settingsOf } from "../dialect/settings.ts";
import { currentTry, earlierTry, namesOf, objectText, referenceOf, renderTask, type Try } from "./render-task.ts";
import type { DefinitionView, StepView, Views } from "./view.ts";

const states: readonly RunState[] = ["running", "paused", "succeeded", "failed", "cancelled", "timed-out"];
export const stateOfStatus: ReadonlyMap<string, RunState> = new Map(states.map((state) => [workflowStatusOf(state), state]));

/** One record of a run: a try of a step, and that step. */
export interface Recorded {
  readonly shown: Try;
  readonly task: TaskRow;
  readonly step: StepView;
  readonly before: Try | undefined;
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

  async viewOf(run: Pick<Run, "id" | "definitionId">): Promise<DefinitionView> {
    const definition = await this.#reader.definitionById(run.definitionId);
    if (definition === undefined) throw new Error(`Run ${run.id} has no definition ${run.definitionId}.`);
    return this.#views.of(definition);
  }

  /** Every try of every step that has begun, in the order of the steps. One step at a time: all of them may have gigabytes. */
  async *records(run: Pick<Run, "id">, view: DefinitionView): AsyncGenerator<Recorded, void, void> {
    for await (const task of this.#reader.records(run.id)) if (task.state !== "forgotten") yield* await this.recordsOf(task, view);
  }

  /** Every try of one step, oldest first. */
  async recordsOf(task: TaskRow, view: DefinitionView): Promise<Recorded[]> {
    const step = view.steps[task.node];
    return step === undefined ? [] : this.#triesOf(task, step, view);
  }

  /** With `charsMax` 0 no texts of earlier attempts are read. */
  async #triesOf(task: TaskRow, step: StepView, view: DefinitionView, charsMax?: number): Promise<Recorded[]> {
    const earlier = task.attempt > task.firstAttempt ? (await this.#reader.attempts(task.id, charsMax)).slice(0, -1) : [];
    const own = earlier.filter((attempt) => attempt.attempt >= task.firstAttempt);
    const inputs = inputsOf(own, task.input);
    const all = [...own.map((attempt, at) => earlierTry(task, attempt, inputs[at] as string, step)), currentTry(task, step)];
    // A try that continues in the place of the one before it replaces it.
    const tries = all.filter(({ ordinal }, at) => ordinal !== all[at + 1]?.ordinal);
    const records: Recorded[] = tries.map((shown, at) => ({
      shown: view.dialect === dialectName ? { ...shown, input: shownTaskInput(step, shown) } : shown,
      task,
      step,
      before: tries[at - 1],
      childId: childOf(step, task, shown.attempt),
    }));
    return step.node?.kind === "run" ? Promise.all(records.map((recorded) => this.#withChild(recorded))) : records;
  }

  /** Leaves out the id of a child that was never started. */
  async #withChild(recorded: Recorded): Promise<Recorded> {
    const { childId, shown } = recorded;
    const child = childId === undefined ? undefined : await this.#reader.run(childId);
    return child === undefined ? { ...recorded, childId: undefined, shown: { ...shown, output: null } } : recorded;
  }

  taskText(recorded: Recorded, run: Pick<Run, "id" | "workflow">, settings: Settings): string {
    const { shown, step, before, childId } = recorded;
    return renderTask(shown, { step, workflowId: run.id, workflowType: run.workflow, settings, childId, before, now: this.#now() });
  }

  /** A run as a complete response. Not for use inside a list, which has its own turns. `find` reads the run when its turn has come. */
  answer(find: () => Promise<Run>, withTasks: boolean): Promise<string | LongBytes> {
    return this.#reader.longBody(async (growth) => this.#texts(await find(), withTasks, growth));
  }

  /** A response with `given`, followed by some fields of a run in order. No text of the run is parsed for it. */
  answerWith(given: object, find: () => Promise<Run>, names: readonly string[]): Promise<string | LongBytes> {
    return this.#reader.longBody(async (growth) => {
      const fields = await this.#fields(await find(), true, growth);
      const texts = [JSON.stringify(given).slice(0, -1)];
      for (const name of names) for (const text of fields.get(name) ?? []) texts.push(text);
      return [...texts, "}"];
    });
  }

  /** The steps that failed, each once, in the order of Conductor's `seq`. */
  async failed(run: Run): Promise<{ references: string[]; names: string[] }> {
    const lines: Line[] = [];
    for await (const line of this.#bareLines(run, await this.viewOf(run))) lines.push(line);
    return failedIn(lines.sort(byOrdinal));
  }

  /** The fields of a run without its tasks are computed from rows without texts, because outputs may have gigabytes. */
  async *#bareLines(run: Pick<Run, "id">, view: DefinitionView): AsyncGenerator<Line, void, void> {
    for (const head of await this.#reader.heads(run.id)) {
      const step = view.steps[head.node];
      if (step === undefined || head.state === "forgotten") continue;
      // The name of a DYNAMIC task is in its input.
      const whole = step.task.type === "DYNAMIC" ? await this.#reader.task(head.id) : undefined;
      const task = whole ?? { ...head, input: "{}", output: null };
      const records = await this.#triesOf(task, step, view, whole === undefined ? 0 : undefined);
      for (const recorded of records) yield lineOf(recorded, "");
    }
  }

  async run(run: Run, withTasks: boolean, growth: Growth = limitedGrowth()): Promise<string> {
    return (await this.#texts(run, withTasks, growth)).join("");
  }

  async #texts(run: Run, withTasks: boolean, growth: Growth): Promise<string[]> {
    const texts = ["{"];
    for (const member of (await this.#fields(run, withTasks, growth)).values()) for (const text of member) texts.push(text);
    // Each member begins with a comma.
    texts[1] = texts[1]?.slice(1) ?? "";
    texts.push("}");
    return texts;
  }

  /**
   * Each field as a member of an object: `,"name":` and its value. The result is several texts, because there may be thousands of tasks.
   */
  async #fields(run: Run, withTasks: boolean, growth: Growth): Promise<Map<string, readonly string[]>> {
    const view = await this.viewOf(run);
    const settings = settingsOf(run);
    const lines: Line[] = [];
    growth.count(run.input.length + (run.output?.length ?? 0));
    await growth.turn();
    if (!withTasks) for await (const line of this.#bareLines(run, view)) lines.push(line);
    else
      for await (const recorded of this.records(run, view)) {
        const line = lineOf(recorded, this.taskText(recorded, run, settings));
        growth.count(line.text.length);
        lines.push(line);
        await growth.turn();
      }
    lines.sort(byOrdinal);
    const ended = !isRunOpen(run.state);
    // These fields exist after a run has ended; a retried run still shows them.
    const tells = ended || run.retries > 0;
    const failed = tells ? failedIn(lines) : { references: [], names: [] };
    const fields: [name: string, text: string | null][] = [
      ["ownerApp", '""'],
      ["createTime", `${run.createdAt}`],
      ["updateTime", `${run.endedAt ?? lastChange(lines, run)}`],
      ["createdBy", maybe(settings.createdBy)],
      ["status", `"${workflowStatusOf(run.state)}"`],
      ["endTime", `${run.endedAt ?? 0}`],
      ["workflowId", `${JSON.stringify(run.id)}`],
      ["parentWorkflowId", maybe(settings.parentWorkflowId)],
      ["parentWorkflowTaskId", maybe(settings.parentWorkflowTaskId)],
      ["tasks", ""],
      ["input", `${objectText(shownInput(run), "input")}`],
      ["output", `${objectText(run.output ?? "{}", "result")}`],
      ["correlationId", maybe(settings.correlationId)],
      // The error of a permissive task is shown only after the end of the run.
      ["reasonForIncompletion", maybe(ended ? run.error : null)],
      ["event", maybe(settings.event)],
      ["taskToDomain", `${JSON.stringify(settings.taskToDomain ?? {})}`],
      ["failedReferenceTaskNames", `${JSON.stringify(failed.references)}`],
      ["workflowDefinition", `${view.text}`],
      ["priority", `${settings.priority}`],
      ["variables", `${shownVariables(run, view)}`],
      ["lastRetriedTime", `${run.retries > 0 && run.countedFrom > run.createdAt ? run.countedFrom : 0}`],
      ["failedTaskNames", `${JSON.stringify(failed.names)}`],
      ["history", "[]"],
      ["idempotencyKey", maybe(settings.idempotencyKey)],
      ["rateLimited", "false"],
      ["startTime", `${run.createdAt}`],
      ["workflowName", `${JSON.stringify(run.workflow)}`],
      ["workflowVersion", `${view.version}`],
    ];
    const members = new Map<string, readonly string[]>();
    for (const [name, text] of fields) if (text !== null) members.set(name, [`,"${name}":${text}`]);
    const tasks = withTasks ? lines.map(({ text }, at) => (at === 0 ? text : `,${text}`)) : [];
    return members.set("tasks", [',"tasks":[', ...tasks, "]"]);
  }
}

/** JSON text for display: a secret of the definition is shown as its reference, data unquoted. */
export function shownInput(run: Run): string {
  return settingsOf(run).quotedInput ? unquoteJson(run.input) : run.input;
}

export function shownVariables(run: Run, { dialect }: DefinitionView): string {
  const variables = run.variables ?? "{}";
  return dialect === dialectName ? unquoteJson(variables) : variables;
}

function shownTaskInput({ task }: StepView, { input, output }: Pick<Try, "input" | "output">): string {
  if (task.type === "HTTP") return hideCredentialsJson(unquoteJson(input));
  if (!choosesByScript(task)) return unquoteJson(input);
  return unquoteJson(writeExact(chosenInput(task, parseExact(input) as JsonObject, parseExact(output ?? "null") as Json)));
}

/** The id of a child run, known before it exists. */
function childOf(step: StepView, task: TaskRow, attempt: number): string | undefined {
  return step.node?.kind === "run" && task.runId !== null ? childIdOf(task.runId, task.node, attempt) : undefined;
}

/** The input of each attempt: its own when it was stored, else that of the next attempt. */
function inputsOf(attempts: readonly AttemptView[], last: string): string[] {
  let following = last;
  const inputs = attempts.map(() => "");
  for (let at = attempts.length - 1; at >= 0; at--) {
    following = attempts[at]?.input ?? following;
    inputs[at] = following;
  }
  return inputs;
}

function lastChange(lines: readonly Line[], run: Run): number {
  return lines.reduce((newest, { changedAt }) => Math.max(newest, changedAt), run.createdAt);
}

/** The fields of a record that a response keeps. */
interface Line {
  readonly ordinal: number;
  readonly text: string;
  readonly changedAt: number;
  readonly failed: { readonly reference: string; readonly name: string } | null;
}

function lineOf({ shown, step }: Recorded, text: string): Line {
  const isTolerated = step.node?.onFailure === "tolerate" && shown.status === "FAILED_WITH_TERMINAL_ERROR" && isSystemTask(step.node);
  const isFailed = shown.status === "FAILED" || (shown.status === "FAILED_WITH_TERMINAL_ERROR" && !isTolerated);
  const failed = isFailed ? { reference: referenceOf(step), name: namesOf(step, shown.input).definitionName } : null;
  return { ordinal: shown.ordinal, text, changedAt: Math.max(shown.updatedAt, shown.scheduledAt), failed };
}

function byOrdinal(a: { readonly ordinal: number }, b: { readonly ordinal: number }): number {
  return a.ordinal - b.ordinal;
}

function failedIn(lines: readonly Line[]): { references: string[]; names: string[] } {
  const failed = lines.flatMap((line) => line.failed ?? []);
  return { references: [...new Set(failed.map(({ reference }) => reference))], names: [...new Set(failed.map(({ name }) => name))] };
}

function maybe(value: string | null | undefined): string | null {
  return value === null || value === undefined ? null : JSON.stringify(value);
}
