// Longer definitions: more iterations of a loop, and the tasks that a FORK_JOIN_DYNAMIC gets from its run.

import { createHash } from "node:crypto";
import { isObject, isScalar, type Json, type JsonObject, setOwn } from "../../../core/json/json.ts";
import { writeExact } from "../../../core/json/json-exact.ts";
import type { Resolved, Scope } from "../../../engine/run/dialect.ts";
import { type Grown, nodesMax, type Plan } from "../../../engine/run/plan.ts";
import { javaText } from "./java-text.ts";
import { type GrownDef, type Growth, growthOf, type Loop, withoutGrowth } from "./loops.ts";
import type { TaskDef, WorkflowTask } from "./model.ts";
import { definitionOf } from "./records.ts";
import { documentKinds } from "./settings.ts";
import { snapshot } from "./snapshot.ts";
import { parseTasks } from "./workflow-def.ts";

/** Twice as many iterations, or as many as a plan has room for. */
export function moreIterations(plan: Plan, loop: Loop): Resolved {
  const upTo = loop.bodies.length;
  const nodesEach = Math.ceil((plan.nodes.length - loop.at) / upTo);
  const more = Math.min(upTo, Math.floor((nodesMax - plan.nodes.length) / nodesEach));
  if (more < 1)
    return { failed: `DO_WHILE ${loop.ref} has reached ${upTo} iterations, and a run has at most ${nodesMax} steps`, fault: "final" };
  const growth = growthOf(plan).filter((one) => !("loop" in one && one.loop === loop.ref && one.upTo > upTo));
  return grownBy(plan, [...growth, { loop: loop.ref, upTo: upTo + more }]);
}

function grownBy(plan: Plan, grown: readonly Growth[]): Resolved {
  const source = writeExact({ ...withoutGrowth(definitionOf(plan)), grown } satisfies GrownDef as unknown as Json);
  const hash = createHash("sha256").update(source).digest("hex").slice(0, 32);
  const own = grown.some((one) => "fork" in one);
  return { value: { hash, source, own } satisfies Grown };
}

/** The tasks of a fork, from its input. Fails with Conductor's texts. */
export function forkedTasks(plan: Plan, fork: { id: string; task: WorkflowTask }, input: JsonObject, scope: Scope): Resolved {
  const wanted = "forkTaskInputs" in input ? tasksOfInputs(fork.task, input) : tasksOfParams(fork.task, input);
  if ("failed" in wanted) return { failed: wanted.failed, fault: "unmade" };
  const { joinOn } = wanted;
  const checked = parseTasks(distinct(wanted.tasks), "forkedTasks");
  if ("violations" in checked) return { failed: checked.violations.map(({ message }) => message).join("; "), fault: "unmade" };
  const branching = checked.value.find(({ type }) => branchingTypes.has(type));
  if (branching !== undefined) {
    const failed = `FORK_JOIN_DYNAMIC cannot start ${branching.taskReferenceName} of type ${branching.type}: start a SUB_WORKFLOW that contains it`;
    return { failed, fault: "unmade" };
  }
  const taken = checked.value.find(({ taskReferenceName }) => isTaken(plan, fork.id, taskReferenceName));
  if (taken !== undefined) {
    const failed = `No dynamic tasks could be created for the Workflow: ${definitionOf(plan).name}, attempted to create a duplicate task reference name: ${taken.taskReferenceName}`;
    return { failed, fault: "unmade" };
  }
  const named = new Map<string, TaskDef>();
  const lacking: string[] = [];
  for (const { name } of checked.value) {
    const document = scope.document(documentKinds.task, name);
    if (document === undefined) lacking.push(name);
    else if (isObject(document)) named.set(name, document as unknown as TaskDef);
  }
  if (lacking.length > 0) return { needs: [], documents: lacking.map((name) => ({ kind: documentKinds.task, name })) };
  // The definition of a task may give secrets to workers, so one that comes with the data of a run does not count.
  const bare = checked.value.map(({ taskDefinition: _own, ...task }) => task as WorkflowTask);
  const { tasks } = snapshot({ ...definitionOf(plan), tasks: bare }, named);
  return { value: { tasks, joinOn } as unknown as Json };
}

