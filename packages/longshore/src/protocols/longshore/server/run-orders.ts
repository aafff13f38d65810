// Orders to runs. With `dry`, the answer says what the order would do, and nothing changes.

import { z } from "zod";
import { LongshoreError } from "../../../core/errors.ts";
import { idOfUuid } from "../../../core/ids.ts";
import { writeExact } from "../../../core/json/json-exact.ts";
import { wholeRow } from "../../../core/slices/slices.ts";
import { isOpen } from "../../../engine/board/task.ts";
import { noSuchRun } from "../../../engine/run/no-such-run.ts";
import { appliesTo } from "../../../engine/run/orders.ts";
import type { Plan } from "../../../engine/run/plan.ts";
import { isRunOpen, type Run, taskIdOf } from "../../../engine/run/run.ts";
import { Skips } from "../../../engine/run/skips.ts";
import type { Order } from "../../../engine/run/store.ts";
import type { HttpReply } from "../../../net/http/http.ts";
import type { ProtocolEngine } from "../../server-half.ts";
import { foreseenShape } from "../wire/order-shapes.ts";
import { apiPrefix, runShape } from "../wire/shapes.ts";
import { runBody } from "./bodies.ts";
import { type Answer, badInput, json, type Operation, operation } from "./operation.ts";
import { flag } from "./query.ts";
import { knownRun, runNotFound } from "./runs.ts";

const tag = "runs";
/** A person writes less; a longer text is a mistake. */
const reasonCharsMax = 1_000;
const stepCharsMax = 512;

const dry = z.boolean().default(false).describe("true or false; with true, nothing changes, and the answer says what the order would do");
const step = z.string().min(1).max(stepCharsMax).describe("the id of a step");
const input = z.unknown().optional().describe("any JSON value; the same as before when absent");

const plainBody = z.strictObject({ dry });
const cancelBody = z.strictObject({
  reason: z
    .string()
    .min(1)
    .max(reasonCharsMax)
    .optional()
    .describe(`a text of 1 to ${reasonCharsMax} characters; it becomes the run's error`),
  dry,
});
const skipBody = z.strictObject({
  step,
  input: z.unknown().optional().describe("any JSON value: its input for display; null when absent"),
  output: z.unknown().optional().describe("any JSON value: its output; null when absent"),
  dry,
});
const restartBody = z.strictObject({
  input,
  latest: z.boolean().default(false).describe("true or false: whether it restarts with the newest version of its workflow"),
  dry,
});
const rerunBody = z
  .strictObject({
    input,
    from: step.optional().describe("the id of a step: begin again there, in the same run; without it, a new run starts"),
    stepInput: z.unknown().optional().describe("any JSON value: another input of that step"),
    dry,
  })
  .refine(({ from, stepInput, dry }) => from !== undefined || (stepInput === undefined && !dry), {
    path: ["from"],
    error: "needed with stepInput and dry",
  });

type OrderDeps = Pick<ProtocolEngine, "plan" | "reader" | "recordReader" | "removeRun" | "runs" | "shown" | "slices">;

