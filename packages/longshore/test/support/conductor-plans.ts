// Random Conductor definitions, and a simple reference model: which tasks must have begun, given the records of the others.

import { isOpen, type TaskRow } from "../../src/engine/board/task.ts";
import { isRunOpen, type Run } from "../../src/engine/run/run.ts";
import { Skips } from "../../src/engine/run/skips.ts";
import type { Random } from "../faults/random.ts";

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
  readonly [field: string]: unknown;
}

/** The task types that workers poll. */
export const lanes: readonly string[] = ["t0", "t1"];
/** What a SWITCH may be given; it has branches for some of them. */
export const keys: readonly string[] = ["a", "b", "z"];

/** `child` names the workflow that SUB_WORKFLOW tasks start; without it there are none. */
export function makePlan(random: Random, child: string | null): PlanTask[] {
  let count = 0;
  const named = (type: string, more: object = {}): PlanTask => {
    const name = `${type.toLowerCase()}${count++}`;
    return { name, taskReferenceName: name, type, ...more };
  };
  const forgiving = () => (random.chance(0.15) ? { optional: true } : random.chance(0.15) ? { permissive: true } : {});
  const list = (size: number, depth: number): PlanTask[] => Array.from({ length: random.between(1, size) }, () => tasks(depth)).flat();
  const tasks = (depth: number): PlanTask[] => {
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
  return list(3, 2);
}

export function* everyTask(tasks: readonly PlanTask[]): Generator<PlanTask> {
  for (const task of tasks) {
    yield task;
    yield* everyTask([...Object.values(task.decisionCases ?? {}), task.defaultCase ?? [], ...(task.forkTasks ?? [])].flat());
  }
}

/** The fault of a run that has nothing left to decide, as a text; null when there is none. `records` are the newest, by reference name. */
export function faultIn(plan: readonly PlanTask[], run: Run, records: ReadonlyMap<string, TaskRow>): string | null {
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
        const waiting = (task.joinOn ?? []).filter((joined) => !isSettled(all.get(joined) as PlanTask, true));
        if (isOpen(record.state) && waiting.length === 0) faults.push(`${name} waits for nothing`);
      }
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
