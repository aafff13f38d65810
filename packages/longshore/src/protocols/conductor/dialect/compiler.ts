// Makes the nodes of a definition. Each task is one node under its reference name; JOIN and DO_WHILE have more (compiled-joins.ts,
// compiled-loops.ts).
//
// A list of tasks is a chain. After a branch, the chain continues from the ends of all branches. The task after a SWITCH waits for any of
// its cases to end, because only one is taken.

import { type Sliced, sliceItems } from "../../../core/slices/slice-work.ts";
import type { InstantNode } from "../../../engine/run/plan.ts";
import { CompiledJoins } from "./compiled-joins.ts";
import { CompiledLoops } from "./compiled-loops.ts";
import { afterPrefix, CompiledNodes, unseen } from "./compiled-nodes.ts";
import { bad, type Common, impossible, inputOf, isForWorkers, leafOf, nothing, systemNode } from "./leaf.ts";
import type { Growth } from "./loops.ts";
import type { WorkflowTask } from "./model.ts";
import { choosesByScript, operatorOf } from "./operators.ts";
import type { ConductorTemplate, SwitchTemplate } from "./template.ts";

export class Compiler {
  readonly #nodes = new CompiledNodes();
  readonly #joins = new CompiledJoins(this.#nodes);
  readonly #loops = new CompiledLoops(this.#nodes, (tasks) => this.chain(tasks, [], true));
  readonly #forks = new Map<string, { at: number; join: number }>();
  /** The number of nodes at which this slice ends. */
  #sliceEnd = sliceItems;
  /** True when all branches of each FORK_JOIN end before the task after it. Then the task at the end of the chain ends last. */
  joinsEverything = true;

  /** All tasks have been added. */
  finish(): CompiledNodes {
    this.#joins.finish();
    return this.#nodes;
  }

  /**
   * Adds tasks one after the other. Returns the nodes from which the chain continues. With `demanded`, another node starts the first task of
   * the chain.
   */
  *chain(tasks: readonly WorkflowTask[], from: readonly number[], demanded: boolean): Sliced<number[]> {
    let exits: number[] = [...from];
    for (const [at, task] of tasks.entries()) {
      if (this.#nodes.list.length >= this.#sliceEnd) {
        this.#sliceEnd = this.#nodes.list.length + sliceItems;
        yield;
      }
      const begun = forkTypes.has(tasks[at - 1]?.type ?? "");
      exits = yield* this.#task(task, exits, { demanded: demanded && at === 0, next: tasks[at + 1], begun });
    }
    return exits;
  }

