// Definitions of tasks and workflows, and schemas: README.md, "Definitions".

import type { Caller } from "../../../core/actions.ts";
import { isObject, type JsonObject } from "../../../core/json/json.ts";
import { writeExact } from "../../../core/json/json-exact.ts";
import { inTurns } from "../../../core/slices/slice-work.ts";
import type { Reader } from "../../../engine/run/reader.ts";
import type { HttpReply, HttpRequest } from "../../../net/http/http.ts";
import type { TaskDef, WorkflowDef } from "../dialect/model.ts";
import { parseTaskDef, parseTaskDefs } from "../dialect/task-def.ts";
import { parseAllInSlices, parseInSlices } from "../dialect/workflow-def.ts";
import type { Registry } from "./registry.ts";
import { braces, conflict, invalid, json, jsonText, notFound, nothing, Refused, refusedByCore } from "./replies.ts";
import { bodyOf, checkedId, flagInQuery, wholeIn, wholeOf } from "./request.ts";

export class Metadata {
  readonly #registry: Registry;
  readonly #reader: Reader;

  constructor(registry: Registry, reader: Reader) {
    this.#registry = registry;
    this.#reader = reader;
  }

  createTaskDefs = async (request: HttpRequest): Promise<HttpReply> => {
    const checked = parseTaskDefs(bodyOf(request), "registerTaskDef.arg0");
    if ("violations" in checked) throw invalid(checked.violations);
    for (const definition of checked.value) await this.#refuseSecrets(definition, request.caller);
    for (const definition of checked.value) await this.#registry.keepTaskDef(definition);
    return nothing;
  };

  /** Creates a missing definition too, because some clients only update. A name in the path takes precedence. */
  updateTaskDef = async (request: HttpRequest): Promise<HttpReply> => {
    const body = bodyOf(request);
    const named = request.params.name === undefined || !isObject(body) ? body : { ...body, name: request.params.name };
    const checked = parseTaskDef(named, "updateTaskDef.arg0");
    if ("violations" in checked) throw invalid(checked.violations);
    await this.#refuseSecrets(checked.value, request.caller);
    await this.#registry.keepTaskDef(checked.value, true);
    return nothing;
  };

