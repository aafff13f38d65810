// Definitions: listing and adding workflows that can be started.

import { z } from "zod";
import { LongshoreError } from "../../../core/errors.ts";
import { isObject } from "../../../core/json/json.ts";
import { writeExact } from "../../../core/json/json-exact.ts";
import type { Definition } from "../../../engine/run/dialect.ts";
import type { Plan } from "../../../engine/run/plan.ts";
import { defineFile, type FileDefinition } from "../../../engine/schedule/define-file.ts";
import type { HttpReply, HttpRequest } from "../../../net/http/http.ts";
import type { DefinitionFile, FileDescription, ProtocolEngine, ReadDefinition } from "../../server-half.ts";
import { codeSource, functionSource, sourceText } from "../dialect/code-source.ts";
import { definitionShape, listedDefinitionShape, pageOf, wholeDefinitionShape } from "../wire/shapes.ts";
import { definitionBody, planStep } from "./bodies.ts";
import { jsonPage, listPieces, longReply, type PageReader } from "./json-page.ts";
import { badInput, checked, json, type Operation, operation, parseJson, type RawBody, rawOperation } from "./operation.ts";
import { limit, position } from "./query.ts";

const tag = "definitions";
const nameCharsMax = 200;
const jsonType = "application/json";
const yamlTypes = ["application/yaml", "application/x-yaml", "text/yaml"];

const definedShape = z
  .object({
    definition: definitionShape,
    warnings: z.array(z.object({ message: z.string(), field: z.string(), line: z.number().int(), column: z.number().int() })),
  })
  .meta({ id: "Defined" });

const codeBody = z.strictObject({ source: codeSource });
const functionBody = z.strictObject({ source: functionSource });

export interface DefinitionDeps extends Pick<ProtocolEngine, "catalogue" | "clock" | "makeId" | "plan" | "reader" | "runs" | "schedules"> {
  readonly readDefinition: ReadDefinition;
  /** The definition files that `readDefinition` accepts. */
  readonly files: readonly FileDescription[];
}

export function definitionOperations(deps: DefinitionDeps): Operation[] {
  const { reader, files } = deps;
  return [
    operation({
      ...{ id: "listDefinitions", tag, method: "GET", path: "/definitions", action: "definition.read", stored: true },
      summary: "List the newest version of each definition, in the order in which they were first defined.",
      query: z.strictObject({ limit, after: position, dialect: z.string().max(64).optional().describe("only those of this dialect") }),
      answers: { 200: { description: "A page.", schema: pageOf(listedDefinitionShape) } },
      async handle({ query: { limit: wanted, after = 0, dialect } }) {
        // Reads one more than requested, to know whether there is a next page.
        const found = await reader.definitions({ limit: wanted + 1, offset: after, dialect });
        const items = found.slice(0, wanted);
        const next = found.length > items.length ? String(after + items.length) : null;
        const bodyOf = async (each: Definition) => ({ ...definitionBody(each), events: await deps.catalogue.events(each.name) });
        return jsonPage(reader, { items, next }, bodyOf);
      },
    }),
    operation({
      ...{ id: "getDefinition", tag, method: "GET", path: "/definitions/:name", action: "definition.read", stored: true },
      summary: "Look at the newest version of one definition, or at an earlier one by its id.",
      query: z.strictObject({ id: z.string().max(64).optional().describe("the id of a version") }),
      answers: {
        200: { description: "The definition and its steps.", schema: wholeDefinitionShape },
        404: { description: "There is none." },
      },
      async handle({ params: { name }, query: { id } }) {
        const found = await (id === undefined ? reader.definition(name as string) : reader.definitionById(id));
        if (found === undefined || found.name !== name) {
          throw new LongshoreError("LONGSHORE_NOT_FOUND", `There is no definition ${name}${id === undefined ? "" : ` with the id ${id}`}.`);
        }
        return wholeDefinition(reader, found, deps.plan(found));
      },
    }),
    rawOperation({
      ...{ id: "define", tag, method: "POST", path: "/definitions", action: "definition.write" },
      summary: "Define a workflow, or a new version of it.",
      query: z.strictObject({
        name: z
          .string()
          .regex(/^[\w.:@-]+$/)
          .max(nameCharsMax)
          .optional()
          .describe(`the name for starts: 1 to ${nameCharsMax} letters, digits and . _ - : @; the definition's own name when absent`),
      }),
      body: { read: "text", ...definitionBodies(files) },
      answers: {
        201: { description: "It has been defined.", schema: definedShape },
        200: { description: "The newest version is the same already.", schema: definedShape },
      },
      async handle(request, query) {
        const { warnings, ...wanted } = await definitionIn(deps, request, query.name as string | undefined);
        return defined(deps, wanted, warnings);
      },
    }),
  ];
}

