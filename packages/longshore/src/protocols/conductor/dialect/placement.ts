// The lane of a worker's task. A lane has the name of Conductor's queue: the domain, a colon and the task's type, or only the type.

import { isObject, type Json } from "../../../core/json/json.ts";
import { shown } from "../../../core/text.ts";
import { laneOf } from "../../../engine/board/lanes.ts";
import type { LimitKey } from "../../../engine/board/limits.ts";
import type { Lane } from "../../../engine/board/task.ts";
import type { Dialect, Needs, Placed, Scope, Unplaced } from "../../../engine/run/dialect.ts";
import type { EndNode, InstantNode, Placement, TaskNode, WaitNode } from "../../../engine/run/plan.ts";
import { rootFrom } from "../../../engine/run/run.ts";
import { domainsOf } from "./domains.ts";
import { javaText } from "./java-text.ts";
import { leafOf, workerTypeOf } from "./leaf.ts";
import type { TaskDef, WorkflowTask } from "./model.ts";
import { callLane, callSlots, isUnserved, mockedLane, operatorOf, systemLaneOf } from "./operators.ts";
import { placementOf, timeoutsOf } from "./policy.ts";
import { dynamicNameOf } from "./records.ts";
import { documentKinds, type Settings, settingsOf } from "./settings.ts";
import { bareTaskDef, isBare, nameFault } from "./task-def.ts";

/** A domain counts when one of its workers polled within this time (`activeWorkerLastPollTimeout`). */
const polledMs = 10_000;
/** The entry of a list of domains that means no domain. */
const noDomain = "NO_DOMAIN";

/** The name of the lane that a task type is queued on and polled from. */
export function laneName(taskType: string, domain: string | undefined): string {
  return domain === undefined ? taskType : `${domain}:${taskType}`;
}

function laneFor(taskType: string, domain: string | null): Lane {
  return laneOf(laneName(taskType, domain || undefined), []);
}

/** In order of preference. The last is used when no worker polls the others. */
function lanesFor(taskType: string, taskToDomain: Settings["taskToDomain"]): Lane[] {
  const named = taskToDomain !== undefined && Object.hasOwn(taskToDomain, taskType) ? taskToDomain[taskType] : taskToDomain?.["*"];
  const domains = domainsOf(named ?? "");
  if (domains.length === 0) return [laneFor(taskType, null)];
  const isNone = (domain: string) => domain.toUpperCase() === noDomain;
  const lanes = domains.filter((domain) => !isNone(domain)).map((domain) => laneFor(taskType, domain));
  return isNone(domains.at(-1) as string) ? [...lanes, laneFor(taskType, null)] : lanes;
}

export const place: NonNullable<Dialect["place"]> = (_plan, node, input, scope) => {
  const task = node.origin as WorkflowTask;
  const { taskToDomain, mocked = [] } = settingsOf(scope.run);
  const lane = systemLaneOf(task.type);
  if (lane !== undefined && mocked.includes(node.id)) return { placement: { ...placed(node), lanes: [laneOf(mockedLane, [])] } };
  if (lane === callLane) return { placement: { ...placed(node), limits: [...node.limits, callsOf(scope.run)] } };
  if (lane !== undefined) return { placement: null };
  if (task.type === "DYNAMIC") return placeDynamic(node, task, input, scope, taskToDomain);
  if (taskToDomain === undefined || Object.keys(taskToDomain).length === 0) return { placement: null };
  return { placement: { ...placed(node), lanes: lanesFor(workerTypeOf(task), taskToDomain), polledMs } };
};

/** Calls of one family of runs at the same time: servers that answer slowly leave the other half of the slots to other runs. */
function callsOf(run: Scope["run"]): LimitKey {
  return { key: `${callLane} ${rootFrom(run)}`, held: callSlots / 2 };
}

function placed({ lanes, priority, retry, limits, delayMs, holdMs }: TaskNode): Placement {
  return { lanes, priority, retry, limits, delayMs, holdMs };
}

/**
 * Operators that a DYNAMIC task may name, and what it becomes. Its definition has no branches, so a SWITCH or DECISION chooses none.
 */
const dynamicOperators: ReadonlyMap<string, "NOOP" | "SET_VARIABLE" | "TERMINATE" | "WAIT" | "HUMAN"> = new Map([
  ["NOOP", "NOOP"],
  ["SWITCH", "NOOP"],
  ["DECISION", "NOOP"],
  ["SET_VARIABLE", "SET_VARIABLE"],
  ["TERMINATE", "TERMINATE"],
  ["WAIT", "WAIT"],
  ["HUMAN", "HUMAN"],
] as const);

function placeDynamic(
  node: TaskNode,
  task: WorkflowTask,
  input: Json,
  scope: Scope,
  taskToDomain: Settings["taskToDomain"],
): Placed | Needs | Unplaced {
  const found = dynamicDefinition(task, input, scope);
  if (!("definition" in found)) return found;
  const { name, definition } = found;
  const becomes = dynamicOperators.get(name);
  if (becomes !== undefined) {
    const { id, after, waitsFor, onFailure = "end" } = node;
    const common = { id, after, waitsFor: waitsFor === "any" ? waitsFor : ("done" as const), onFailure, origin: task };
    return { becomes: leafOf({ ...task, type: becomes }, common) as InstantNode | WaitNode | EndNode };
  }
  return { placement: { ...placementOf(task, definition, lanesFor(name, taskToDomain)), timeouts: timeoutsOf(definition), polledMs } };
}

/**
 * The task that a DYNAMIC task resolves to, and its definition: its own, or the one registered under its name. A task without a definition
 * runs without retries.
 */
export function dynamicDefinition(
  task: Pick<WorkflowTask, "dynamicTaskNameParam" | "taskDefinition">,
  input: Json,
  scope: Scope,
): { name: string; definition: TaskDef } | Needs | Unplaced {
  const name = dynamicNameOf(task, input);
  if (name === null) {
    const parameter = task.dynamicTaskNameParam;
    const failed = `Cannot map a dynamic task based on the parameter and input. Parameter= ${parameter}, input= ${javaText(input)}`;
    return { failed, fault: "unmade" };
  }
  const wrong = nameFault(name, `Cannot map a dynamic task: its name ${shown(name)}`);
  if (wrong !== undefined) return { failed: wrong, fault: "unmade" };
  if (dynamicOperators.has(name)) return { name, definition: bareTaskDef(name) };
  // No worker polls for another operator: the task would wait without an end.
  if ((operatorOf(name) ?? "SIMPLE") !== "SIMPLE" || isUnserved(name)) {
    const failed = `Cannot map a dynamic task: ${name} is an operator that this server does not start dynamically`;
    return { failed, fault: "unmade" };
  }
  const own = task.taskDefinition;
  if (own !== undefined && !isBare(own)) return { name, definition: own };
  const document = scope.document(documentKinds.task, name);
  if (document === undefined) return { needs: [], documents: [{ kind: documentKinds.task, name }] };
  return { name, definition: isObject(document) ? (document as unknown as TaskDef) : bareTaskDef(name) };
}