export function runOrderOperations(deps: OrderDeps): Operation[] {
  const { runs, shown } = deps;
  const known = (id: string | undefined) => knownRun((run) => runs.run(run), id);
  const bodyOf = async (run: Run) => runBody(await shown.run(run));
  const accepted = async (run: Run | undefined, id: string) => {
    if (run === undefined) throw noSuchRun(id);
    return json(202, await bodyOf(run));
  };
  const newRun = async (run: Run | undefined, id: string) => {
    if (run === undefined) throw noSuchRun(id);
    return json(201, await bodyOf(run), { location: `${apiPrefix}/runs/${run.id}` });
  };
  /** Gives the order to the run, or only predicts what it would do. */
  const told = async (run: Run, order: Order, isDry: boolean, refusal?: string): Promise<HttpReply> => {
    if (isDry) return json(200, await foreseen(deps, run, order));
    if (refusal !== undefined && !appliesTo(run, order)) throw new LongshoreError("LONGSHORE_CONFLICT", `Run ${run.id} ${refusal}.`);
    return accepted(await runs.tell(run.id, order), run.id);
  };
  const answers = (what: string, refused = "") => {
    const all: Record<number, Answer> = {
      202: { description: what, schema: runShape },
      200: { description: "With `dry`: what it would do.", schema: foreseenShape },
      ...runNotFound,
    };
    if (refused !== "") all[409] = { description: refused };
    return all;
  };
  return [
    operation({
      ...{ id: "cancelRun", tag, method: "POST", path: "/runs/:id/cancel", action: "run.steer" },
      summary: "Cancel a run. One that has ended stays as it is.",
      body: cancelBody,
      answers: answers("The run afterwards. Workers are informed at their next heartbeat."),
      async handle({ params, body: { reason, dry } }) {
        const order: Order = { kind: "cancel", ...(reason !== undefined && { error: reason }) };
        return told(await known(params.id), order, dry);
      },
    }),
    operation({
      ...{ id: "retryRun", tag, method: "POST", path: "/runs/:id/retry", action: "run.steer" },
      summary: "Repeat the steps that did not succeed, in the same run. The results of the other steps are kept.",
      body: plainBody,
      answers: answers("It continues.", "It is still running, or has succeeded."),
      async handle({ params, body: { dry } }) {
        const run = await known(params.id);
        if (dry) return json(200, await foreseen(deps, run, { kind: "retry" }, run.state !== "succeeded"));
        return accepted(await runs.retry(run.id), run.id);
      },
    }),
    operation({
      ...{ id: "pauseRun", tag, method: "POST", path: "/runs/:id/pause", action: "run.steer" },
      summary: "Pause a run: running steps continue, and no other step starts.",
      body: plainBody,
      answers: answers("It is paused.", "It has ended."),
      handle: async ({ params, body }) => told(await known(params.id), { kind: "pause" }, body.dry, "has ended"),
    }),
    operation({
      ...{ id: "resumeRun", tag, method: "POST", path: "/runs/:id/resume", action: "run.steer" },
      summary: "Let a paused run continue.",
      body: plainBody,
      answers: answers("It continues.", "It has ended."),
      handle: async ({ params, body }) => told(await known(params.id), { kind: "resume" }, body.dry, "has ended"),
    }),
    operation({
      ...{ id: "hastenRun", tag, method: "POST", path: "/runs/:id/hasten", action: "run.steer" },
      summary: "End the delays of the tasks of a run, such as those before a next try.",
      answers: { 202: { description: "The run.", schema: runShape }, 409: { description: "It has ended." }, ...runNotFound },
      async handle({ params }) {
        const run = await known(params.id);
        if (!isRunOpen(run.state)) throw new LongshoreError("LONGSHORE_CONFLICT", `Run ${run.id} has ended.`);
        await runs.hasten(run.id);
        return accepted(await runs.run(run.id), run.id);
      },
    }),
    operation({
      ...{ id: "skipStep", tag, method: "POST", path: "/runs/:id/skip", action: "run.steer" },
      summary: "Skip a step that has not begun: the run continues after it as if the step had this output.",
      body: skipBody,
      answers: answers("The run.", "It is not running, or the step has begun."),
      async handle({ params, body }) {
        const run = await known(params.id);
        const node = await nodeOf(deps, run, body.step);
        const order: Order = { kind: "skip", node, input: writeExact(body.input ?? null), output: writeExact(body.output ?? null) };
        const begun = new LongshoreError("LONGSHORE_CONFLICT", `Step ${body.step} of run ${run.id} has begun already.`);
        if (run.state !== "running") throw new LongshoreError("LONGSHORE_CONFLICT", `Run ${run.id} is ${run.state}, not running.`);
        const task = await deps.reader.taskHead(taskIdOf(run.id, node));
        const isSkipped = new Skips(run).has(node);
        if (task !== undefined && task.state !== "forgotten" && !isSkipped) throw begun;
        if (body.dry) return json(200, await foreseen(deps, run, order));
        const after = isSkipped ? run : await runs.tell(run.id, order);
        // The run may have begun in the meantime.
        if (after !== undefined && !new Skips(after).has(node)) throw begun;
        return accepted(after, run.id);
      },
    }),
    operation({
      ...{ id: "restartRun", tag, method: "POST", path: "/runs/:id/restart", action: "run.steer" },
      summary: "Begin a run that has ended again from its start, in the same run.",
      body: restartBody,
      answers: answers("It begins again.", "It is still running."),
      async handle({ params, body: { input: given, latest, dry } }) {
        const run = await known(params.id);
        const order = await runs.restartOf(run, { input: given === undefined ? undefined : writeExact(given), latest });
        return told(run, order, dry, "is still running: cancel it first, or wait for its end");
      },
    }),
    operation({
      ...{ id: "rerunRun", tag, method: "POST", path: "/runs/:id/rerun", action: "run.steer" },
      summary: "Start a new run of the same version with the same input; with `from`, begin again at a step, in the same run.",
      body: rerunBody,
      answers: { 201: { description: "The new run.", schema: runShape }, ...answers("With `from`: it continues.", "It is still running.") },
      async handle({ params, body: { input: given, from, stepInput, dry } }) {
        const run = await known(params.id);
        const runInput = given === undefined ? undefined : writeExact(given);
        if (from === undefined) return newRun(await runs.rerun(run.id, runInput), run.id);
        const node = await nodeOf(deps, run, from);
        const inputs = { ...(stepInput !== undefined && { input: writeExact(stepInput) }), ...(runInput !== undefined && { runInput }) };
        return told(run, { kind: "rerun", node, ...inputs }, dry, "is still running: cancel it first, or wait for its end");
      },
    }),
    operation({
      ...{ id: "removeRun", tag, method: "DELETE", path: "/runs/:id", action: "run.remove" },
      summary: "Remove a run that has ended, with its steps, logs and data.",
      query: z.strictObject({ dry: flag.describe("true changes nothing: the answer is the same as without it") }),
      answers: { 204: { description: "It is removed." }, 409: { description: "It is open." }, ...runNotFound },
      async handle({ params, query }) {
        const id = idOfUuid(params.id as string) ?? (params.id as string);
        const run = await runs.run(id);
        const isOpen = run !== undefined && isRunOpen(run.state);
        // A repeated request finds that the run is already removed.
        if (!isOpen && !query.dry && (await deps.removeRun(id))) return { status: 204 };
        if (run === undefined) throw noSuchRun(id);
        if (!isOpen && query.dry) return { status: 204 };
        throw new LongshoreError("LONGSHORE_CONFLICT", `Run ${run.id} is open: cancel it first, or wait for its end.`);
      },
    }),
  ];
}

