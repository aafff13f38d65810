// A run as a document of FlowKit's collection `tasks`. Foreign workers poll these documents, and our HTTP API returns them. FlowKit has six
// words for the state of a task or a node; more precise states are in additional fields.
//
//   ours                         FlowKit's
//   run      running             running; cancelling while a worker still stops after a cancel
//            paused              deferred
//            succeeded           finished
//            failed, timed-out   failed
//            cancelled           finished, with `coordinator.cancelled`: it has no word for it
//   node     queued              queued; deferred when it waits for another attempt
//            offered, held       running
//            cancelling          cancelling
//            done, skipped       finished: a node that is not wanted has nothing more to give
//            failed              failed
//            cancelled           deferred, or queued when it never began, with `coordinator.cancelled`

import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";
import { parseExact } from "../../../core/json/json-exact.ts";
import { isOpen, type TaskRow } from "../../../engine/board/task.ts";
import type { Plan, PlanNode } from "../../../engine/run/plan.ts";
import { isRunOpen, type Run } from "../../../engine/run/run.ts";
import { functionType, type Graph } from "../dialect/graph.ts";
import { varsOf } from "../dialect/resolve.ts";
import type { TaskStatus } from "./tasks-routes.ts";

/** How a time is written: as a text, or as a MongoDB date. */
export type Moment<Time> = (ms: number) => Time;

export const isoMoment: Moment<string> = (ms) => new Date(ms).toISOString();

/** JSON values, and times. */
export type Document = { [field: string]: unknown };

/** The document without its graph, for lists. */
export function summaryDocument<Time>(run: Run, moment: Moment<Time>, cancelling = false): Document {
  const status: TaskStatus = cancelling ? "cancelling" : runStatus[run.state];
  const created = isoMoment(run.createdAt);
  return {
    id: run.id,
    pipeline_id: run.id,
    /** Ours: the name of the graph; null when its submitter gave none. */
    name: run.workflow === run.id ? null : run.workflow,
    status,
    /** Ours: more precise than the six words. */
    state: run.state,
    params: paramsOf(run),
    result: resultOf(run),
    status_history: [
      { from: null, to: "queued", at: created },
      { from: "queued", to: "running", at: created },
      ...(run.endedAt === null ? [] : [{ from: "running", to: status, at: isoMoment(run.endedAt) }]),
    ],
    coordinator: coordinatorOf(run, moment),
    next_retry_at_ms: null,
    started_at: created,
    finished_at: run.endedAt === null || cancelling ? null : moment(run.endedAt),
    error: run.error,
    /** Ours: how often it was tried again as a whole. */
    retries: run.retries,
  };
}

/** A record with only the texts that the document shows, because all texts together may have gigabytes. */
export function withoutTexts(task: TaskRow, plan: Plan): TaskRow {
  const isShown = aggregates(plan.nodes[task.node]?.origin) !== undefined;
  return { ...task, input: "null", output: isShown ? task.output : null };
}

export async function recordsWithout(records: AsyncIterable<TaskRow>, plan: Plan): Promise<TaskRow[]> {
  const found: TaskRow[] = [];
  for await (const task of records) found.push(withoutTexts(task, plan));
  return found;
}

/** `records` as the reader lists them; nodes without a record have not begun. `errors` by task, for tasks that wait for a retry. */
export function taskDocument<Time>(
  run: Run,
  plan: Plan,
  records: readonly TaskRow[],
  moment: Moment<Time>,
  errors: ReadonlyMap<string, string> = new Map(),
): Document {
  const byNode = new Map(records.map((task) => [task.node, task]));
  const stats = statsOf(plan, byNode);
  const graph = plan.origin as Partial<Graph> | undefined;
  return {
    ...summaryDocument(run, moment, isCancelling(run, records)),
    graph: {
      ...(graph?.name === undefined ? {} : { name: graph.name }),
      nodes: plan.nodes.flatMap((node, at) => {
        const task = byNode.get(at);
        const details = { stats: stats.get(node.id), lastError: task && errors.get(task.id) };
        return node.hidden ? [] : [nodeDocument(node, task, moment, details)];
      }),
      edges: graph?.edges ?? [],
      edges_ex: graph?.edges_ex ?? [],
    },
    last_event_recv_ms: records.reduce((newest, task) => Math.max(newest, lastHeard(task)), run.createdAt),
  };
}

/** The run was cancelled, and a worker has not stopped yet. */
function isCancelling(run: Run, records: readonly TaskRow[]): boolean {
  return run.state === "cancelled" && records.some(({ state }) => state === "cancelling");
}

