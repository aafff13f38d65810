// Searches runs and tasks. Runs are found by the store's indexes; tasks by a scan of the newest ones.

import { writeExact } from "../../../core/json/json-exact.ts";
import { inTurns } from "../../../core/slices/slice-work.ts";
import { rowBytes, wholeRow } from "../../../core/slices/slices.ts";
import { sortInSlices } from "../../../core/slices/sort-slices.ts";
import { hasTextInSlices } from "../../../core/text-search.ts";
import { pageMax, type Reader, type RunSearch, searchMax } from "../../../engine/run/reader.ts";
import type { Run } from "../../../engine/run/run.ts";
import type { Runs } from "../../../engine/run/runs.ts";
import type { HttpReply, HttpRequest } from "../../../net/http/http.ts";
import { workflowStatusOf } from "../dialect/records.ts";
import { settingsOf } from "../dialect/settings.ts";
import { type Condition, parseQuery, parseSort, satisfies } from "./query.ts";
import { type Recorded, type RunRenderer, shownInput, stateOfStatus } from "./render-run.ts";
import { namesOf, objectText } from "./render-task.ts";
import { badRequest, hits, invalid, jsonText } from "./replies.ts";
import { textInQuery, wholeIn } from "./request.ts";
import type { DefinitionView } from "./view.ts";

export interface SearchDeps {
  readonly reader: Reader;
  readonly runs: Runs;
  readonly renderer: RunRenderer;
}

/** A try that a search found, without its texts: thousands of them may have gigabytes. */
interface Hit {
  readonly taskId: string;
  readonly attempt: number;
  readonly runId: string;
  /** The sort key. */
  readonly key: string | number;
}

interface Known {
  readonly run: Run;
  readonly view: DefinitionView;
}

/** Results in one answer. */
const sizeMax = 5_000;
/** Maximum number of tasks that a search visits, newest first. A run cannot have more. */
const tasksMax = 20_000;

export class Search {
  readonly #deps: SearchDeps;

  constructor(deps: SearchDeps) {
    this.#deps = deps;
  }

  workflows = async (request: HttpRequest): Promise<HttpReply> => {
    const { total, runs } = await this.#findRuns(request);
    return this.#page(
      total,
      () => runs,
      async (run) => writeExact(await this.#summary(run)),
    );
  };

