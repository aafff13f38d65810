// The catalogue of workflows: definitions of every language and what their runs brought with them, their versions, and checks of texts.

import { z } from "zod";
import { LongshoreError } from "../../../core/errors.ts";
import type { DefinitionHead } from "../../../engine/run/catalogue.ts";
import type { ProtocolEngine } from "../../server-half.ts";
import { pageOf } from "../wire/shapes.ts";
import { checkShape, diffShape, versionShape, wholeWorkflowShape, workflowShape } from "../wire/workflow-shapes.ts";
import { type DefinitionDeps, definitionBodies } from "./definitions.ts";
import { json, type Operation, operation, rawOperation } from "./operation.ts";
import { limit, position, wholeNumber } from "./query.ts";
import { checkDefinition } from "./workflow-check.ts";
import { differenceOf } from "./workflow-diff.ts";
import { WorkflowList } from "./workflow-list.ts";
import { wholeWorkflow } from "./workflow-view.ts";

const tag = "workflows";
const nameCharsMax = 512;
/** Each workflow of a page costs a read of its last ends. */
const workflowsMax = 100;

const notFound = { 404: { description: "There is no such workflow." } };

export type WorkflowDeps = DefinitionDeps &
  Pick<ProtocolEngine, "carriers" | "catalogue" | "plan" | "reader" | "runs" | "slices" | "statistics" | "summaries" | "workers">;

export function workflowOperations(deps: WorkflowDeps): Operation[] {
  const list = new WorkflowList(deps);
  return [
    operation({
      ...{ id: "listWorkflows", tag, method: "GET", path: "/workflows", action: "definition.read" },
      summary: "List the workflows of every language by name, with how their last runs ended.",
      query: z.strictObject({
        text: z.string().min(1).max(nameCharsMax).optional().describe("a text that the name contains; upper and lower case are the same"),
        limit: wholeNumber
          .pipe(z.number().min(1).max(workflowsMax))
          .default(workflowsMax)
          .describe(`a whole number from 1 to ${workflowsMax}; ${workflowsMax} when absent`),
        after: z.string().max(nameCharsMax).optional().describe("the `next` of the page before"),
      }),
      answers: { 200: { description: "A page, in the order of the names.", schema: pageOf(workflowShape) } },
      handle: async ({ query }) => json(200, await list.page(query)),
    }),
    operation({
      ...{ id: "getWorkflow", tag, method: "GET", path: "/workflows/:name", action: "definition.read" },
      summary: "Look at one workflow: its steps, source, problems, last inputs, and steps that no worker can take.",
      answers: { 200: { description: "Its newest version.", schema: wholeWorkflowShape }, ...notFound },
      async handle({ params }) {
        const name = params.name as string;
        const found = await list.named(name);
        if (found === undefined) throw unknown(name);
        return wholeWorkflow(deps, found);
      },
    }),
    operation({
      ...{ id: "listWorkflowVersions", tag, method: "GET", path: "/workflows/:name/versions", action: "definition.read", stored: true },
      summary: "List the versions of a workflow, newest first.",
      query: z.strictObject({ limit, before: position }),
      answers: { 200: { description: "A page.", schema: pageOf(versionShape) }, ...notFound },
      async handle({ params, query: { limit: most, before } }) {
        const name = params.name as string;
        const found = await deps.catalogue.versions(name, { limit: most, before });
        if (found.length === 0 && before === undefined) throw unknown(name);
        const last = found.at(-1);
        return json(200, { items: found.map(versionBody), next: found.length < most || last === undefined ? null : String(last.version) });
      },
    }),
    operation({
      ...{
        id: "compareWorkflowVersions",
        tag,
        method: "GET",
        path: "/workflows/:name/versions/:range",
        action: "definition.read",
        stored: true,
      },
      summary: "Compare two versions of a workflow: `1...3` shows what version 3 changed.",
      answers: { 200: { description: "The difference.", schema: diffShape }, 404: { description: "There is no such version." } },
      async handle({ params }) {
        const name = params.name as string;
        const { from, to } = rangeOf(params.range as string);
        const [before, after] = await Promise.all([version(deps, name, from), version(deps, name, to)]);
        const difference = await differenceOf(deps.slices, before, after);
        return json(200, { from: versionBody(before.head), to: versionBody(after.head), ...difference });
      },
    }),
    rawOperation({
      ...{ id: "checkWorkflow", tag, method: "POST", path: "/workflows/check", action: "definition.check" },
      summary: "Check a definition without storing it, and compare it with the newest version.",
      body: { read: "text", ...definitionBodies(deps.files) },
      answers: { 200: { description: "What its checker finds.", schema: checkShape } },
      handle: async (request) => json(200, await checkDefinition(deps, request)),
    }),
  ];
}

function versionBody({ id, version, dialect, createdAt }: DefinitionHead) {
  return { id, version, dialect, createdAt };
}

function rangeOf(text: string): { from: number; to: number } {
  const found = /^(\d{1,9})\.\.\.(\d{1,9})$/.exec(text);
  if (found !== null) return { from: Number(found[1]), to: Number(found[2]) };
  throw new LongshoreError(
    "LONGSHORE_BAD_INPUT",
    `The range is ${JSON.stringify(text.slice(0, 40))}, expected two versions such as 1...3.`,
    {
      detail: { field: "path.range", expected: "two versions with three dots between them" },
    },
  );
}

async function version({ catalogue, reader, plan }: Pick<WorkflowDeps, "catalogue" | "plan" | "reader">, name: string, wanted: number) {
  const [head] = await catalogue.versions(name, { limit: 1, before: wanted + 1 });
  const definition = head?.version === wanted ? await reader.definitionById(head.id) : undefined;
  if (head === undefined || definition === undefined) {
    throw new LongshoreError("LONGSHORE_NOT_FOUND", `Workflow ${name} has no version ${wanted}.`, { detail: { field: "path.range" } });
  }
  return { head, source: definition.source, plan: plan(definition) };
}

function unknown(name: string): LongshoreError {
  return new LongshoreError("LONGSHORE_NOT_FOUND", `There is no workflow ${name}.`);
}
