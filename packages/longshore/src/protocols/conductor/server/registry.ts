// Conductor's own documents: task definitions, workflow definitions and schemas, by name and version. Also makes the definitions of runs:
// workflow definitions that include their task definitions.

import { createHash } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Json, JsonObject } from "../../../core/json/json.ts";
import { writeExact } from "../../../core/json/json-exact.ts";
import { parseInSlices } from "../../../core/json/json-slices.ts";
import { atOnce, inTurns, type Sliced, sliceItems } from "../../../core/slices/slice-work.ts";
import { DefinitionCache } from "../../../engine/run/definition-cache.ts";
import type { Definition } from "../../../engine/run/dialect.ts";
import type { Document, DocumentStore } from "../../../engine/run/documents.ts";
import type { Runs } from "../../../engine/run/runs.ts";
import { dialectName } from "../dialect/compile.ts";
import type { TaskDef, WorkflowDef } from "../dialect/model.ts";
import { documentKinds } from "../dialect/settings.ts";
import { lookupsOf, snapshotChars, snapshotInSlices } from "../dialect/snapshot.ts";
import { Refused } from "./replies.ts";

/** Task definitions have one version: writing one again replaces it. */
const only = 1;
/**
 * Maximum characters of all task definitions in the definition of a run. A task definition counts once for every task with its name. 5,000
 * tasks with default definitions have a third of this. Workers store task definitions, and each could have megabytes.
 */
const taskDefsCharsMax = 8 * 1_024 * 1_024;

export class Registry {
  readonly #documents: DocumentStore;
  readonly #runs: Runs;
  /** Cached definitions of runs by workflow name and version, cleared when any document changes. */
  #started = new DefinitionCache<Definition>();

  constructor(documents: DocumentStore, runs: Runs) {
    this.#documents = documents;
    this.#runs = runs;
  }

  async taskDef(name: string): Promise<TaskDef | undefined> {
    const document = await this.#documents.document(documentKinds.task, name);
    return document === undefined ? undefined : (shown(document) as unknown as TaskDef);
  }

  taskDefs(): AsyncIterable<string> {
    return this.#texts(documentKinds.task);
  }