  workflowsWhole = async (request: HttpRequest): Promise<HttpReply> => {
    const { total, runs } = await this.#findRuns(request);
    return this.#page(
      total,
      () => runs,
      (run) => this.#deps.renderer.run(run, false),
    );
  };

  byTasks = async (request: HttpRequest): Promise<HttpReply> => {
    const { hits, total } = await this.#findTasks(request);
    return this.#page(
      total,
      () => this.#runsOf(hits),
      async (run) => writeExact(await this.#summary(run)),
      { cut: false },
    );
  };

  byTasksWhole = async (request: HttpRequest): Promise<HttpReply> => {
    const { hits, total } = await this.#findTasks(request);
    return this.#page(
      total,
      () => this.#runsOf(hits),
      (run) => this.#deps.renderer.run(run, false),
      { cut: false },
    );
  };

  tasks = async (request: HttpRequest): Promise<HttpReply> => {
    const { hits, total } = await this.#findTasks(request);
    return this.#page(
      total,
      () => this.#triesOf(hits),
      ({ recorded, run }) => writeExact(taskSummary(recorded, run)),
    );
  };

  tasksWhole = async (request: HttpRequest): Promise<HttpReply> => {
    const { hits, total } = await this.#findTasks(request);
    return this.#page(
      total,
      () => this.#triesOf(hits),
      ({ recorded, run }) => this.#deps.renderer.taskText(recorded, run, settingsOf(run)),
    );
  };

  /**
   * Each result is read and written before the next one. A page that would be too long ends early, and the client continues with a higher
   * `start`. With `cut: false`, such a page is refused, because `start` does not count its results.
   */
  async #page<T>(
    total: number,
    found: () => AsyncIterable<T>,
    write: (result: T) => string | Promise<string>,
    { cut = true }: { cut?: boolean } = {},
  ): Promise<HttpReply> {
    const texts = async function* () {
      for await (const result of found()) yield await write(result);
    };
    return jsonText(await this.#deps.reader.listBody(texts, { cut, around: hits(total) }));
  }

  #findRuns(request: HttpRequest): Promise<{ total: number; runs: AsyncIterable<Run> }> {
    const { start, size } = pageOf(request);
    const sort = parseSort(textInQuery(request, "sort"));
    const by = sort === undefined ? undefined : orders.get(sort.field);
    const text = textInQuery(request, "freeText");
    let search: RunSearch = {
      offset: start,
      limit: size,
      ...(by === undefined || sort === undefined ? {} : { order: { by, down: sort.down } }),
    };
    for (const condition of parseQuery(textInQuery(request, "query"))) search = narrowed(search, condition);
    return this.#deps.reader.search(text === undefined || text === "*" ? search : { ...search, text });
  }

  async #summary(run: Run): Promise<object> {
    const { renderer, reader } = this.#deps;
    await reader.turn(1);
    const settings = settingsOf(run);
    const failed = run.failed === 0 ? { references: [], names: [] } : await renderer.failed(run);
    const input = objectText(shownInput(run), "input");
    const output = objectText(run.output ?? "{}", "result");
    return {
      workflowType: run.workflow,
      version: settings.version,
      workflowId: run.id,
      ...(settings.correlationId === undefined ? {} : { correlationId: settings.correlationId }),
      startTime: timeText(run.createdAt),
      updateTime: timeText(run.endedAt ?? run.createdAt),
      ...(run.endedAt === null ? {} : { endTime: timeText(run.endedAt) }),
      status: workflowStatusOf(run.state),
      input,
      output,
      ...(run.error === null ? {} : { reasonForIncompletion: run.error }),
      executionTime: run.endedAt === null ? 0 : run.endedAt - run.createdAt,
      ...(settings.event === undefined ? {} : { event: settings.event }),
      failedReferenceTaskNames: failed.references.join(","),
      priority: settings.priority,
      failedTaskNames: failed.names,
      ...(settings.createdBy === undefined ? {} : { createdBy: settings.createdBy }),
      taskToDomain: settings.taskToDomain ?? {},
      ...(settings.idempotencyKey === undefined ? {} : { idempotencyKey: settings.idempotencyKey }),
      parentWorkflowId: settings.parentWorkflowId ?? "",
      classifier: "workflow",
      inputSize: input.length,
      outputSize: output.length,
    };
  }

  async #findTasks(request: HttpRequest): Promise<{ total: number; hits: Hit[] }> {
    const { start, size } = pageOf(request);
    const conditions = parseQuery(textInQuery(request, "query"));
    const text = textInQuery(request, "freeText");
    const within = conditions.find(({ field, operator }) => field === "workflowId" && operator === "=")?.values[0];
    const sort = parseSort(textInQuery(request, "sort"));
    const matching: Hit[] = [];
    for await (const { recorded, run } of this.#newest(within)) {
      const fields = fieldsOf(recorded, run);
      if (!conditions.every((condition) => !Object.hasOwn(fields, condition.field) || satisfies(condition, fields[condition.field])))
        continue;
      if (text !== undefined && text !== "*" && !(await this.#has(recorded, run, text))) continue;
      const key = sort === undefined ? "" : (fields[sort.field] ?? "");
      matching.push({ taskId: recorded.task.id, attempt: recorded.shown.attempt, runId: run.id, key });
    }
    const { reader } = this.#deps;
    const turns = { turn: (rows: number) => reader.turn(rows / wholeRow) };
    const down = (a: Hit, b: Hit) => compare(b, a);
    const ordered = sort === undefined ? matching : await sortInSlices(matching, sort.down ? down : compare, turns);
    return { total: matching.length, hits: ordered.slice(start, start + size) };
  }

  /** Whether an attempt contains a text. Its input and output may have megabytes, so the search takes turns with other work. */
  async #has(recorded: Recorded, run: Run, wanted: string): Promise<boolean> {
    const { input, output, ...rest } = taskSummary(recorded, run);
    for (const text of [JSON.stringify(rest), input, output]) {
      await this.#deps.reader.turn(1 + text.length / (rowBytes * wholeRow));
      if (await inTurns(hasTextInSlices(text, wanted))) return true;
    }
    return false;
  }

  async *#runsOf(hits: readonly Hit[]): AsyncGenerator<Run, void, void> {
    for (const id of new Set(hits.map(({ runId }) => runId))) {
      await this.#deps.reader.turn(1);
      const run = await this.#deps.runs.run(id);
      if (run !== undefined) yield run;
    }
  }

  /** Attempts that were removed or rerun since the search are left out. */
  async *#triesOf(hits: readonly Hit[]): AsyncGenerator<{ recorded: Recorded; run: Run }, void, void> {
    const { reader, runs, renderer } = this.#deps;
    let known: Known | undefined;
    for (const { taskId, attempt, runId } of hits) {
      await reader.turn(1);
      const task = await reader.task(taskId);
      if (known?.run.id !== runId) known = await loaded(runs, renderer, runId);
      if (task === undefined || known === undefined) continue;
      const recorded = (await renderer.recordsOf(task, known.view)).find(({ shown }) => shown.attempt === attempt);
      if (recorded !== undefined) yield { recorded, run: known.run };
    }
  }

  async *#newest(within: string | undefined): AsyncGenerator<{ recorded: Recorded; run: Run }> {
    const { reader, runs, renderer } = this.#deps;
    let before: string | undefined;
    let known: Known | undefined;
    for (let looked = 0; looked < tasksMax; ) {
      const page = await reader.tasks({
        limit: pageMax,
        ...(within === undefined ? {} : { runId: within }),
        ...(before === undefined ? {} : { before }),
      });
      for (const task of page.items) {
        looked++;
        if (task.runId === null || task.state === "forgotten") continue;
        if (known?.run.id !== task.runId) known = await loaded(runs, renderer, task.runId);
        if (known === undefined) continue;
        for (const recorded of await renderer.recordsOf(task, known.view)) yield { recorded, run: known.run };
      }
      if (page.next === null) return;
      before = page.next;
    }
  }
}

