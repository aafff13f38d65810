// Longer definitions: more iterations of a loop, and the tasks that a FORK_JOIN_DYNAMIC gets from its run.

import { createHash } from "node:crypto";
import { isObject, isScalar, type Json, type JsonObject, setOwn } from "../../../core/json/json.ts";
import { writeExact } from "../../../core/json/json-exact.ts";
import { atOnce, mapInSlices, type Sliced, sliceItems } from "../../../core/slices/slice-work.ts";
import type { Needs, Resolved, Scope } from "../../../engine/run/dialect.ts";
import { type Grown, nodesMax, type Plan } from "../../../engine/run/plan.ts";
import { javaText } from "./java-text.ts";
import { type GrownDef, type GrownFork, type Growth, growthOf, type Loop, withoutGrowth } from "./loops.ts";
import type { TaskDef, WorkflowTask } from "./model.ts";
import { definitionOf } from "./records.ts";
import { documentKinds } from "./settings.ts";
import { snapshotInSlices } from "./snapshot.ts";
import { parseTasksInSlices } from "./workflow-def.ts";

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
  const own = grown.some((one) => "fork" in one);
  return { value: { hash: hashOf(source), source, own } satisfies Grown };
}

/** The same for one fork more, which may have thousands of tasks: their texts are written in slices. */
function* grownInSlices(plan: Plan, { tasks, ...fork }: GrownFork): Sliced<Grown> {
  const texts = yield* mapInSlices(tasks, (task) => writeExact(task));
  const last = `${openText(fork)},"tasks":[${texts.join(",")}]}`;
  const grown = [...growthOf(plan).map((one) => writeExact(one)), last];
  yield;
  const source = `${openText(withoutGrowth(definitionOf(plan)))},"grown":[${grown.join(",")}]}`;
  return { hash: hashOf(source), source, own: true };
}

/** The JSON of an object with members, without its closing brace. */
function openText(object: object): string {
  return writeExact(object).slice(0, -1);
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}

/** A FORK_JOIN_DYNAMIC of a plan, and a run that has reached it. */
export class DynamicFork {
  readonly #plan: Plan;
  readonly #id: string;
  readonly #task: WorkflowTask;
  readonly #scope: Scope;

  constructor(plan: Plan, { id, task }: { id: string; task: WorkflowTask }, scope: Scope) {
    this.#plan = plan;
    this.#id = id;
    this.#task = task;
    this.#scope = scope;
  }

