// Random Conductor definitions, and a simple reference model: which tasks must have begun, given the records of the others.

import { isOpen, type TaskRow } from "../../src/engine/board/task.ts";
import { isRunOpen, type Run } from "../../src/engine/run/run.ts";
import { Skips } from "../../src/engine/run/skips.ts";
import type { Random } from "../faults/random.ts";
import type { Known } from "./orders.ts";

/** A task of a definition, with the fields that are generated here. */
export interface PlanTask {
  readonly name: string;
  readonly taskReferenceName: string;
  readonly type: string;
  readonly optional?: boolean;
  readonly permissive?: boolean;
  readonly joinOn?: string[];
  readonly forkTasks?: PlanTask[][];
  readonly decisionCases?: { readonly [key: string]: PlanTask[] };
  readonly defaultCase?: PlanTask[];
  /** The tasks of a loop, and how many iterations it has. */
  readonly loopOver?: PlanTask[];
  readonly times?: number;
  /** In an unfolded plan. */
  readonly iterations?: PlanTask[][];
  readonly [field: string]: unknown;
}

/** The task types that workers poll. */
export const lanes: readonly string[] = ["t0", "t1"];
/** What a SWITCH may be given; it has branches for some of them. */
export const keys: readonly string[] = ["a", "b", "z"];

/** `child` names the workflow that SUB_WORKFLOW tasks start; without it there are none. With `grows` there are loops and dynamic forks. */
export function makePlan(random: Random, child: string | null, grows = false): PlanTask[] {
  let inLoop = false;
  let count = 0;
  const named = (type: string, more: object = {}): PlanTask => {
    const name = `${type.toLowerCase()}${count++}`;
    return { name, taskReferenceName: name, type, ...more };
  };
  const forgiving = () => (random.chance(0.15) ? { optional: true } : random.chance(0.15) ? { permissive: true } : {});
  const list = (size: number, depth: number): PlanTask[] => Array.from({ length: random.between(1, size) }, () => tasks(depth)).flat();
  const tasks = (depth: number): PlanTask[] => {
    if (grows && depth > 0 && !inLoop && random.chance(0.2)) return [loop(depth)];
    if (grows && random.chance(0.12)) return dynamicFork();
    const drawn = random.next();
    if (depth > 0 && drawn < 0.22) {
      const forkTasks = Array.from({ length: random.between(1, 3) }, () => list(2, depth - 1));
      const joinOn = forkTasks.map((branch) => branch.at(-1)?.taskReferenceName ?? "").filter(() => random.chance(0.8));
      return [named("FORK_JOIN", { forkTasks }), named("JOIN", { joinOn })];
    }
    if (depth > 0 && drawn < 0.44) {
      const cases = Object.fromEntries(keys.filter(() => random.chance(0.5)).map((key) => [key, list(2, depth - 1)]));
      const decisionCases = Object.keys(cases).length === 0 ? { a: list(2, depth - 1) } : cases;
      const choice = { evaluatorType: "value-param", expression: "key", inputParameters: { key: "${workflow.input.key}" } };
      return [named("SWITCH", { ...choice, decisionCases, defaultCase: random.chance(0.5) ? list(2, depth - 1) : [] })];
    }
    if (child !== null && drawn < 0.58) return [named("SUB_WORKFLOW", { subWorkflowParam: { name: child }, ...forgiving() })];
    if (drawn < 0.66) return [named("WAIT", forgiving())];
    if (drawn < 0.72) return [named("NOOP")];
    if (drawn < 0.75) return [named("TERMINATE", { inputParameters: { terminationStatus: random.pick(["COMPLETED", "FAILED"]) } })];
    return [{ ...named("SIMPLE", { retryCount: random.between(0, 1), ...forgiving() }), name: random.pick(lanes) as string }];
  };
  const loop = (depth: number): PlanTask => {
    inLoop = true;
    const times = random.between(0, 3);
    const inputParameters = { _items: Array.from({ length: times }, (_, at) => at) };
    const made = named("DO_WHILE", { inputParameters, times, loopOver: list(2, depth - 1) });
    inLoop = false;
    return made;
  };
  const dynamicFork = (): PlanTask[] => {
    const forked = Array.from({ length: random.between(0, 2) }, () => {
      const name = `forked${count++}`;
      const isChild = child !== null && random.chance(0.3);
      if (isChild) return { name, taskReferenceName: name, type: "SUB_WORKFLOW", subWorkflowParam: { name: child } };
      return { name: random.pick(lanes) as string, taskReferenceName: name, type: "SIMPLE" };
    });
    const params = { dynamicForkTasksParam: "tasks", dynamicForkTasksInputParamName: "inputs" };
    const fork = named("FORK_JOIN_DYNAMIC", { ...params, inputParameters: { tasks: forked, inputs: {} } });
    return [fork, named("JOIN")];
  };
  return list(3, 2);
}

