// The answers of our own API: shapes for the document, and the functions that make them from stored rows. Times are epoch
// milliseconds; inputs and outputs are the JSON values themselves.

import { z } from "zod";
import type { Json } from "../../../core/json/json.ts";
import { parseExact } from "../../../core/json/json-exact.ts";
import type { DeadLetter } from "../../../engine/board/dead-letter.ts";
import type { TaskRow } from "../../../engine/board/task.ts";
import type { Waiting } from "../../../engine/board/wait-reason.ts";
import type { Definition } from "../../../engine/run/dialect.ts";
import type { Plan, PlanNode } from "../../../engine/run/plan.ts";
import type { AttemptView } from "../../../engine/run/reader.ts";
import type { Run } from "../../../engine/run/run.ts";

const time = z.number().int();
const maybeTime = time.nullable();
const value = z.unknown();

export const runStates = ["running", "paused", "succeeded", "failed", "cancelled", "timed-out"] as const;
export const taskStates = ["queued", "offered", "held", "cancelling", "done", "failed", "cancelled", "skipped"] as const;

export const runShape = z
  .object({
    id: z.string(),
    workflow: z.string(),
    definitionId: z.string().describe("The version that it runs, whatever has been defined since."),
    state: z.enum(runStates),
    input: value,
    output: value,
    error: z.string().nullable(),
    createdAt: time,
    endedAt: maybeTime,
    endBy: maybeTime.describe("When the run must have ended."),
    left: z.number().int().describe("Steps that have not settled."),
    failed: z.number().int().describe("Steps that failed."),
    retries: z.number().int().describe("How often it was tried again after its end."),
    alias: z.string().nullable().describe("What a protocol calls this run."),
    parentTaskId: z.string().nullable().describe("The step of another run that waits for this one."),
  })
  .meta({ id: "Run" });

export function runBody(run: Run) {
  return {
    id: run.id,
    workflow: run.workflow,
    definitionId: run.definitionId,
    state: run.state,
    input: parsed(run.input),
    output: parsed(run.output),
    error: run.error,
    createdAt: run.createdAt,
    endedAt: run.endedAt,
    endBy: run.endBy,
    left: run.left,
    failed: run.failed,
    retries: run.retries,
    alias: run.alias,
    parentTaskId: run.parentTaskId,
  };
}

export const waitingShape = z
  .object({
    reason: z.enum(["not-due", "limit", "no-worker", "busy", "unreachable", "sent", "next", "record"]),
    text: z.string().describe("For people."),
    at: time.optional().describe("When it may be taken, if that is known."),
    key: z.string().optional().describe("The limit in the way."),
    missing: z.array(z.string()).optional().describe("Labels that no live worker of this lane offers."),
    workers: z.array(z.string()).optional().describe("Workers that could take it."),
  })
  .meta({ id: "Waiting" });

export const taskShape = z
  .object({
    id: z.string(),
    runId: z.string().nullable(),
    step: z.string(),
    state: z.enum(taskStates),
    attempt: z.number().int().describe("Number of the current try, from 1."),
    grant: z.number().int().describe("Rises whenever the task is handed out and whenever it comes back."),
    failures: z.number().int(),
    lost: z.number().int().describe("How often its worker vanished."),
    holder: z.string().nullable(),
    lane: z.string().nullable().describe("The name that workers claim; null for a step that no worker takes."),
    labels: z.array(z.string()),
    priority: z.number().int(),
    input: value,
    output: value,
    error: z.string().nullable(),
    postedAt: time,
    dueAt: time.describe("Not handed out before."),
    startedAt: maybeTime.describe("When this attempt was first handed out."),
    endedAt: maybeTime,
    waiting: waitingShape.optional().describe("Why it has not been taken, while it is queued or on its way to workers."),
  })
  .meta({ id: "Task" });

export function taskBody(task: TaskRow, waiting: Waiting | null) {
  return {
    id: task.id,
    runId: task.runId,
    step: task.step,
    state: task.state,
    attempt: task.attempt + 1,
    grant: task.grant,
    failures: task.failures,
    lost: task.lost,
    holder: task.holder,
    lane: task.lane?.name ?? null,
    labels: task.lane?.labels ?? [],
    priority: task.priority,
    input: parsed(task.input),
    output: parsed(task.output),
    error: task.error,
    postedAt: task.postedAt,
    dueAt: task.dueAt,
    startedAt: task.startedAt,
    endedAt: task.endedAt,
    waiting: waiting ?? undefined,
  };
}

/** Dead letters of each step in a list of steps; the protocol of the task lists all. */
const deadLettersShown = 20;

const deadLettersShape = z
  .object({
    total: z.number().int(),
    first: z.array(
      z.object({
        uid: z.string(),
        reason: z.string(),
        error: z.string().nullable(),
        tries: z.number().int().describe("How often it was tried."),
      }),
    ),
  })
  .meta({ id: "DeadLetters" });