  /** The writer is not known here; as in Conductor the field is empty. */
  async keepTaskDef(definition: TaskDef, again = false): Promise<void> {
    await this.#documents.keepDocument({
      kind: documentKinds.task,
      name: definition.name,
      version: only,
      body: writeExact({ ...definition, createdBy: "", ...(again ? { updatedBy: "" } : {}) }),
    });
    this.#started = new DefinitionCache();
  }

  async removeTaskDef(name: string): Promise<boolean> {
    this.#started = new DefinitionCache();
    return (await this.#documents.removeDocument(documentKinds.task, name)) > 0;
  }

  async workflow(name: string, version?: number): Promise<WorkflowDef | undefined> {
    const document = await this.#documents.document(documentKinds.workflow, name, version);
    return document === undefined ? undefined : ((await inTurns(shownInSlices(document))) as unknown as WorkflowDef);
  }

  /** Sorted by name, then version. With a name, only the versions of this name. */
  async *workflows(name?: string): AsyncGenerator<WorkflowDef, void, void> {
    for await (const document of this.#documents.eachDocument(documentKinds.workflow, name))
      yield (await inTurns(shownInSlices(document))) as unknown as WorkflowDef;
  }

  /** Returns false when it exists and may not be replaced. */
  async keepWorkflow(definition: WorkflowDef, overwrite: boolean): Promise<boolean> {
    const { name, version } = definition;
    // Checks that the definition can run, whatever task definitions are stored later.
    const body = writeExact(definition);
    await this.#runs.check(dialectName, body);
    const document = { kind: documentKinds.workflow, name, version, body };
    const before = await this.#documents.document(document.kind, name, version);
    const kept = await this.#documents.keepDocument(document, { unlessThere: !overwrite });
    this.#started = new DefinitionCache();
    if (kept && before?.body !== body) await this.#list(name);
    return kept;
  }

  /** Makes the newest version a definition at once: lists of workflows have it before its first start. */
  async #list(name: string): Promise<void> {
    try {
      await this.startable(name);
    } catch (error) {
      // The task definitions of the workflow are too large together. The caller that starts the workflow gets this error.
      if (!(error instanceof Refused)) throw error;
    }
  }

  async removeWorkflow(name: string, version: number): Promise<boolean> {
    this.#started = new DefinitionCache();
    return (await this.#documents.removeDocument(documentKinds.workflow, name, version)) > 0;
  }

  async schema(name: string, version?: number): Promise<JsonObject | undefined> {
    const document = await this.#documents.document(documentKinds.schema, name, version);
    return document === undefined ? undefined : shown(document);
  }

  schemas(): AsyncIterable<string> {
    return this.#texts(documentKinds.schema);
  }

  /** Each document of a kind as JSON text. */
  async *#texts(kind: string): AsyncGenerator<string, void, void> {
    for await (const document of this.#documents.eachDocument(kind)) yield writeExact(shown(document));
  }

  /** With `asNew`, as the next version after the highest. */
  async keepSchema(schema: { name: string; version: number } & JsonObject, asNew: boolean): Promise<void> {
    const newest = asNew ? await this.#documents.document(documentKinds.schema, schema.name) : undefined;
    const version = newest === undefined ? schema.version : newest.version + 1;
    await this.#documents.keepDocument({
      kind: documentKinds.schema,
      name: schema.name,
      version,
      body: writeExact({ ...schema, version }),
    });
  }

  async removeSchema(name: string, version?: number): Promise<boolean> {
    return (await this.#documents.removeDocument(documentKinds.schema, name, version)) > 0;
  }

  /** The definition that a new run of this workflow gets; undefined when there is no such workflow. */
  async startable(name: string, version?: number): Promise<Definition | undefined> {
    const key = `${name}\u0000${version ?? ""}`;
    const known = this.#started.get(key);
    if (known !== undefined) return known;
    const started = this.#started;
    const workflow = await this.workflow(name, version);
    if (workflow === undefined) return undefined;
    const definition = await this.define(workflow);
    // Not cached when a document has changed in the meantime: it may be outdated.
    if (this.#started === started) started.set(key, definition, definition);
    return definition;
  }

  /** A workflow with the current task definitions, stored under an id derived from its content. */
  async define(workflow: WorkflowDef): Promise<Definition> {
    const wanted = lookupsOf(workflow);
    const found = await lookUp(wanted.taskDefs, (name) => this.taskDef(name));
    const children = await lookUp(wanted.workflows, (name) => this.workflow(name));
    const taskDefs = new Map(found.filter((each) => each !== undefined).map((each) => [each.name, each]));
    if (snapshotChars(workflow, taskDefs, taskDefsCharsMax) > taskDefsCharsMax) throw tooLarge(workflow);
    const newest = new Map(children.filter((each) => each !== undefined).map((each) => [each.name, each.version]));
    const source = writeExact(await inTurns(snapshotInSlices(workflow, taskDefs, newest)));
    const id = `conductor-${createHash("sha256").update(source).digest("hex").slice(0, 32)}`;
    return this.#runs.define({ id, name: workflow.name, dialect: dialectName, source });
  }
}

function tooLarge({ name }: WorkflowDef): Refused {
  const expected = `at most ${taskDefsCharsMax} characters together, each as often as a task has its name`;
  return new Refused(413, `The task definitions of workflow ${name} are too large to be kept with a run; expected ${expected}.`);
}

/** Looks up some names in each turn of the event loop, because a definition may have thousands of names. */
async function lookUp<Found>(names: readonly string[], find: (name: string) => Promise<Found>): Promise<Found[]> {
  const found: Found[] = [];
  for (let at = 0; at < names.length; at += sliceItems) {
    if (at > 0) await nextTurn();
    found.push(...(await Promise.all(names.slice(at, at + sliceItems).map(find))));
  }
  return found;
}

/** The document, with its times from the store. */
function shown(document: Document): JsonObject {
  return atOnce(shownInSlices(document));
}

function* shownInSlices({ createdAt, updatedAt, body }: Document): Sliced<JsonObject> {
  const times = { createTime: createdAt, updateTime: updatedAt === createdAt ? 0 : updatedAt };
  return { ...times, ...((yield* parseInSlices(body)) as JsonObject), ...times } as { [key: string]: Json };
}