  *#task(
    task: WorkflowTask,
    from: readonly number[],
    place: { demanded: boolean; next: WorkflowTask | undefined; begun: boolean },
  ): Sliced<number[]> {
    const common: Common = {
      id: this.#nodes.idOf(task.taskReferenceName),
      after: from,
      waitsFor: from.length > 1 ? "any" : "done",
      ...(task.startWhen === undefined ? {} : { onFirstPart: this.#streamed(task, from) }),
      ...(place.demanded ? { demanded: true } : {}),
      onFailure: task.optional ? "tolerate" : task.permissive ? "permit" : "end",
      origin: task,
    };
    switch (operatorOf(task.type)) {
      case "SWITCH":
      case "DECISION":
        return yield* this.#switch(task, common);
      case "FORK_JOIN":
        return yield* this.#fork(task, common, place.next);
      case "FORK_JOIN_DYNAMIC":
        return this.#dynamicFork(task, common, place.next);
      case "DO_WHILE":
        this.joinsEverything = false;
        return yield* this.#loops.add(task, common);
      case "JOIN":
      case "EXCLUSIVE_JOIN":
        return this.#joins.add(task, common, place.begun);
      default:
        return [this.#nodes.add(leafOf(task, common, this.#nodes.isData), task.taskReferenceName)];
    }
  }

  /** Only a worker's task can start when the task before it has sent its first part. The task before may then end later than this one. */
  #streamed(task: WorkflowTask, from: readonly number[]): readonly number[] {
    this.joinsEverything = false;
    const operator = operatorOf(task.type);
    const isWork = isForWorkers(operator);
    if (isWork && from.length > 0) return from;
    throw bad(`Task ${task.taskReferenceName} has startWhen ${task.startWhen}, expected that of work that comes after other tasks.`);
  }

  /** The tasks of a fork, or more iterations of a loop, behind all other nodes. */
  *grow(growth: Growth): Sliced<void> {
    if ("loop" in growth) {
      const loop = this.#nodes.loops.named(growth.loop);
      if (loop !== undefined) yield* this.#loops.iterate(loop, growth.upTo);
      return;
    }
    const fork = this.#forks.get(growth.fork);
    if (fork === undefined) return;
    this.#nodes.isData = true;
    this.#nodes.within = this.#nodes.loops.of(fork.at) ?? null;
    const starts: number[] = [];
    for (const task of growth.tasks) {
      starts.push(this.#nodes.list.length);
      yield* this.chain([task], [], true);
    }
    this.#nodes.isData = false;
    this.#nodes.within = null;
    starts.push(fork.join);
    this.#nodes.list[fork.at] = { ...(this.#nodes.list[fork.at] as InstantNode), starts };
    this.#nodes.startedBy(fork.at, starts);
    this.#joins.waitsFor(fork.join, growth.joinOn);
  }

  /** Without tasks yet: a run brings them when it reaches the fork. */
  #dynamicFork(task: WorkflowTask, common: Common, next: WorkflowTask | undefined): number[] {
    if (next?.type !== "JOIN") {
      const wrong = impossible("Dynamic join definition is not followed by a join task.  Check the workflow definition.");
      return [this.#nodes.add({ ...common, kind: "instant", input: wrong, output: nothing, timeouts: {} }, task.taskReferenceName)];
    }
    const part = (which: "grows" | "input"): ConductorTemplate => ({
      ...{ kind: "forked", part: which, id: common.id, task, input: inputOf(task, null) },
    });
    const node = { ...common, kind: "instant" as const, grows: part("grows"), input: part("input"), output: nothing, timeouts: {} };
    const join = this.#nodes.list.length + 1;
    const at = this.#nodes.add({ ...node, starts: [join], skipsWith: [join] }, task.taskReferenceName);
    this.#nodes.startedBy(at, [join]);
    this.#forks.set(common.id, { at, join });
    return [];
  }

  *#switch(task: WorkflowTask, common: Common): Sliced<number[]> {
    const isDecision = task.type === "DECISION";
    // A DECISION with a case that has no tasks continues with its default.
    const cases = Object.entries(task.decisionCases ?? {}).filter(([, branch]) => !isDecision || branch.length > 0);
    const defaultCase = task.defaultCase ?? [];
    const template: SwitchTemplate = {
      input: inputOf(task, null),
      key: (isDecision ? task.caseValueParam : task.expression) ?? "",
      isDecision,
      known: new Set(cases.map(([key]) => key)),
      full: new Set(cases.filter(([, branch]) => branch.length > 0).map(([key]) => key)),
      otherwise: defaultCase.length > 0,
    };
    const [at, by] = choosesByScript(task) ? this.#evaluated(task, common, template) : this.#compared(task, common, template);
    const exits = [at];
    const heads = new Map<string, number[]>();
    for (const [key, tasks] of cases) heads.set(key, yield* this.#branch(at, tasks, exits));
    const otherwise = yield* this.#branch(at, defaultCase, exits);
    this.#nodes.list[at] = { ...(this.#nodes.list[at] as InstantNode), choice: { by, cases: heads, otherwise } };
    // When every case has tasks, the chain never continues from the SWITCH itself. It is still in the list, because a retry may choose another
    // case.
    return exits;
  }

  /** The case is a value of the input, so the node itself chooses. */
  #compared(task: WorkflowTask, common: Common, template: SwitchTemplate): [at: number, by: ConductorTemplate] {
    const part = (which: "input" | "output" | "case"): ConductorTemplate =>
      template.isDecision || task.evaluatorType === "value-param"
        ? { kind: "switch", part: which, switch: template }
        : impossible(`No evaluator registered for type: ${task.evaluatorType ?? null}`);
    const node = { ...common, kind: "instant" as const, input: part("input"), output: part("output"), timeouts: {} };
    return [this.#nodes.add(node, task.taskReferenceName), part("case")];
  }

  /** The case is the value of an expression. A task evaluates it, and a node after this task chooses. */
  #evaluated(task: WorkflowTask, common: Common, template: SwitchTemplate): [at: number, by: ConductorTemplate] {
    const fresh = template.input.parameters.kind === "constant" ? {} : { freshInput: true };
    const evaluation = systemNode(task, { ...common, ...fresh }, null, { kind: "input", ...template.input });
    const work = this.#nodes.add({ ...evaluation, skipsWith: [this.#nodes.list.length + 1] }, task.taskReferenceName);
    const gate = { id: this.#nodes.hiddenId(afterPrefix, common.id), onFailure: common.onFailure, origin: null, ...unseen };
    const node = { ...gate, after: [work], waitsFor: "done" as const, input: nothing, output: nothing, timeouts: {} };
    return [this.#nodes.add({ ...node, kind: "instant" }), { kind: "selected", of: work }];
  }

  /** Returns the first node of a branch of the switch `at`; adds the ends of the branch to `exits`. */
  *#branch(at: number, tasks: readonly WorkflowTask[], exits: number[]): Sliced<number[]> {
    if (tasks.length === 0) return [];
    const head = this.#nodes.list.length;
    for (const exit of yield* this.chain(tasks, [], true)) exits.push(exit);
    this.#nodes.startedBy(at, [head]);
    return [head];
  }

  *#fork(task: WorkflowTask, common: Common, next: WorkflowTask | undefined): Sliced<number[]> {
    const joined = next?.type === "JOIN";
    const wrong = impossible("Fork task definition is not followed by a join task.  Check the blueprint");
    const input = joined ? ({ kind: "input", ...inputOf(task, null) } as const) : wrong;
    const at = this.#nodes.add({ ...common, kind: "instant", input, output: nothing, timeouts: {} }, task.taskReferenceName);
    const starts: number[] = [];
    const ends: string[] = [];
    for (const branch of task.forkTasks ?? []) {
      if (branch.length === 0) continue;
      starts.push(this.#nodes.list.length);
      yield* this.chain(branch, [], true);
      ends.push(branch.at(-1)?.taskReferenceName ?? "");
      if (branch.at(-1)?.type === "SWITCH") this.joinsEverything = false;
    }
    const joinOn = new Set(next?.joinOn);
    if (!ends.every((name) => joinOn.has(name))) this.joinsEverything = false;
    // The join comes next in the chain, and starts to wait together with the branches.
    const skipsWith = joined ? { skipsWith: [this.#nodes.list.length] } : {};
    if (joined) starts.push(this.#nodes.list.length);
    this.#nodes.list[at] = { ...(this.#nodes.list[at] as InstantNode), starts, ...skipsWith };
    this.#nodes.startedBy(at, starts);
    return joined ? [] : [at];
  }
}

const forkTypes = new Set(["FORK_JOIN", "FORK_JOIN_DYNAMIC"]);
