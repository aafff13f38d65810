// The lane of a worker's task. A lane has the name of Conductor's queue: the domain, a colon and the task's type, or only the type.

import { isObject, type Json } from "../../../core/json/json.ts";
import { shown } from "../../../core/text.ts";
import { laneOf } from "../../../engine/board/lanes.ts";
import type { Lane } from "../../../engine/board/task.ts";
import type { Dialect, Needs, Scope, Unplaced } from "../../../engine/run/dialect.ts";
import type { Placement, TaskNode } from "../../../engine/run/plan.ts";
import { domainsOf } from "./domains.ts";
import { javaText } from "./java-text.ts";
import { workerTypeOf } from "./leaf.ts";
import type { TaskDef, WorkflowTask } from "./model.ts";
import { isUnserved, operatorOf } from "./operators.ts";
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
  const { taskToDomain } = settingsOf(scope.run);
  if (task.type === "DYNAMIC") return placeDynamic(task, input, scope, taskToDomain);
  if (taskToDomain === undefined || Object.keys(taskToDomain).length === 0) return { placement: null };
  return { placement: { ...placed(node), lanes: lanesFor(workerTypeOf(task), taskToDomain), polledMs } };
};

function placed({ lanes, priority, retry, limits, delayMs, holdMs }: TaskNode): Placement {
  return { lanes, priority, retry, limits, delayMs, holdMs };
}

function placeDynamic(
  task: WorkflowTask,
  input: Json,
  scope: Scope,
  taskToDomain: Settings["taskToDomain"],
): { placement: Placement } | Needs | Unplaced {
  const found = dynamicDefinition(task, input, scope);
  if (!("definition" in found)) return found;
  const { name, definition } = found;
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
  // No worker polls for an operator: the task would wait without an end.
  if ((operatorOf(name) ?? "SIMPLE") !== "SIMPLE" || isUnserved(name)) {
    const failed = `Cannot map a dynamic task: ${name} is an operator, and this server starts only tasks of workers dynamically`;
    return { failed, fault: "unmade" };
  }
  const own = task.taskDefinition;
  if (own !== undefined && !isBare(own)) return { name, definition: own };
  const document = scope.document(documentKinds.task, name);
  if (document === undefined) return { needs: [], documents: [{ kind: documentKinds.task, name }] };
  return { name, definition: isObject(document) ? (document as unknown as TaskDef) : bareTaskDef(name) };
}
