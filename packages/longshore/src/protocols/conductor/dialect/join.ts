// The input and the result of a JOIN after all its tasks have ended, and of an EXCLUSIVE_JOIN after one of them has.

import { type Json, type JsonObject, setOwn } from "../../../core/json/json.ts";
import { isOpen, type TaskRow } from "../../../engine/board/task.ts";
import type { Resolved, Scope } from "../../../engine/run/dialect.ts";
import type { Plan, PlanNode } from "../../../engine/run/plan.ts";
import { attemptIdOf } from "./ids.ts";
import { reasonOf } from "./reasons.ts";
import { outputOf, statusOf, workflowTaskOf } from "./records.ts";

export function joinOutput(plan: Plan, joined: readonly number[], scope: Scope): Resolved {
  const lacking = joined.filter((at) => scope.record(at) === undefined);
  if (lacking.length > 0) return { needs: [], records: lacking };
  const output: JsonObject = {};
  const forgiven: string[] = [];
  for (const at of joined) {
    const node = plan.nodes[at] as PlanNode;
    const record = scope.record(at);
    if (!record || isOpen(record.state)) continue;
    const status = statusOf(node, record);
    const given = outputOf(node, record);
    if (Object.keys(given).length > 0) setOwn(output, node.id, given);
    if (status === "COMPLETED_WITH_ERRORS") forgiven.push(nameOf(node, record));
    // Stops at the first failure: later tasks in the list are not collected.
    else if (status !== "COMPLETED" && status !== "SKIPPED") return { failed: reasonOf(node, record) ?? "", fault: "failed", output };
  }
  return forgiven.length > 0 ? { value: output, warning: `${forgiven.join(", ")} completed with errors` } : { value: output };
}

export function joinInput({ joinOn, otherwise }: { joinOn: readonly string[]; otherwise?: readonly string[] }): Json {
  return { joinOn: [...joinOn], ...(otherwise === undefined ? {} : { defaultExclusiveJoinTask: [...otherwise] }) };
}

/** The output of the first task that has run and ended, in the order of the names; otherwise that of the first default. */
export function exclusiveJoinOutput(
  plan: Plan,
  { joined, defaults }: { readonly joined: readonly number[]; readonly defaults: readonly number[] },
  scope: Scope,
): Resolved {
  const all = [...joined, ...defaults];
  const lacking = all.filter((at) => scope.record(at) === undefined);
  if (lacking.length > 0) return { needs: [], records: lacking };
  const at = firstOf(joined, scope) ?? firstOf(defaults, scope);
  const record = at === undefined ? undefined : scope.record(at);
  if (at === undefined || !record) return { value: {} };
  const node = plan.nodes[at] as PlanNode;
  const output = outputOf(node, record);
  const status = statusOf(node, record);
  if (status === "COMPLETED" || status === "COMPLETED_WITH_ERRORS") return { value: output };
  return { failed: reasonOf(node, record) ?? "", fault: "failed", output };
}

function firstOf(nodes: readonly number[], scope: Scope): number | undefined {
  return nodes.find((at) => {
    const state = scope.record(at)?.state;
    return state !== undefined && !isOpen(state) && state !== "skipped" && state !== "forgotten";
  });
}

function nameOf(node: PlanNode, record: TaskRow): string {
  return `${workflowTaskOf(node)?.name ?? node.id}/${attemptIdOf(record.id, record.attempt)}`;
}