async function foreseen(deps: OrderDeps, run: Run, order: Order, isPossible = true) {
  const found = isPossible ? await deps.runs.foresee(run.id, order) : null;
  if (found === undefined) throw noSuchRun(run.id);
  if (found === null)
    return { dry: true, applies: false, state: run.state, starts: [], again: [], kept: null, cancelled: [], children: [] };
  const { childrenOf, cancels, ...steps } = found;
  const children: string[] = [];
  for (const { taskId, attempt } of childrenOf) {
    await deps.slices.turn(wholeRow);
    const child = await deps.reader.childHeadOf(taskId, attempt);
    if (child !== undefined) children.push(child.id);
  }
  const cancelled = cancels ? await openSteps(deps, run) : [];
  return { dry: true, applies: true, ...steps, cancelled, children };
}

async function openSteps({ recordReader }: OrderDeps, run: Run): Promise<string[]> {
  return (await recordReader.records(run.id)).filter(({ state }) => isOpen(state)).map(({ step }) => step);
}

/** The number of a step in its plan. Steps of a durable function are not in a plan. */
async function nodeOf({ reader, plan }: OrderDeps, run: Run, id: string): Promise<number> {
  const definition = await reader.definitionById(run.definitionId);
  const compiled: Plan | undefined = definition === undefined ? undefined : plan(definition);
  const node = compiled?.driven ? undefined : compiled?.index.get(id);
  if (node === undefined) throw badInput(`Run ${run.id} has no step ${id} for this order.`, "step", "the id of a step of its definition");
  return node;
}