/** The source is JSON already. */
function wholeDefinition(reader: PageReader, definition: Definition, plan: Plan): Promise<HttpReply> {
  const head = writeExact(definitionBody(definition)).slice(0, -1);
  const nodes = plan.nodes.filter(({ hidden }) => !hidden);
  return longReply(reader, async (growth) => {
    growth.count(definition.source.length);
    await growth.turn();
    const steps = await listPieces({ reader, growth }, nodes, (node) => planStep(plan, node));
    return [`${head},"source":`, definition.source, ',"steps":[', ...steps, "]}"];
  });
}

/** The bodies that hold a definition. */
export function definitionBodies(files: readonly FileDescription[]): RawBody {
  return {
    contentTypes: [jsonType, ...yamlTypes],
    json: z.union([codeBody, functionBody, ...files.map(({ schema }) => z.looseObject({}).meta({ ...schema }))]),
    description: [...files.map(({ title }) => `${title}, as YAML or JSON`), '`{"source": ...}` with what `graph()` makes, as JSON.'].join(
      "; or ",
    ),
  };
}

/** The definition in a request. Rejects with LONGSHORE_BAD_INPUT, or with LONGSHORE_BAD_DEFINITION for a mistake in a file. */
export async function definitionIn(
  { readDefinition }: Pick<DefinitionDeps, "readDefinition">,
  request: HttpRequest,
  name: string | undefined,
): Promise<DefinitionFile> {
  const type = (request.headers["content-type"] ?? "").split(";")[0]?.trim().toLowerCase();
  if (type !== jsonType && !yamlTypes.includes(type ?? "")) {
    const expected = [jsonType, ...yamlTypes].join(", ");
    throw badInput(`The content type is ${type || "absent"}; expected one of ${expected}.`, "content-type", expected);
  }
  const body = type === jsonType ? parseJson(request) : undefined;
  if (isObject(body) && "source" in body) return definitionInCode(body, name);
  const ending = type === jsonType ? ".json" : ".yaml";
  return readDefinition({ text: request.text, file: `${name ?? ""}${ending}` });
}

function definitionInCode(body: object, name: string | undefined): DefinitionFile {
  const isFunction = isObject((body as { source: unknown }).source) && "function" in (body as { source: object }).source;
  const { source } = isFunction ? checked(functionBody, body, "") : checked(codeBody, body, "");
  if (name !== undefined && name !== source.name) {
    throw badInput(`The query has the name ${name}, the source ${source.name}.`, "query.name", `${source.name}, or nothing`);
  }
  return { name: source.name, dialect: isFunction ? "function" : "code", source: sourceText(source), warnings: [] };
}

async function defined(
  { runs, schedules, makeId, clock }: DefinitionDeps,
  wanted: FileDefinition,
  warnings: readonly object[],
): Promise<HttpReply> {
  const id = makeId(clock.now());
  const before = await runs.definition(wanted.name);
  const definition = await defineFile({ runs, schedules }, { ...wanted, id });
  // A request that is performed again finds the definition that it made before.
  const isNew = definition.id === id || definition.id !== before?.id;
  return json(isNew ? 201 : 200, { definition: definitionBody(definition), warnings });
}