  /**
   * Workers store definitions of their tasks, and a definition may request secrets and other values of its run. Only authors of workflows
   * may decide which values a task receives. A worker may only store the same requests again.
   */
  async #refuseSecrets(definition: TaskDef, caller: Caller): Promise<void> {
    const secrets = secretsOf(definition);
    if (secrets === "" || caller.may("definition.write")) return;
    const known = await this.#registry.taskDef(definition.name);
    if (known !== undefined && secretsOf(known) === secrets) return;
    throw new Refused(
      403,
      `The definition of task ${definition.name} requests values by runtimeMetadata or by expressions in inputTemplate, which requires a token of the scope operator. Leave both out, or have an operator store it.`,
    );
  }

  taskDefs = async (): Promise<HttpReply> => jsonText(await this.#reader.listBody(() => this.#registry.taskDefs()));

  taskDef = async (request: HttpRequest): Promise<HttpReply> => {
    const name = request.params.name as string;
    const definition = await this.#registry.taskDef(name);
    if (definition === undefined) throw notFound(`No such taskType found by name: ${name}`);
    return json(definition);
  };

  removeTaskDef = async (request: HttpRequest): Promise<HttpReply> => {
    const name = request.params.name as string;
    if (!(await this.#registry.removeTaskDef(name))) throw notFound(`No such task definition: ${name}`);
    return nothing;
  };

  createWorkflow = async (request: HttpRequest): Promise<HttpReply> => {
    const definition = await this.#checked(bodyOf(request), "registerWorkflowDef.arg0");
    const kept = await this.#registry.keepWorkflow(definition, flagInQuery(request, "overwrite", false));
    if (!kept) throw conflict(`Workflow with ${definition.name}.${definition.version} already exists!`);
    return nothing;
  };

  /** Each definition of the list is accepted or refused alone. */
  updateWorkflows = async (request: HttpRequest): Promise<HttpReply> => {
    const parsed = await inTurns(parseAllInSlices(bodyOf(request), "updateWorkflowDef.arg0"));
    if ("violations" in parsed) throw invalid(parsed.violations);
    const broken = parsed.list.find((checked) => "violations" in checked);
    if (broken !== undefined && "violations" in broken) throw invalid(broken.violations);
    const failed = new Map<string, string>();
    const done: string[] = [];
    for (const checked of parsed.list) {
      if (!("value" in checked)) continue;
      try {
        await this.#registry.keepWorkflow(checked.value, true);
        done.push(checked.value.name);
      } catch (error) {
        const refused = refusedByCore(error);
        if (refused === undefined) throw error;
        failed.set(checked.value.name, refused.message);
      }
    }
    return json({ bulkErrorResults: Object.fromEntries(failed), bulkSuccessfulResults: done });
  };

  validateWorkflow = async (request: HttpRequest): Promise<HttpReply> => {
    await this.#checked(bodyOf(request), "validateWorkflowDef.arg0");
    return nothing;
  };

  workflows = async (): Promise<HttpReply> => jsonText(await this.#reader.listBody(() => textsOf(this.#registry.workflows())));

  workflow = async (request: HttpRequest): Promise<HttpReply> => {
    const name = request.params.name as string;
    const text = request.query.get("version");
    const version = text === null || text === "" ? undefined : wholeIn(request, "version", 0);
    const definition = await this.#registry.workflow(name, version);
    if (definition === undefined) throw notFound(`No such workflow found by name: ${name}, version: ${version ?? null}`);
    return json(definition);
  };

  names = async (): Promise<HttpReply> =>
    jsonText(await this.#reader.listBody(() => textsOf(newestOf(this.#registry.workflows()), ({ name }) => name)));

  namesAndVersions = async (): Promise<HttpReply> =>
    jsonText(await this.#reader.listBody(() => versionsByName(this.#registry.workflows()), { around: braces }));

  versions = async (request: HttpRequest): Promise<HttpReply> =>
    jsonText(await this.#reader.listBody(() => textsOf(this.#registry.workflows(request.params.name as string), summaryOf)));

  latest = async (): Promise<HttpReply> => jsonText(await this.#reader.listBody(() => textsOf(newestOf(this.#registry.workflows()))));

  removeWorkflow = async (request: HttpRequest): Promise<HttpReply> => {
    const { name, version } = request.params as { name: string; version: string };
    if (await this.#registry.removeWorkflow(name, wholeOf(version, "The version in the path"))) return nothing;
    throw notFound(`No such workflow definition: ${name} version: ${version}`);
  };

  createSchemas = async (request: HttpRequest): Promise<HttpReply> => {
    const body = bodyOf(request);
    const list = Array.isArray(body) ? body : [body];
    const schemas = list.map((each, at) => schemaOf(each, Array.isArray(body) ? `saveSchemas.arg0[${at}]` : "saveSchema.arg0"));
    for (const schema of schemas) await this.#registry.keepSchema(schema, flagInQuery(request, "newVersion", false));
    return nothing;
  };

  schemas = async (): Promise<HttpReply> => jsonText(await this.#reader.listBody(() => this.#registry.schemas()));

  schema = async (request: HttpRequest): Promise<HttpReply> => {
    const { name, version } = request.params as { name: string; version?: string };
    const found = await this.#registry.schema(name, version === undefined ? undefined : Number(version));
    if (found === undefined) throw notFound(`No such schema found by name: ${name}, version: ${version ?? null}`);
    return json(found);
  };

  removeSchema = async (request: HttpRequest): Promise<HttpReply> => {
    const { name, version } = request.params as { name: string; version?: string };
    if (await this.#registry.removeSchema(name, version === undefined ? undefined : Number(version))) return nothing;
    throw notFound(`No such schema found by name: ${name}, version: ${version ?? null}`);
  };

  async #checked(source: unknown, path: string): Promise<WorkflowDef> {
    const checked = await inTurns(parseInSlices(source ?? {}, path));
    if ("violations" in checked) throw invalid(checked.violations);
    return checked.value;
  }
}

async function* textsOf(
  definitions: AsyncIterable<WorkflowDef>,
  shown: (definition: WorkflowDef) => object | string = (definition) => definition,
) {
  for await (const definition of definitions) yield writeExact(shown(definition));
}

/** The last version of each name, because the documents are sorted by name and then version. */
async function* newestOf(definitions: AsyncIterable<WorkflowDef>): AsyncGenerator<WorkflowDef, void, void> {
  let newest: WorkflowDef | undefined;
  for await (const definition of definitions) {
    if (newest !== undefined && newest.name !== definition.name) yield newest;
    newest = definition;
  }
  if (newest !== undefined) yield newest;
}

/** The texts of a map from names to lists, in pieces separated by commas: a name may have very many versions. */
async function* versionsByName(definitions: AsyncIterable<WorkflowDef>): AsyncGenerator<string, void, void> {
  let last: { name: string; piece: string } | undefined;
  for await (const definition of definitions) {
    const { name } = definition;
    const summary = writeExact(summaryOf(definition));
    const isNew = name !== last?.name;
    if (last !== undefined) yield isNew ? `${last.piece}]` : last.piece;
    last = { name, piece: isNew ? `${JSON.stringify(name)}:[${summary}` : summary };
  }
  if (last !== undefined) yield `${last.piece}]`;
}

function summaryOf(definition: WorkflowDef): object {
  const { name, version, createTime = 0, updateTime = 0 } = definition;
  return { name, version, createTime, updateTime };
}

/** The maximum of Java's `int`. */
const versionMax = 2_147_483_647;
const schemaTypes = ["JSON", "AVRO", "PROTOBUF"];

function schemaOf(value: unknown, path: string): { name: string; version: number } & JsonObject {
  if (!isObject(value)) throw invalid([{ path, message: "SchemaDef must be an object" }]);
  const violations = [];
  const { name, version = 1, type } = value;
  if (typeof name !== "string" || name === "") violations.push({ path: `${path}.name`, message: "SchemaDef name cannot be null or empty" });
  if (typeof type !== "string" || !schemaTypes.includes(type))
    violations.push({ path: `${path}.type`, message: `must be one of ${schemaTypes.join(", ")}` });
  if (!Number.isInteger(version) || Number(version) < 1 || Number(version) > versionMax)
    violations.push({ path: `${path}.version`, message: `must be a whole number from 1 to ${versionMax}` });
  if (violations.length > 0) throw invalid(violations);
  return { ...(value as JsonObject), name: checkedId(name as string, `${path}.name`), version: Number(version) };
}

/** The parts of a task definition that give a task more values than its workflow does; empty when there are none. */
function secretsOf({ runtimeMetadata = [], inputTemplate = {} }: Partial<TaskDef>): string {
  const defaults = JSON.stringify(inputTemplate);
  const hasExpressions = defaults.includes("${");
  return runtimeMetadata.length === 0 && !hasExpressions ? "" : JSON.stringify([runtimeMetadata, hasExpressions ? defaults : ""]);
}