export const stepShape = z
  .object({
    id: z.string(),
    state: z.enum(["waiting", ...taskStates]).describe("`waiting`: its turn has not come; in a run that has ended, it never will."),
    after: z.array(z.string()).describe("Steps that must settle first."),
    taskId: z.string().nullable().describe("Null while it waits."),
    attempt: z.number().int(),
    holder: z.string().nullable(),
    error: z.string().nullable(),
    startedAt: maybeTime,
    endedAt: maybeTime,
    lastLine: z.string().nullable().optional().describe("The last line of its log, on request."),
    waiting: waitingShape.optional().describe("Why no worker has taken it, while it is queued or on its way to workers."),
    lastError: z.string().optional().describe("Why the try before failed, while it waits for the next one."),
    deadLetters: deadLettersShape
      .optional()
      .describe(
        `What it was given and has put aside, or failed for: how many, and the first ${deadLettersShown}. Absent when there is none.`,
      ),
  })
  .meta({ id: "Step" });

/** What is shown of a step besides its task. */
export interface StepMore {
  readonly lastLine?: string | null | undefined;
  readonly waiting?: Waiting | null;
  readonly lastError?: string | undefined;
  readonly deadLetters?: readonly DeadLetter[];
}

export function stepBody(plan: Plan, node: PlanNode, task: TaskRow | undefined, more: StepMore = {}) {
  const { lastLine, waiting, lastError, deadLetters = [] } = more;
  const recorded = task !== undefined && isShown(task);
  return {
    id: node.id,
    state: recorded ? task.state : "waiting",
    after: shownAfter(plan, node),
    taskId: recorded ? task.id : null,
    attempt: recorded ? task.attempt + 1 : 0,
    holder: recorded ? task.holder : null,
    error: recorded ? task.error : null,
    startedAt: recorded ? task.startedAt : null,
    endedAt: recorded ? task.endedAt : null,
    lastLine,
    waiting: waiting ?? undefined,
    lastError,
    deadLetters: deadLetters.length === 0 ? undefined : { total: deadLetters.length, first: deadLetters.slice(0, deadLettersShown) },
  };
}

export const attemptShape = z
  .object({
    attempt: z.number().int().describe("From 1."),
    grant: z.number().int(),
    holder: z.string().nullable(),
    error: z.string().nullable(),
    queuedAt: time,
    startedAt: maybeTime,
    endedAt: maybeTime,
    closedBy: z.string().nullable().describe("What ended it: complete, fail, defer, cancel or expire."),
  })
  .meta({ id: "Attempt" });

export function attemptBody(attempt: AttemptView) {
  const { grant, holder, error, queuedAt, startedAt, endedAt, closedBy } = attempt;
  return { attempt: attempt.attempt + 1, grant, holder, error, queuedAt, startedAt, endedAt, closedBy };
}

/** A step whose earlier life is void has no task now: it waits to be started again. */
export function isShown(task: TaskRow): boolean {
  return task.state !== "forgotten";
}

const definitionFields = {
  id: z.string(),
  name: z.string(),
  version: z.number().int().describe("Counts from 1 for each name."),
  dialect: z.string().describe("The language it is written in."),
  createdAt: time,
};

export const definitionShape = z.object(definitionFields).meta({ id: "Definition" });

const planStepShape = z
  .object({
    id: z.string(),
    kind: z.enum(["task", "run"]),
    after: z.array(z.string()).describe("Steps that must settle first."),
    lane: z.string().nullable(),
    labels: z.array(z.string()),
    workflow: z.string().nullable().describe("The workflow that a step of kind `run` starts."),
  })
  .meta({ id: "PlanStep" });

export const wholeDefinitionShape = z
  .object({ ...definitionFields, source: value.describe("As it is kept, in its own dialect."), steps: z.array(planStepShape) })
  .meta({ id: "WholeDefinition" });

export function definitionBody(definition: Definition) {
  const { id, name, version, dialect, createdAt } = definition;
  return { id, name, version, dialect, createdAt };
}

export function wholeDefinitionBody(definition: Definition, plan: Plan) {
  const steps = plan.nodes.filter(({ hidden }) => !hidden).map((node) => planStep(plan, node));
  return { ...definitionBody(definition), source: parsed(definition.source), steps };
}

/** The ids of the steps that it waits for. Behind a node that is not shown are those that it waits for, and those it was chosen by. */
function shownAfter(plan: Plan, node: PlanNode): string[] {
  const ids: string[] = [];
  // What is added on the way is walked over as well.
  const upstreams = new Set(node.after);
  for (const at of upstreams) {
    const upstream = plan.nodes[at] as PlanNode;
    if (!upstream.hidden) ids.push(upstream.id);
    else for (const further of [...upstream.after, ...(plan.starters.get(at) ?? [])]) upstreams.add(further);
  }
  return ids;
}

function planStep(plan: Plan, node: PlanNode) {
  const lane = node.kind === "task" ? node.lanes.at(-1) : undefined;
  return {
    id: node.id,
    kind: node.kind,
    after: shownAfter(plan, node),
    lane: lane?.name ?? null,
    labels: lane?.labels ?? [],
    workflow: node.kind === "run" ? node.workflow : null,
  };
}

/** A page of any list, newest first or in order; `next` is the parameter for the following page, null at the end. */
export function pageOf<Item extends z.ZodType>(item: Item) {
  return z.object({ items: z.array(item), next: z.string().nullable() });
}

function parsed(text: string | null): Json {
  return text === null ? null : (parseExact(text) as Json);
}