async function loaded(runs: Runs, renderer: RunRenderer, runId: string): Promise<Known | undefined> {
  const run = await runs.run(runId);
  return run === undefined ? undefined : { run, view: await renderer.viewOf(run) };
}

function pageOf(request: HttpRequest): { start: number; size: number } {
  const size = wholeIn(request, "size", 100);
  if (size > sizeMax) {
    const message = `Cannot return more than ${sizeMax} workflows. Please use pagination.`;
    throw invalid([{ path: "searchWorkflows.arg1", message, invalidValue: String(size) }]);
  }
  const start = wholeIn(request, "start", 0);
  if (start < 0 || start > searchMax) throw badRequest(`start is ${start}, expected a number from 0 to ${searchMax}.`);
  return { start, size: Math.max(0, size) };
}

const orders: ReadonlyMap<string, NonNullable<RunSearch["order"]>["by"]> = new Map([
  ["startTime", "created"],
  ["createTime", "created"],
  ["updateTime", "created"],
  ["endTime", "ended"],
  ["workflowType", "workflow"],
  ["status", "state"],
]);

const patterned: ReadonlyMap<string, keyof NonNullable<RunSearch["like"]>> = new Map([
  ["workflowId", "id"],
  ["workflowType", "workflow"],
  ["correlationId", "alias"],
]);

function narrowed(search: RunSearch, { field, operator, values }: Condition): RunSearch {
  const column = operator === "=" && values[0]?.includes("*") ? patterned.get(field) : undefined;
  if (column !== undefined) return { ...search, like: { ...search.like, [column]: values[0] } };
  const time = Number(values[0]);
  const bound = operator === ">" ? { after: time } : operator === "<" ? { before: time } : { after: time - 1, before: time + 1 };
  switch (field) {
    case "workflowId":
      return { ...search, ids: values };
    case "workflowType":
      return { ...search, workflows: values };
    case "correlationId":
      return { ...search, aliases: values };
    case "status":
      return { ...search, states: values.map((value) => stateOfStatus.get(value)).filter((state) => state !== undefined) };
    case "startTime":
      return { ...search, created: { ...search.created, ...bound } };
    case "endTime":
      return { ...search, ended: { ...search.ended, ...bound } };
    default:
      return search;
  }
}

function fieldsOf({ shown, step }: Recorded, run: Run): { [field: string]: string | number | undefined } {
  return {
    workflowId: run.id,
    workflowType: run.workflow,
    correlationId: settingsOf(run).correlationId,
    taskId: `${shown.taskId}.${shown.attempt}`,
    taskType: namesOf(step, shown.input).type,
    taskDefName: namesOf(step, shown.input).definitionName,
    status: shown.status,
    startTime: shown.startedAt ?? 0,
    endTime: shown.endedAt ?? 0,
    updateTime: shown.updatedAt,
  };
}

function compare(a: Hit, b: Hit): number {
  return a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
}

function taskSummary({ shown, step }: Recorded, run: Run) {
  const settings = settingsOf(run);
  return {
    workflowId: run.id,
    workflowType: run.workflow,
    ...(settings.correlationId === undefined ? {} : { correlationId: settings.correlationId }),
    scheduledTime: timeText(shown.scheduledAt),
    startTime: timeText(shown.startedAt ?? 0),
    updateTime: timeText(shown.updatedAt),
    endTime: timeText(shown.endedAt ?? 0),
    status: shown.status,
    ...(shown.error === null ? {} : { reasonForIncompletion: shown.error }),
    executionTime: shown.endedAt === null || shown.startedAt === null ? 0 : shown.endedAt - shown.startedAt,
    queueWaitTime: shown.startedAt === null ? 0 : shown.startedAt - shown.scheduledAt,
    taskDefName: namesOf(step, shown.input).definitionName,
    taskType: namesOf(step, shown.input).type,
    input: objectText(shown.input, "input"),
    output: objectText(shown.output ?? "{}", "result"),
    taskId: `${shown.taskId}.${shown.attempt}`,
    workflowPriority: settings.priority,
    ...(shown.domain === undefined ? {} : { domain: shown.domain }),
  };
}

function timeText(at: number): string {
  return new Date(at).toISOString();
}
