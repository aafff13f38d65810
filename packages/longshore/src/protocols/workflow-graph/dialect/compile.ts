// The workflow-graph dialect: one task per job, on the lane `$command` with the labels that the job requires. A command that names a
// handler also requires the label of this handler, because a worker without the handler could only fail the job. A job's input is its
// command and the outputs of its direct dependencies. Its output is a flat map of texts. A run as a whole has no output.

import type { Backoff } from "../../../core/backoff.ts";
import { isObject, type Json } from "../../../core/json/json.ts";
import { writeExact } from "../../../core/json/json-exact.ts";
import { parseInSlices } from "../../../core/json/json-slices.ts";
import { atOnce, mapInSlices, type Sliced } from "../../../core/slices/slice-work.ts";
import { laneOf } from "../../../engine/board/lanes.ts";
import { ownLane } from "../../../engine/board/reserved-lanes.ts";
import type { Dialect, Resolved, Scope } from "../../../engine/run/dialect.ts";
import { makePlanInSlices } from "../../../engine/run/make-plan.ts";
import type { Plan, TaskNode, Template } from "../../../engine/run/plan.ts";
import { handlerLabelOf, readCommand } from "../wire/command.ts";
import type { Outputs, WireBackoff } from "../wire/shapes.ts";
import { checkInSlices, refuse } from "./check.ts";
import { dialectName, type GraphJob, type GraphSource } from "./source.ts";

/**
 * The lane of all shell commands. Workers of any origin take from it and run the command in a shell, so it is reserved for this dialect.
 */
export const commandLane = ownLane("command");

interface Upstream {
  id: string;
  node: number;
}

type GraphTemplate = { kind: "job"; command: string; upstream: readonly Upstream[] } | { kind: "constant"; value: Json };

export const workflowGraphDialect: Dialect = {
  name: dialectName,
  compile: (text) => atOnce(compileInSlices(text)),
  compileInSlices,
  resolve,
};

function* compileInSlices(text: string): Sliced<Plan> {
  const source = (yield* parseInSlices(text)) as GraphSource;
  yield* checkInSlices(source, { job: (at) => ["jobs", at], dependency: (at, place) => ["jobs", at, "depends_on", place] }, refuse);
  const index = new Map(source.jobs.map((job, at) => [job.id, at]));
  const nodes = yield* mapInSlices(source.jobs, (job) => nodeOf(job, index));
  return yield* makePlanInSlices({ dialect: dialectName, nodes, output: constant(null), limit: source.limit, debounce: source.debounce });
}

function nodeOf(job: GraphJob, index: ReadonlyMap<string, number>): TaskNode {
  const upstream = [...new Set(job.depends_on)].map((id) => ({ id, node: index.get(id) as number }));
  return {
    kind: "task",
    id: job.id,
    input: { kind: "job", command: job.command, upstream } satisfies GraphTemplate,
    ...(job.skip ? { when: constant(false) } : {}),
    after: upstream.map(({ node }) => node),
    waitsFor: "done",
    timeouts: job.timeout_secs === null ? {} : { endMs: job.timeout_secs * 1_000 },
    lanes: [laneOf(commandLane, labelsOf(job))],
    priority: job.priority,
    retry: { failures: job.max_retries, lost: job.max_lost_leases, backoff: backoffOf(job.backoff) },
    limits: [],
  };
}

function labelsOf(job: GraphJob): readonly string[] {
  const handler = handlerLabelOf(readCommand(job.command));
  return handler === undefined ? job.required_labels : [...job.required_labels, handler];
}

function resolve(_plan: Plan, template: Template, scope: Scope): Resolved {
  const graph = template as GraphTemplate;
  if (graph.kind === "constant") return { value: graph.value };
  const needs: number[] = [];
  // A null prototype, so that a job named `__proto__` is a job like any other.
  const upstream: { [id: string]: Outputs } = Object.create(null);
  for (const { id, node } of graph.upstream) {
    const output = scope.output(node);
    if (output === undefined) needs.push(node);
    else upstream[id] = outputsOf(output);
  }
  return needs.length > 0 ? { needs } : { value: { command: graph.command, upstream } };
}

/**
 * A job's output on this wire. Texts stay unchanged, other values become JSON. An output that is not an object is stored under `result`.
 */
function outputsOf(output: Json): Outputs {
  if (output === null) return {};
  if (!isObject(output)) return { result: asText(output) };
  const outputs: Outputs = Object.create(null);
  for (const key of Object.keys(output)) outputs[key] = asText(output[key] as Json);
  return outputs;
}

function asText(value: Json): string {
  return typeof value === "string" ? value : writeExact(value);
}

/** The first retry waits `base_secs`. Each further retry waits twice as long, but at most `max_secs`. */
function backoffOf(backoff: WireBackoff): Backoff {
  if (backoff === "None") return { kind: "fixed", delayMs: 0 };
  if ("Fixed" in backoff) return { kind: "fixed", delayMs: backoff.Fixed.delay_secs * 1_000 };
  const { base_secs, max_secs } = backoff.Exponential;
  return { kind: "exponential", delayMs: base_secs * 1_000, maxMs: max_secs * 1_000 };
}

function constant(value: Json): GraphTemplate {
  return { kind: "constant", value };
}