export function* everyTask(tasks: readonly PlanTask[]): Generator<PlanTask> {
  for (const task of tasks) {
    yield task;
    const { decisionCases = {}, defaultCase = [], forkTasks = [], loopOver = [], iterations = [] } = task;
    yield* everyTask([...Object.values(decisionCases), defaultCase, ...forkTasks, loopOver, ...iterations].flat());
  }
}

/** The tasks with their names in an iteration, and with those that dynamic forks get. */
export function unfolded(tasks: readonly PlanTask[], iteration?: number): PlanTask[] {
  const named = (name: string) => (iteration === undefined ? name : `${name}__${iteration}`);
  let forked: PlanTask[] = [];
  return tasks.map((task) => {
    const { type, decisionCases, defaultCase, forkTasks, loopOver, times = 0, joinOn } = task;
    const each = (list: readonly PlanTask[]) => unfolded(list, iteration);
    const joined = type === "JOIN" && joinOn === undefined ? forked.map(({ taskReferenceName }) => taskReferenceName) : joinOn;
    if (type === "FORK_JOIN_DYNAMIC") forked = (task.inputParameters as { tasks: PlanTask[] }).tasks;
    return {
      ...task,
      taskReferenceName: named(task.taskReferenceName),
      ...(joined === undefined ? {} : { joinOn: joined.map(named) }),
      ...(decisionCases && { decisionCases: Object.fromEntries(Object.entries(decisionCases).map(([key, list]) => [key, each(list)])) }),
      ...(defaultCase && { defaultCase: each(defaultCase) }),
      ...(type === "FORK_JOIN_DYNAMIC" ? { forkTasks: each(forked).map((one) => [one]) } : forkTasks && { forkTasks: forkTasks.map(each) }),
      ...(loopOver && { loopOver: [], iterations: Array.from({ length: times }, (_, at) => unfolded(loopOver, at + 1)) }),
    };
  });
}

/** The fault of a run that has nothing left to decide, as a text; null when there is none. `records` are the newest, by reference name. */
export function faultIn(
  plan: readonly PlanTask[],
  run: Run,
  records: ReadonlyMap<string, TaskRow>,
  known: Pick<Known, "isReported">,
): string | null {
  const skips = new Skips(run);
  const faults: string[] = [];
  const begun = new Set<string>();
  const isSkipped = (record: TaskRow) => skips.has(record.node);
  /** Its run has continued with later steps. */
  const isSettled = (task: PlanTask, joining: boolean): boolean => {
    const record = records.get(task.taskReferenceName);
    if (record === undefined || !begun.has(task.taskReferenceName)) return false;
    if (record.state === "done" || isSkipped(record)) return true;
    // A step that waited for its child again after it was done.
    if (record.lane === null && record.streamed) return !joining;
    const alone = ["failed", "cancelled", "cancelling"].includes(record.state) && record.fault !== null;
    return alone && (task.optional === true || task.permissive === true);
  };
  const all = new Map([...everyTask(plan)].map((task) => [task.taskReferenceName, task]));
  /** True when the end of the list is reached. */
  const walk = (tasks: readonly PlanTask[]): boolean => {
    for (const task of tasks) {
      const { taskReferenceName: name, type } = task;
      begun.add(name);
      const record = records.get(name);
      if (record === undefined) {
        if (run.state === "running" || run.state === "succeeded") faults.push(`${name} has not begun`);
        return false;
      }
      if (type === "JOIN" && !isSkipped(record)) {
        const unsettled = (joining: boolean) => (task.joinOn ?? []).filter((joined) => !isSettled(all.get(joined) as PlanTask, joining));
        if (isOpen(record.state) && unsettled(true).length === 0) faults.push(`${name} waits for nothing`);
        const isEarly = record.state === "done" && unsettled(false).length > 0 && !known.isReported(record);
        if (isEarly) faults.push(`${name} has not waited for ${unsettled(false)}`);
      }
      // The next iteration begins after the one before, also when a report has ended the loop itself.
      if (!isSkipped(record)) (task.iterations ?? []).every(walk);
      if (!isSettled(task, false)) return false;
      if (isSkipped(record)) continue;
      if (type === "TERMINATE") {
        if (isRunOpen(run.state)) faults.push(`${name} has not ended the run`);
        return false;
      }
      const key = type === "SWITCH" ? String((JSON.parse(record.input) as { key?: unknown }).key) : "";
      if (type === "SWITCH" && !walk(task.decisionCases?.[key] ?? task.defaultCase ?? [])) return false;
      for (const branch of task.forkTasks ?? []) walk(branch);
    }
    return true;
  };
  const isThrough = walk(plan);
  const isEnded = [...records.values()].some(({ step, state }) => all.get(step)?.type === "TERMINATE" && state === "done");
  if (run.state === "succeeded" && !isEnded && !isThrough) faults.push("it has succeeded before its end");
  if (run.state === "succeeded" && isEnded) return null;
  for (const [name, record] of records)
    if (all.has(name) && !begun.has(name) && !isSkipped(record)) faults.push(`${name} should not have begun`);
  return faults.length === 0 ? null : faults.join(", ");
}
