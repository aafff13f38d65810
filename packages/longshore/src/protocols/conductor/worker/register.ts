// Publishes a task's definition at the start, with its schemas if the server stores schemas. Nothing here stops the worker: failures are
// reported, and polling starts.

import type { JsonObject } from "../../../core/json/json.ts";
import type { JsonSchema } from "../../../core/schema/json-schema.ts";
import { describeTask, type Task } from "../../../core/task.ts";
import type { Notice } from "../../../runner/notices.ts";
import type { SchemaDef, SchemaRef, TaskDef } from "../wire/shapes.ts";
import { type Answer, type Client, quote } from "./client.ts";
import type { WorkerConfig } from "./config.ts";

export interface RegisterOptions {
  readonly client: Client;
  readonly task: Task;
  readonly config: WorkerConfig;
  readonly notice: (notice: Notice) => void;
  readonly failing: (what: string, error: unknown) => void;
  /** Where people look at definitions, for a link in the log. */
  readonly uiUrl: string;
}

const schemaVersion = 1;

/** Returns false when the server could not be reached, so that a retry is useful. */
export async function register(options: RegisterOptions): Promise<boolean> {
  const { config, notice, failing } = options;
  try {
    const schemas = await registerSchemas(options);
    const answer = await registerDefinition(options, definitionOf(options, schemas));
    if (answer === undefined) return true;
    if (isTaken(answer)) {
      notice({ level: "info", message: `Registered the task definition ${config.task}: ${options.uiUrl}/taskDef/${config.task}` });
    } else warn(options, `the task definition ${config.task} was not registered: the server answered ${quote(answer)}`);
    return true;
  } catch (error) {
    failing(`registering ${config.task}`, error);
    return false;
  }
}

type Schemas = Pick<TaskDef, "inputSchema" | "outputSchema">;

async function registerSchemas(options: RegisterOptions): Promise<Schemas> {
  const { client, task, config } = options;
  if (!config.registerSchema) return {};
  const { inputSchema, outputSchema } = describeTask(task, { strict: config.strictSchema });
  const refs: { inputSchema?: SchemaRef; outputSchema?: SchemaRef } = {};
  for (const [key, data] of [["inputSchema", inputSchema] as const, ["outputSchema", outputSchema] as const]) {
    const side = key === "inputSchema" ? "input" : "output";
    const name = `${config.task}_${side}`;
    if (data === undefined) {
      if (task[side] !== undefined) warn(options, `the schema ${name} was not registered: JSON Schema cannot express it`);
      continue;
    }
    const content = key === "outputSchema" ? outputOnWire(data, config.strictSchema) : data;
    const schema: SchemaDef = { name, version: schemaVersion, type: "JSON", data: content as JsonObject };
    const answer = await client.postSchema(schema);
    // This server stores no schemas.
    if (answer.status === 404 || answer.status === 405) return {};
    if (isTaken(answer)) refs[key] = { name, version: schemaVersion };
    else warn(options, `the schema ${name} was not registered: the server answered ${quote(answer)}`);
  }
  return refs;
}

/** An output that is not an object is sent as `{ result: value }`. */
export function outputOnWire(schema: JsonSchema, strict: boolean): JsonSchema {
  const types = [schema.type ?? []].flat();
  if (types.length === 0 || types.includes("object")) return schema;
  const { $schema, definitions, ...result } = schema;
  const hoisted = definitions === undefined ? {} : { definitions };
  const required = types.includes("null") ? [] : ["result"];
  return { $schema, type: "object", properties: { result }, required, additionalProperties: !strict, ...hoisted };
}

function definitionOf({ task, config }: RegisterOptions, schemas: Schemas): TaskDef {
  const description = task.description === undefined ? {} : { description: task.description };
  return { ...description, ...config.taskDef, ...schemas, name: config.task };
}

/** Undefined when it exists and must not be replaced. */
async function registerDefinition({ client, config }: RegisterOptions, definition: TaskDef): Promise<Answer | undefined> {
  if (config.overwriteTaskDef) {
    const answer = await client.putTaskDef(definition);
    // Servers differ in how they report that there is nothing to replace.
    return isTaken(answer) ? answer : client.postTaskDef(definition);
  }
  const answer = await client.taskDef(config.task);
  return isTaken(answer) && answer.text.trim() !== "" ? undefined : client.postTaskDef(definition);
}

function isTaken({ status }: Answer): boolean {
  return status >= 200 && status < 300;
}

function warn({ notice }: RegisterOptions, message: string): void {
  notice({ level: "warn", message: `The worker starts though ${message}` });
}
