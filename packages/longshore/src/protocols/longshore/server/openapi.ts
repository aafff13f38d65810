// The OpenAPI document of our own API, made from the same table that answers requests.

import { z } from "zod";
import { actions } from "../../../core/actions.ts";
import type { Answer, Operation, RawBody } from "./operation.ts";

type Schema = { [key: string]: unknown };

/** Responses that every operation may return. */
const common: Readonly<Record<number, Answer>> = {
  400: { description: "The request is not what was expected; see `field` and `expected`." },
  401: { description: "A token is needed, or the token of the request is not known." },
  403: { description: "The token does not allow this, or the Host or Origin is not one of this server's." },
  413: { description: "The body is larger than this route accepts." },
  429: { description: "A limit is reached, which the message names; try again after the time in Retry-After." },
  503: { description: "The store cannot be written now; try again after the time in Retry-After." },
};

const problem = z
  .object({
    error: z.object({
      code: z.string().describe("Stable, such as LONGSHORE_BAD_INPUT."),
      message: z.string(),
      field: z.string().optional().describe("Where, such as `steps[2].task`."),
      expected: z.string().optional(),
      line: z.number().int().optional(),
      column: z.number().int().optional(),
      run: z.string().optional().describe("The run that is in the way."),
    }),
  })
  .meta({ id: "Problem" });

/** `turn` is awaited before each operation: describing them all takes tens of milliseconds. */
export async function openApi(operations: readonly Operation[], version: string, turn: () => Promise<void>) {
  const components = new Components();
  const paths: Record<string, Record<string, unknown>> = {};
  for (const operation of operations) {
    await turn();
    const path = operation.path.replace(/:(\w+)/g, "{$1}");
    paths[path] ??= {};
    (paths[path] as Record<string, unknown>)[operation.method.toLowerCase()] = describe(operation, components);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Longshore",
      version,
      description: "Definitions, runs, tasks, workers, queues, logs and blobs. Times are epoch milliseconds.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    paths,
    components: {
      schemas: components.schemas,
      securitySchemes: { token: { type: "http", scheme: "bearer", description: "Asked for only where the server has tokens." } },
    },
  };
}

function describe(operation: Operation, components: Components) {
  const { id, summary, tag, query, body, answers } = operation.description;
  const open = actions[operation.action].who === "anyone";
  return {
    operationId: id,
    summary,
    tags: [tag],
    security: open ? [] : [{ token: [actions[operation.action].who] }, {}],
    parameters: [...pathParameters(operation.path), ...queryParameters(query, components)],
    ...(body === undefined ? {} : { requestBody: requestBody(body, components) }),
    responses: responses(open ? answers : { ...common, ...answers }, components),
  };
}

function pathParameters(path: string) {
  return [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({ name, in: "path", required: true, schema: { type: "string" } }));
}

function queryParameters(query: z.ZodObject | undefined, components: Components) {
  if (query === undefined) return [];
  const { properties = {}, required = [] } = components.inline(query, "input") as {
    properties?: Record<string, Schema>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: "query",
    required: required.includes(name),
    description,
    schema,
  }));
}

function requestBody(body: z.ZodType | RawBody, components: Components) {
  if (!("contentTypes" in body)) {
    // A missing body is read as an empty object.
    const required = !body.safeParse({}).success;
    return { required, content: { "application/json": { schema: components.inline(body, "input") } } };
  }
  const media = (type: string) =>
    body.json === undefined || type !== "application/json" ? {} : { schema: components.inline(body.json, "input") };
  return {
    required: true,
    description: body.description,
    content: Object.fromEntries(body.contentTypes.map((type) => [type, media(type)])),
  };
}

function responses(answers: Readonly<Record<number, Answer>>, components: Components) {
  return Object.fromEntries(
    Object.entries(answers).map(([status, { description, schema, contentType }]) => {
      const shape = schema ?? (Number(status) >= 400 ? problem : undefined);
      if (shape === undefined && contentType === undefined) return [status, { description }];
      const media = shape === undefined ? {} : { schema: components.inline(shape, "output") };
      return [status, { description, content: { [contentType ?? "application/json"]: media } }];
    }),
  );
}

/** Shapes with a name are defined once and referred to. */
class Components {
  readonly schemas: Record<string, Schema> = {};

  inline(shape: z.ZodType, io: "input" | "output"): Schema {
    const { $schema, $defs, ...made } = JSON.parse(
      JSON.stringify(z.toJSONSchema(shape, { io, unrepresentable: "any", override: withoutSafeBounds })).replaceAll(
        "#/$defs/",
        "#/components/schemas/",
      ),
    ) as Schema & { $defs?: Record<string, Schema> };
    for (const [name, { id, ...schema }] of Object.entries($defs ?? {})) this.schemas[name] = schema;
    if (typeof made.id !== "string") return made;
    const { id, ...schema } = made;
    this.schemas[id as string] = schema;
    return { $ref: `#/components/schemas/${id as string}` };
  }
}

/** Removes the bounds of JavaScript's safe integers, which tell a reader nothing. */
function withoutSafeBounds({ jsonSchema }: { jsonSchema: { minimum?: number; maximum?: number } }): void {
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
}
