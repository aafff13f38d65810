// One workflow in full: its source, its mistakes, the results of its last runs, and its steps that no worker can take.

import type { Json, JsonObject } from "../../../core/json/json.ts";
import { parseExact, writeExact } from "../../../core/json/json-exact.ts";
import { Crews } from "../../../engine/board/crews.ts";
import { noOne } from "../../../engine/board/wait-reason.ts";
import type { Plan } from "../../../engine/run/plan.ts";
import type { HttpReply } from "../../../net/http/http.ts";
import { planStep } from "./bodies.ts";
import { listPieces, longReply } from "./json-page.ts";
import { json } from "./operation.ts";
import { problemsIn } from "./workflow-check.ts";
import { indentedSource } from "./workflow-diff.ts";
import type { ListedWorkflow } from "./workflow-list.ts";
import type { WorkflowDeps } from "./workflows.ts";

const inputsMax = 5;
/** Runs that are read to find different inputs. */
const inputRunsMax = 20;
/** Longer inputs are no use in a form. */
const inputCharsMax = 16_384;
const unservedMax = 100;
/** Nodes that are visited without a pause. */
const nodesAtOnce = 500;

/** As JSON text: a definition may have 20,000 steps. */
export async function wholeWorkflow(deps: WorkflowDeps, { definition, body }: ListedWorkflow): Promise<HttpReply> {
  const lastInputs = await inputsOf(deps, body.name);
  if (definition === undefined)
    return json(200, { ...body, events: [], steps: [], inputSchema: null, lastInputs, text: null, problems: [], unserved: [] });
  const plan = deps.plan(definition);
  const text = await indentedSource(deps.slices, definition.source);
  const head = {
    ...body,
    events: await deps.catalogue.events(body.name),
    inputSchema: (plan.inputForm as JsonObject | undefined) ?? null,
    lastInputs,
    text,
    problems: text === null ? [] : await problemsIn(deps, definition, text),
    unserved: await unservedSteps(deps, plan),
  };
  const nodes = plan.nodes.filter(({ hidden }) => !hidden);
  return longReply(deps.reader, async (growth) => {
    const steps = await listPieces({ reader: deps.reader, growth }, nodes, (node) => planStep(plan, node));
    return [`${writeExact(head).slice(0, -1)},"steps":[`, ...steps, "]}"];
  });
}

async function inputsOf({ reader }: WorkflowDeps, workflow: string): Promise<{ runId: string; input: Json }[]> {
  const { items } = await reader.runHeads({ workflow, limit: inputRunsMax });
  const known = new Set<string>();
  const found: { runId: string; input: Json }[] = [];
  for (const { id } of items) {
    if (found.length === inputsMax) break;
    await reader.turn(1);
    const input = (await reader.run(id))?.input ?? null;
    if (input === null || input.length > inputCharsMax || known.has(input)) continue;
    known.add(input);
    found.push({ runId: id, input: parseExact(input) as Json });
  }
  return found;
}

/** Tasks whose lane is decided while the run goes on are shown with the lane of their definition. */
async function unservedSteps({ workers, slices, carriers }: WorkflowDeps, plan: Plan) {
  const crews = new Crews(workers, slices);
  const isUnknown = [...carriers].some((carrier) => carrier.trouble() !== null);
  const found: { step: string; lane: string; labels: string[]; text: string; missing: string[] }[] = [];
  if (isUnknown) return found;
  for (const [at, node] of plan.nodes.entries()) {
    if (at % nodesAtOnce === 0) await slices.turn(nodesAtOnce);
    const lane = node.kind === "task" && !node.hidden && !plan.driven ? node.lanes.at(-1) : undefined;
    if (lane === undefined) continue;
    const crew = await crews.of(lane);
    if (crew.able > 0) continue;
    const { text, missing = [] } = noOne(crew);
    found.push({ step: node.id, lane: lane.name, labels: [...lane.labels], text, missing: [...missing] });
    if (found.length === unservedMax) break;
  }
  return found;
}
