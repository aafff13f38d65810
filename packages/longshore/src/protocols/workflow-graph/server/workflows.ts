// The requests of people and tools: workflows, their states, their logs. README.md, "Workflows".

import { randomUUID } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Growth } from "../../../core/list-text.ts";
import type { StoredChunk } from "../../../engine/log/store.ts";
import type { Definition } from "../../../engine/run/dialect.ts";
import type { Run } from "../../../engine/run/run.ts";
import type { EventSink, HttpReply, HttpRequest } from "../../../net/http/http.ts";
import { fromJobs } from "../dialect/jobs.ts";
import { sampleId, sampleSource } from "../dialect/sample.ts";
import { dialectName } from "../dialect/source.ts";
import type { LogChunk, Workflow } from "../wire/shapes.ts";
import type { LogStreams } from "./log-stream.ts";
import { expectJson } from "./parse.ts";
import { type ListQuery, parseList, parseNewWorkflow } from "./parse-workflow.ts";
import { misshapen } from "./refuse.ts";
import { renderWorkflow, workflowTexts } from "./render.ts";
import { accepted, emptyList, jsonHeaders, notFound } from "./replies.ts";
import type { WorkflowGraphDeps } from "./routes.ts";
import { type Found, type RunLookup, taskIdIn } from "./run-lookup.ts";

/** How many definitions and chunks are read at a time. */
const definitionsAtOnce = 50;
/** How many jobs of a workflow are rendered without a pause: about a millisecond. */
const jobsAtOnce = 200;
/** How many jobs are rendered before other requests get a turn: a few milliseconds. */
const jobsPerTurn = 2_000;

export class Workflows {
  readonly #deps: WorkflowGraphDeps;
  readonly #finder: RunLookup;
  readonly #streams: LogStreams;

  constructor(deps: WorkflowGraphDeps, finder: RunLookup, streams: LogStreams) {
    this.#deps = deps;
    this.#finder = finder;
    this.#streams = streams;
  }

