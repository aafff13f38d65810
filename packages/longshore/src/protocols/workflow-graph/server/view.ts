// A definition as this wire shows it. A definition never changes, so its view is created once. It has the jobs for display, and the
// constant texts of the response to a claim.

import type { Backoff } from "../../../core/backoff.ts";
import type { Definition } from "../../../engine/run/dialect.ts";
import type { Plan, PlanNode } from "../../../engine/run/plan.ts";
import { decodeSource, dialectName, type GraphJob, type GraphSource, plainJob } from "../dialect/source.ts";
import { readCommand } from "../wire/command.ts";
import type { JobKind, WireBackoff } from "../wire/shapes.ts";

export interface View {
  readonly graph: GraphSource;
  /** Node index by job id. */
  readonly index: ReadonlyMap<string, number>;
  readonly parts: readonly NodeTexts[];
}

/** The constant texts around the changing values of one job in the response to a claim. */
export interface NodeTexts {
  /** `"job_id":"build","workflow_id":` */
  readonly ids: string;
  /** `,"command":"make","required_labels":[],"retry_policy":{...},"attempt":`. The command is left out when it contains the input. */
  readonly before: string;
  /** `{"command":"make","upstream":`: how the input of a command begins; null for a handler's step. */
  readonly inputHead: string | null;
  /** `,"kind":"shell"`, and `,"timeout_secs":60` where there is one. */
  readonly after: string;
}

export function viewOf(definition: Definition, plan: Plan): View {
  const isGraph = definition.dialect === dialectName;
  const graph = isGraph ? decodeSource(definition.source) : graphOf(definition, plan);
  return { graph, index: plan.index, parts: graph.jobs.map((job) => partOf(job, isGraph)) };
}

/** The texts for a task without a run: a single call of a handler. */
export function loosePart(step: string, labels: readonly string[]): NodeTexts {
  return partOf({ ...plainJob(step, ""), required_labels: [...labels] }, false);
}

function partOf(job: GraphJob, command: boolean): NodeTexts {
  const retry = JSON.stringify({ max_retries: job.max_retries, backoff: job.backoff });
  const rest = `,"required_labels":${JSON.stringify(job.required_labels)},"retry_policy":${retry},"attempt":`;
  const text = JSON.stringify(job.command);
  return {
    ids: `"job_id":${JSON.stringify(job.id)},"workflow_id":`,
    before: command ? `,"command":${text}${rest}` : rest,
    inputHead: command ? `{"command":${text},"upstream":` : null,
    after: `,"kind":"${kindOf(job, command)}"${job.timeout_secs === null ? "" : `,"timeout_secs":${job.timeout_secs}`}`,
  };
}

/** A command is a shell command only when the author of a workflow-graph definition has written it as one. */
function kindOf(job: GraphJob, command: boolean): JobKind {
  return command && readCommand(job.command).kind === "shell" ? "shell" : "handler";
}

/** Shows any plan as jobs, from any dialect. */
function graphOf(definition: Definition, plan: Plan): GraphSource {
  const jobs = plan.nodes.map((node): GraphJob => {
    const base = { ...plainJob(node.id, commandText(node)), depends_on: node.after.map((at) => plan.nodes[at]?.id ?? "") };
    if (node.kind !== "task") return base;
    const { endMs } = node.timeouts;
    return {
      ...base,
      required_labels: [...(node.lanes[0]?.labels ?? [])],
      max_retries: node.retry.failures,
      max_lost_leases: node.retry.lost === "as-failure" ? node.retry.failures : node.retry.lost,
      backoff: wireBackoff(node.retry.backoff),
      timeout_secs: endMs === undefined ? null : Math.ceil(endMs / 1_000),
      priority: node.priority,
    };
  });
  return { name: definition.name, trigger: "", jobs };
}

function commandText(node: PlanNode): string {
  if (node.kind === "task") return `@${node.lanes[0]?.name ?? ""}`;
  return node.kind === "run" ? `run ${node.workflow ?? node.id}` : node.kind;
}

/** The wire has whole seconds and three kinds of policies; any other policy is shown by its first delay. */
function wireBackoff(backoff: Backoff): WireBackoff {
  const delaySecs = Math.ceil(backoff.delayMs / 1_000);
  if (backoff.kind === "exponential") return { Exponential: { base_secs: delaySecs, max_secs: Math.ceil((backoff.maxMs ?? 0) / 1_000) } };
  return delaySecs === 0 ? "None" : { Fixed: { delay_secs: delaySecs } };
}