/** Null when the definition has these tasks already. */
export function grownFork(plan: Plan, id: string, tasks: Json, joinOn: Json): Resolved {
  const last = growthOf(plan).findLast((one) => "fork" in one && one.fork === id);
  const growth = { fork: id, tasks, joinOn };
  if (last !== undefined && writeExact(last as unknown as Json) === writeExact(growth)) return { value: null };
  return grownBy(plan, [...growthOf(plan), growth as unknown as Growth]);
}

function isTaken(plan: Plan, fork: string, ref: string): boolean {
  const own = growthOf(plan).some((one) => "fork" in one && one.fork === fork && one.tasks.some((task) => task.taskReferenceName === ref));
  return !own && plan.index.has(ref);
}

/** Types with tasks of their own: a definition that comes with the data of a run is one list of tasks. */
const branchingTypes = new Set(["SWITCH", "DECISION", "FORK_JOIN", "FORK_JOIN_DYNAMIC", "JOIN", "EXCLUSIVE_JOIN", "DO_WHILE", "DYNAMIC"]);

type Wanted = { tasks: JsonObject[]; joinOn: string[] } | { failed: string };

function tasksOfParams(task: WorkflowTask, input: JsonObject): Wanted {
  const param = task.dynamicForkTasksParam ?? "";
  const inputsParam = task.dynamicForkTasksInputParamName ?? "";
  const given = input[param];
  if (!Array.isArray(given) || !given.every((one) => isObject(one) && typeof (one as JsonObject).taskReferenceName === "string"))
    return { failed: `Input '${param}' is invalid. Cannot deserialize a list of Workflow Tasks from '${javaText(given ?? null)}'` };
  const inputs = input[inputsParam] ?? null;
  if (!isObject(inputs))
    return { failed: `Input to the dynamically forked tasks is not a map -> expecting a map of K,V  but found ${javaText(inputs)}` };
  const tasks = (given as JsonObject[]).map((one) => {
    const own = (inputs as JsonObject)[one.taskReferenceName as string];
    const before = isObject(one.inputParameters) ? (one.inputParameters as JsonObject) : {};
    return { ...one, inputParameters: { ...before, ...(isObject(own) ? (own as JsonObject) : {}) } };
  });
  return { tasks, joinOn: tasks.map((one) => lastRef(one)) };
}

function lastRef(task: JsonObject): string {
  return task.taskReferenceName as string;
}

/** `forkTaskInputs`: the same task for each of a list of inputs. */
function tasksOfInputs(task: WorkflowTask, input: JsonObject): Wanted {
  const { forkTaskInputs, forkTaskWorkflow, forkTaskWorkflowVersion } = input;
  if (!Array.isArray(forkTaskInputs))
    return { failed: `Input 'forkTaskInputs' is invalid. Expected a list, found '${javaText(forkTaskInputs ?? null)}'` };
  const isChild = typeof forkTaskWorkflow === "string" && forkTaskWorkflow !== "";
  const type = isChild ? "SUB_WORKFLOW" : typeof input.forkTaskType === "string" ? input.forkTaskType : "SIMPLE";
  const given = typeof input.forkTaskName === "string" && input.forkTaskName !== "" ? input.forkTaskName : null;
  const name = given ?? task.taskReferenceName;
  const version = Number(javaText(forkTaskWorkflowVersion ?? null));
  const tasks = forkTaskInputs.map((one, index): JsonObject => {
    const parameters: JsonObject = isScalar(one) || Array.isArray(one) ? { input: one } : { ...(one as JsonObject) };
    setOwn(parameters, "__index", index);
    const made: JsonObject = {
      name: isChild && given === null ? (forkTaskWorkflow as string) : name,
      taskReferenceName: `_${name}_${index}`,
      type,
    };
    if (isChild) made.subWorkflowParam = { name: forkTaskWorkflow as string, ...(Number.isInteger(version) ? { version } : {}) };
    if (task.optional) made.optional = true;
    return { ...made, inputParameters: parameters };
  });
  return { tasks, joinOn: tasks.map(lastRef) };
}

/** The first of several tasks with the same reference name. */
function distinct(tasks: readonly JsonObject[]): JsonObject[] {
  const seen = new Set<string>();
  return tasks.filter((task) => {
    const ref = task.taskReferenceName as string;
    if (seen.has(ref)) return false;
    seen.add(ref);
    return true;
  });
}