  list = async (request: HttpRequest): Promise<HttpReply> => {
    const query = parseList(request.query);
    if (query.limit === 0) return emptyList;
    // The workflows are rendered one after the other, up to the limit of a response: each may be as large as a definition.
    return { status: 200, headers: jsonHeaders, body: await this.#deps.reader.listBody(() => this.#listed(query)) };
  };

  create = async (request: HttpRequest): Promise<HttpReply> => {
    expectJson(request.headers);
    const { text } = request;
    const { source } = fromJobs(parseNewWorkflow(text), (path, message, expected) =>
      misshapen(text, path, `${message}; expected ${expected}`),
    );
    return this.#define(randomUUID(), source);
  };

  sample = (): Promise<HttpReply> => this.#define(sampleId, sampleSource);

  status = async (request: HttpRequest): Promise<HttpReply> => {
    const id = request.params.workflow as string;
    const found = await this.#finder.find(id);
    if (found === undefined) return notFound;
    if (found.view.graph.jobs.length <= jobsAtOnce) return json(200, await this.#render(id, found));
    return { status: 200, headers: jsonHeaders, body: await this.#deps.reader.longBody((growth) => this.#texts(id, found, growth)) };
  };

  /** An open run continues: two requests start one run. */
  run = async (request: HttpRequest): Promise<HttpReply> => {
    const definition = await this.#finder.definition(request.params.workflow as string);
    if (definition === undefined) return notFound;
    const { id: definitionId, name: workflow } = definition;
    const alias = (await this.#isTaken(workflow)) ? {} : { alias: workflow };
    await this.#deps.runs.begin({ workflow, definitionId, input: "{}", unlessRunning: true, ...alias });
    return accepted;
  };

  cancel = async (request: HttpRequest): Promise<HttpReply> => {
    const found = await this.#finder.find(request.params.workflow as string);
    if (found === undefined) return notFound;
    const run = found.run ?? (await this.#deps.reader.newestRun(found.workflow));
    if (run !== undefined) await this.#deps.runs.cancel(run.id);
    return accepted;
  };

  /** The log of the job in the newest run, or in the run that the id names. Unknown ids have an empty log. */
  logs = async (request: HttpRequest): Promise<HttpReply> => {
    const id = request.params.workflow as string;
    const jobId = request.params.job as string;
    const found = await this.#finder.find(id);
    const taskId = found?.run === undefined ? undefined : taskIdIn(found.view, found.run, jobId);
    if (found?.run === undefined || taskId === undefined) return emptyList;
    const { run } = found;
    const texts = () => this.#logTexts(taskId, (stored) => chunkOf(id, jobId, run, stored));
    return { status: 200, headers: jsonHeaders, body: await this.#deps.reader.listBody(texts) };
  };

  async *#logTexts(taskId: string, shown: (stored: StoredChunk) => LogChunk): AsyncGenerator<string, void, void> {
    for await (const stored of this.#deps.logs.all(taskId)) yield JSON.stringify(shown(stored));
  }

  stream = async (request: HttpRequest): Promise<HttpReply> => {
    const id = request.params.workflow as string;
    const jobId = request.params.job as string;
    const found = await this.#finder.find(id);
    if (found === undefined || !found.view.index.has(jobId)) return notFound;
    const after = resumeAfter(request.headers["last-event-id"]);
    return { status: 200, events: (sink) => void this.#follow(id, jobId, after, sink) };
  };

  /** A workflow that has not run yet is followed from its first run on. */
  async #follow(id: string, jobId: string, after: number, sink: EventSink): Promise<void> {
    const look = async () => {
      const found = await this.#finder.find(id);
      return found?.run === undefined ? undefined : { run: found.run, taskId: taskIdIn(found.view, found.run, jobId) };
    };
    const found = await this.#streams.firstRun(id, look, sink.gone).catch(() => undefined);
    if (found?.taskId === undefined) return sink.end();
    const { run, taskId } = found;
    await this.#streams.stream({ taskId, runId: run.id, after, chunk: (stored) => chunkOf(id, jobId, run, stored) }, sink);
  }

  async #define(id: string, source: string): Promise<HttpReply> {
    const definition = await this.#deps.runs.define({ name: id, dialect: dialectName, source });
    return json(201, renderWorkflow(id, this.#finder.view(definition), undefined, []));
  }

  /** The JSON texts of a workflow. When it has very many jobs, each turn of the event loop makes only some of them. */
  async #texts(id: string, { view, run }: Found, growth: Growth): Promise<string[]> {
    const { reader } = this.#deps;
    const texts: string[] = [];
    for (const text of workflowTexts(id, view, run, run === undefined ? [] : await reader.heads(run.id))) {
      growth.count(text.length);
      texts.push(text);
      await reader.turn(1);
      await growth.turn();
    }
    return texts;
  }

  async #render(id: string, { view, run }: Found): Promise<Workflow> {
    return renderWorkflow(id, view, run, run === undefined ? [] : await this.#deps.reader.heads(run.id));
  }

  /**
   * The JSON texts of a page. `status` keeps workflows with at least one job in that status. Statuses are computed, not stored, so this
   * visits each workflow in turn.
   */
  async *#listed({ limit, offset, status }: ListQuery): AsyncGenerator<string> {
    let skipped = status === undefined ? offset : 0;
    let left = limit;
    for (let at = skipped; ; at += definitionsAtOnce) {
      const definitions = await this.#deps.reader.definitions({ limit: definitionsAtOnce, offset: at });
      for await (const workflow of this.#each(definitions)) {
        if (status !== undefined && !workflow.jobs.some((job) => job.status === status)) continue;
        if (skipped++ < offset) continue;
        yield JSON.stringify(workflow);
        if (--left === 0) return;
      }
      if (definitions.length < definitionsAtOnce) return;
    }
  }

  /** Renders one workflow after the other, with pauses for claims and reports: a long list must not delay the workers. */
  async *#each(definitions: readonly Definition[]): AsyncGenerator<Workflow> {
    let shown = 0;
    for (const definition of definitions) {
      const workflow = await this.#ofDefinition(definition);
      yield workflow;
      shown += workflow.jobs.length + 1;
      if (shown < jobsPerTurn) continue;
      shown = 0;
      await nextTurn();
    }
  }

  async #ofDefinition(definition: Definition): Promise<Workflow> {
    const newest = await this.#deps.reader.newestRun(definition.name);
    const run = newest?.definitionId === definition.id ? newest : undefined;
    return this.#render(definition.name, { workflow: definition.name, view: this.#finder.view(definition), run });
  }

  /**
   * Returns whether a worker may still use the workflow's id, because it does not know yet that its job was cancelled. Then the next run
   * needs another id.
   */
  async #isTaken(workflow: string): Promise<boolean> {
    const last = await this.#finder.newest(workflow);
    if (last === undefined || last.state === "running" || last.state === "succeeded") return false;
    const records = await this.#deps.reader.heads(last.id);
    return records.some((task) => task.state === "cancelling");
  }
}

function chunkOf(id: string, jobId: string, run: Run, stored: StoredChunk): LogChunk {
  const { sequence, data, at, stream, attempt } = stored;
  return { workflow_id: id, job_id: jobId, sequence, data, timestamp_ms: at, stream, run_id: run.id, attempt };
}

function resumeAfter(header: string | string[] | undefined): number {
  const id = typeof header === "string" ? Number(header) : 0;
  return Number.isSafeInteger(id) && id > 0 ? id : 0;
}

function json(status: number, value: unknown): HttpReply {
  return { status, headers: jsonHeaders, body: JSON.stringify(value) };
}
