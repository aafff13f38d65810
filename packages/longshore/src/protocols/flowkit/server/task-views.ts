// Tasks as the HTTP API shows them, from runs, records and parts.

import { LongshoreError } from "../../../core/errors.ts";
import type { JsonObject } from "../../../core/json/json.ts";
import { parseExact } from "../../../core/json/json-exact.ts";
import type { Part, PartStore } from "../../../engine/part/store.ts";
import type { Definition } from "../../../engine/run/dialect.ts";
import type { DocumentStore } from "../../../engine/run/documents.ts";
import type { Plan } from "../../../engine/run/plan.ts";
import type { Reader } from "../../../engine/run/reader.ts";
import { type Run, taskIdOf } from "../../../engine/run/run.ts";
import type { Runs } from "../../../engine/run/runs.ts";
import { metaOf } from "./artifacts/part-artifacts.ts";
import { deadLettersOf } from "./coordinator/dead-letters.ts";
import { isGraphRun, type Submitted } from "./coordinator/tasks.ts";
import { isoMoment, recordsWithout, summaryDocument, taskDocument } from "./document.ts";
import { lastErrors } from "./last-errors.ts";
import type { ArtifactsPage, Tasks, TasksPage } from "./tasks-routes.ts";

export interface TaskViewsDeps {
  readonly runs: Pick<Runs, "run" | "definitionById">;
  readonly reader: Pick<Reader, "runs" | "records" | "task" | "attempts">;
  readonly parts: PartStore;
  readonly documents: Pick<DocumentStore, "document">;
  plan(definition: Definition): Plan;
  /** Starts and cancels runs of graphs. */
  readonly tasks: {
    submit(task: { params: JsonObject; graph: JsonObject }): Promise<Submitted>;
    cancel(taskId: string, reason: string): Promise<Run | undefined>;
  };
}

export class TaskViews implements Tasks {
  readonly #deps: TaskViewsDeps;

  constructor(deps: TaskViewsDeps) {
    this.#deps = deps;
  }

  async create(task: { params: JsonObject; graph: JsonObject }): Promise<{ id: string; ignored: readonly string[] }> {
    const { run, ignored } = await this.#deps.tasks.submit(task);
    return { id: run.id, ignored };
  }

  /** Any run: a FlowKit worker may run steps of all of them. */
  async task(id: string): Promise<JsonObject | null> {
    const run = await this.#deps.runs.run(id);
    if (run === undefined) return null;
    const plan = await this.#planOf(run);
    if (plan === undefined) return null;
    const records = await recordsWithout(this.#deps.reader.records(id), plan);
    return taskDocument(run, plan, records, isoMoment, await lastErrors(this.#deps.reader, records)) as JsonObject;
  }

  /** Without their graphs. A page may be short, even empty, and still have a next. */
  async list({ status, name, ...page }: TasksPage): Promise<{ items: JsonObject[]; next: string | null }> {
    const { items, next } = await this.#deps.reader.runs({ ...page, ...(name === undefined ? {} : { workflow: name }) });
    const documents = items.filter(isGraphRun).map((run) => summaryDocument(run, isoMoment));
    return { items: documents.filter((one) => status === undefined || one.status === status) as JsonObject[], next };
  }

  async cancel(id: string, reason: string): Promise<JsonObject | null> {
    return (await this.#deps.tasks.cancel(id, reason)) === undefined ? null : this.task(id);
  }

  async deadLetters(id: string): Promise<readonly JsonObject[] | null> {
    if ((await this.#deps.runs.run(id)) === undefined) return null;
    return (await deadLettersOf(this.#deps, id)) as unknown as JsonObject[];
  }

  async artifacts(id: string, node: string, { after, limit }: { after: number; limit: number }): Promise<ArtifactsPage | null> {
    const run = await this.#deps.runs.run(id);
    if (run === undefined) return null;
    const index = (await this.#planOf(run))?.index.get(node);
    if (index === undefined) {
      const message = `There is no node ${JSON.stringify(node)} in the task ${id}.`;
      throw new LongshoreError("LONGSHORE_NOT_FOUND", message, { detail: { field: "node", expected: "a node of the graph" } });
    }
    const taskId = taskIdOf(id, index);
    const { parts, ended } = await this.#deps.parts.read(taskId, after, limit);
    const task = ended === "done" ? await this.#deps.reader.task(taskId) : undefined;
    const complete =
      task === undefined ? null : { task_id: id, node_id: node, status: "complete", meta: metaOf(task.output ?? "null", parseExact) };
    return { items: parts.map((part) => partialDocument(id, node, part)), next: parts.at(-1)?.sequence ?? null, complete };
  }

  async #planOf(run: Run): Promise<Plan | undefined> {
    const definition = await this.#deps.runs.definitionById(run.definitionId);
    return definition === undefined ? undefined : this.#deps.plan(definition);
  }
}

function partialDocument(task_id: string, node_id: string, { uid, value, grant, at, sequence }: Part): JsonObject {
  const key = { task_id, node_id, batch_uid: uid };
  return { ...key, status: "partial", attempt_epoch: grant, meta: metaOf(value, parseExact), created_at: isoMoment(at), sequence };
}