  /** The longer definition with the tasks of this input; null when the definition has them already. */
  grown(input: JsonObject): Resolved {
    const from = hashOf(writeExact(input));
    const last = this.#last();
    // The definitions of its tasks may have changed before a later life of the run.
    if (last?.from === from && this.#scope.run.retries === 0) return { value: null };
    const found = this.#tasks(input, from);
    if (!("value" in found)) return found;
    const { tasks, joinOn, key } = found.value as unknown as Wholly;
    if (last !== undefined && textOf(last) === textOf({ tasks, joinOn })) return { value: null };
    const fork: GrownFork = { fork: this.#id, tasks, joinOn, from };
    const grown = this.#work(`grow ${from} ${key}`, tasks.length, () => grownInSlices(this.#plan, fork));
    return "needs" in grown ? grown : { value: grown.value as unknown as Json };
  }

  /** The input of the fork as its record shows it: with its tasks. */
  shown(input: JsonObject): Resolved {
    const from = hashOf(writeExact(input));
    const last = this.#last();
    const found = last?.from === from ? { value: last as unknown as Json } : this.#tasks(input, from);
    if (!("value" in found)) return found;
    const { tasks, joinOn } = found.value as { tasks: Json; joinOn: Json };
    return { value: { ...input, forkedTaskDefs: tasks, forkedTasks: joinOn } };
  }

  #last(): GrownFork | undefined {
    return growthOf(this.#plan).findLast((one): one is GrownFork => "fork" in one && one.fork === this.#id);
  }

  /** The tasks in this input, as `Wholly`. Fails with Conductor's texts. */
  #tasks(input: JsonObject, from: string): Resolved {
    const wanted = "forkTaskInputs" in input ? tasksOfInputs(this.#task, input) : tasksOfParams(this.#task, input);
    if ("failed" in wanted) return { failed: wanted.failed, fault: "unmade" };
    const { joinOn } = wanted;
    const tasks = distinct(wanted.tasks);
    const read = this.#work(`read ${from}`, tasks.length, () => parseTasksInSlices(tasks, "forkedTasks"));
    if ("needs" in read) return read;
    const checked = read.value;
    if ("violations" in checked) return { failed: checked.violations.map(({ message }) => message).join("; "), fault: "unmade" };
    const refused = this.#refusal(checked.value);
    if (refused !== undefined) return { failed: refused, fault: "unmade" };
    const named = new Map<string, TaskDef>();
    const lacking: string[] = [];
    for (const { name } of checked.value) {
      const document = this.#scope.document(documentKinds.task, name);
      if (document === undefined) lacking.push(name);
      else if (isObject(document)) named.set(name, document as unknown as TaskDef);
    }
    if (lacking.length > 0) return { needs: [], documents: lacking.map((name) => ({ kind: documentKinds.task, name })) };
    const definitions = hashOf(writeExact([...named] as unknown as Json));
    const whole = this.#work(`complete ${from} ${definitions}`, tasks.length, () => this.#completed(checked.value, named));
    return "needs" in whole ? whole : { value: { tasks: whole.value, joinOn, key: definitions } satisfies Wholly as unknown as Json };
  }

  #refusal(tasks: readonly WorkflowTask[]): string | undefined {
    const branching = tasks.find(({ type }) => branchingTypes.has(type));
    if (branching !== undefined)
      return `FORK_JOIN_DYNAMIC cannot start ${branching.taskReferenceName} of type ${branching.type}: start a SUB_WORKFLOW that contains it`;
    const own = new Set<string>();
    for (const one of growthOf(this.#plan))
      if ("fork" in one && one.fork === this.#id) for (const { taskReferenceName } of one.tasks) own.add(taskReferenceName);
    const taken = tasks.find(({ taskReferenceName: ref }) => !own.has(ref) && this.#plan.index.has(ref));
    if (taken === undefined) return undefined;
    const { name } = definitionOf(this.#plan);
    return `No dynamic tasks could be created for the Workflow: ${name}, attempted to create a duplicate task reference name: ${taken.taskReferenceName}`;
  }

  *#completed(tasks: readonly WorkflowTask[], named: ReadonlyMap<string, TaskDef>): Sliced<readonly WorkflowTask[]> {
    // The definition of a task may give secrets to workers. So one that comes with the data of a run does not count.
    const bare = tasks.map(({ taskDefinition: _own, ...task }) => task as WorkflowTask);
    return (yield* snapshotInSlices({ ...definitionOf(this.#plan), tasks: bare }, named, new Map())).tasks;
  }

  /** Work on a few tasks is done at once. */
  #work<Made>(key: string, items: number, make: () => Sliced<Made>): { value: Made } | (Needs & { value?: never }) {
    if (items <= sliceItems) return { value: atOnce(make()) };
    const whole = `${this.#id} ${key}`;
    const made = this.#scope.made(whole);
    if (made === undefined) return { needs: [], work: { key: whole, make: make as () => Sliced<Json> } };
    return { value: made as unknown as Made };
  }
}

/** The tasks of a fork with their definitions, which `key` identifies. */
type Wholly = Pick<GrownFork, "tasks" | "joinOn"> & { readonly key: string };

function textOf({ tasks, joinOn }: Pick<GrownFork, "tasks" | "joinOn">): string {
  return writeExact({ tasks, joinOn } as unknown as Json);
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