export function nodeDocument<Time>(
  node: PlanNode,
  task: TaskRow | undefined,
  moment: Moment<Time>,
  { stats = {}, lastError }: { stats?: Json | undefined; lastError?: string | undefined } = {},
): Document {
  const runtime = task === undefined ? { status: "queued", attempt_epoch: 0 } : runtimeOf(task, moment);
  return { ...specOf(node), ...(lastError === undefined ? {} : { last_error: lastError }), ...runtime, stats };
}

const runStatus: { readonly [state in Run["state"]]: TaskStatus } = {
  running: "running",
  paused: "deferred",
  blocked: "deferred",
  succeeded: "finished",
  failed: "failed",
  "timed-out": "failed",
  cancelled: "finished",
};

/** The node in the graph; a step of another dialect is converted to the same form. */
function specOf(node: PlanNode): Document {
  const { origin } = node;
  if (isObject(origin) && typeof origin.node_id === "string") return origin;
  const type = node.kind === "task" ? (node.lanes.at(-1)?.name ?? node.id) : functionType;
  return { node_id: node.id, type, depends_on: [], fan_in: "all", io: {} };
}

function runtimeOf<Time>(task: TaskRow, moment: Moment<Time>): Document {
  const { state, grant, holder, holdUntil, startedAt, endedAt, error, dueAt } = task;
  const holds = holder !== null && holdUntil !== null && isOpen(state);
  const waits = state === "queued" && task.attempt > task.firstAttempt;
  const cancelled = state === "cancelling" || state === "cancelled";
  return {
    status: nodeStatus(task),
    /** Our field, as in the task. Without it, readers would think that a cancelled node is tried again. */
    state,
    attempt_epoch: grant,
    started_at: startedAt === null ? null : moment(startedAt),
    finished_at: endedAt === null ? null : moment(endedAt),
    last_event_recv_ms: lastHeard(task),
    ...(holds ? { lease: { worker_id: holder, lease_id: `${task.id}-${grant}`, deadline_ts_ms: holdUntil } } : {}),
    ...(waits ? { next_retry_at_ms: dueAt } : {}),
    ...(error === null ? {} : { last_error: error }),
    ...(cancelled ? { coordinator: { cancelled: true } } : {}),
    ...(state === "skipped" ? { skipped: true } : {}),
  };
}

function nodeStatus(task: TaskRow): TaskStatus {
  switch (task.state) {
    case "queued":
      return task.attempt > task.firstAttempt ? "deferred" : "queued";
    case "offered":
    case "held":
      return "running";
    case "cancelling":
      return "cancelling";
    case "done":
    case "skipped":
      return "finished";
    case "failed":
      return "failed";
    case "cancelled":
      return task.startedAt === null ? "queued" : "deferred";
    case "forgotten":
      return "queued";
  }
}

/** The last time of an event that the board stores. */
function lastHeard({ postedAt, queuedAt, claimedAt, endedAt }: TaskRow): number {
  return Math.max(postedAt, queuedAt, claimedAt ?? 0, endedAt ?? 0);
}

function coordinatorOf<Time>(run: Run, moment: Moment<Time>): Document {
  const vars = run.variables === null ? {} : varsOf(parseExact(run.variables) as JsonObject);
  const cancelled = run.state === "cancelled";
  return {
    liveness: { state: "ok" },
    ...(Object.keys(vars).length > 0 ? { vars } : {}),
    ...(cancelled ? { cancelled, cancel_reason: run.error, cancelled_at: run.endedAt === null ? null : moment(run.endedAt) } : {}),
  };
}

function paramsOf(run: Run): Json {
  const input = parseExact(run.input) as Json;
  return isObject(input) && isObject(input.params) ? (input.params as JsonObject) : {};
}

function resultOf(run: Run): Json {
  return run.output === null || isRunOpen(run.state) ? null : (parseExact(run.output) as Json);
}

/** The results of `metrics.aggregate`, by node. The last one in the graph counts. */
function statsOf(plan: Plan, records: ReadonlyMap<number, TaskRow>): Map<string, Json> {
  const stats = new Map<string, Json>();
  plan.nodes.forEach(({ origin }, at) => {
    const target = aggregates(origin);
    const task = target === undefined ? undefined : records.get(at);
    if (target === undefined || task?.state !== "done" || task.output === null) return;
    const output = parseExact(task.output) as Json;
    if (isObject(output)) stats.set(target, (output as JsonObject).stats ?? {});
  });
  return stats;
}

/** The node whose metrics this node aggregates. */
export function aggregates(origin: unknown): string | undefined {
  const { io } = isObject(origin) ? origin : {};
  if (!isObject(io) || io.fn !== "metrics.aggregate" || !isObject(io.fn_args)) return undefined;
  return typeof io.fn_args.node_id === "string" ? io.fn_args.node_id : undefined;
}
