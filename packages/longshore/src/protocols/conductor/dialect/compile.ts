// Compiles a definition, with its task definitions in it, into a plan. Each task is one node under its reference name. Before a JOIN that
// does not follow a FORK_JOIN, there is one more node. It starts the JOIN, which then waits for its tasks.
//
// A list of tasks is a chain. A task that branches continues from the ends of its branches: the task after a SWITCH waits for any of its
// cases to end, because only one is ever taken.

import { parseInSlices } from "../../../core/json/json-slices.ts";
import type { JsonSchema } from "../../../core/schema/json-schema.ts";
import { mapInSlices, type Sliced, sliceItems } from "../../../core/slices/slice-work.ts";
import { findCycle, type InstantNode, makePlanInSlices, nodesMax, type Plan, type PlanNode } from "../../../engine/run/plan.ts";
import { compileValue } from "./expression.ts";
import { bad, type Common, impossible, inputOf, isForWorkers, leafOf, nothing, systemNode } from "./leaf.ts";
import type { WorkflowDef, WorkflowTask } from "./model.ts";
import { choosesByScript, operatorOf } from "./operators.ts";
import type { ConductorTemplate, SwitchTemplate } from "./template.ts";

export const dialectName = "conductor";

/** `source` is JSON text of a WorkflowDef that was read by `parseWorkflowDef` and completed by `snapshot`. */
export function* compileSource(source: string): Sliced<Plan> {
  return yield* compileInSlices((yield* parseInSlices(source)) as WorkflowDef);
}

export function* compileInSlices(definition: WorkflowDef): Sliced<Plan> {
  const compiler = new Compiler();
  const exits = yield* compiler.chain(definition.tasks, [], false);
  const nodes = compiler.finish();
  if (nodes.length > nodesMax) throw bad(`Workflow ${definition.name} has ${nodes.length} steps, at most ${nodesMax} are allowed.`);
  const waits = yield* mapInSlices(nodes, ({ id, after }, at) => ({ id, after: [...after, ...compiler.startersOf(at)] }));
  const cycle = findCycle(waits);
  if (cycle !== null) throw bad(`Workflow ${definition.name} waits in a circle: ${cycle.join(" -> ")}.`);
  const timed = definition.timeoutPolicy === "TIME_OUT_WF" && definition.timeoutSeconds > 0;
  return yield* makePlanInSlices({
    dialect: dialectName,
    nodes,
    output: outputOf(definition, compiler.joinsEverything && exits.length === 1 ? (exits[0] ?? null) : null),
    timeoutMs: timed ? definition.timeoutSeconds * 1_000 : null,
    outputAlways: true,
    successor: definition.failureWorkflow !== undefined && definition.failureWorkflow !== "",
    keepsCounting: true,
    reopensParent: true,
    waitsTakeReports: true,
    inputForm: inputFormOf(definition),
    origin: definition,
  });
}

/** A definition names its inputs, and may have values for some of them; it has no types. */
function inputFormOf({ inputParameters, inputTemplate }: WorkflowDef): JsonSchema | undefined {
  const names = new Set([...inputParameters, ...Object.keys(inputTemplate)]);
  if (names.size === 0) return undefined;
  const fields = [...names].map((name) => [name, Object.hasOwn(inputTemplate, name) ? { default: inputTemplate[name] } : {}]);
  return { type: "object", properties: Object.fromEntries(fields) };
}

function outputOf(definition: WorkflowDef, last: number | null): ConductorTemplate {
  const { outputParameters } = definition;
  const parameters = Object.keys(outputParameters).length === 0 ? null : compileValue(outputParameters);
  return { kind: "run-output", parameters, last };
}

class Compiler {
  readonly #nodes: PlanNode[] = [];
  readonly #index = new Map<string, number>();
  readonly #joins: { at: number; joinOn: readonly string[] }[] = [];
  readonly #starters = new Map<number, number[]>();
  /** The number of nodes at which this slice ends. */
  #sliceEnd = sliceItems;
  /** True when all branches of each FORK_JOIN end before the task after it. Then the task at the end of the chain ends last. */
  joinsEverything = true;

  /** The tasks that joins wait for are set only at the end, because they may come later in the definition. */
  finish(): PlanNode[] {
    for (const { at, joinOn } of this.#joins) {
      const after = joinOn.map((name) => {
        const joined = this.#index.get(name);
        if (joined === undefined) throw bad(`JOIN ${this.#nodes[at]?.id} joins on ${name}, which is not a task of this definition.`);
        return joined;
      });
      const output: ConductorTemplate = { kind: "join-output", joined: after };
      this.#nodes[at] = { ...(this.#nodes[at] as PlanNode & { kind: "join" }), after, output };
    }
    return this.#nodes;
  }

  /** For the search of cycles: the nodes that must have started before this one, besides those it waits for. */
  startersOf(at: number): readonly number[] {
    return this.#starters.get(at) ?? [];
  }

  /**
   * Adds tasks one after the other. Returns the nodes from which the chain continues. With `demanded`, another node starts the first task of
   * the chain.
   */
  *chain(tasks: readonly WorkflowTask[], from: readonly number[], demanded: boolean): Sliced<number[]> {
    let exits: number[] = [...from];
    for (const [at, task] of tasks.entries()) {
      if (this.#nodes.length >= this.#sliceEnd) {
        this.#sliceEnd = this.#nodes.length + sliceItems;
        yield;
      }
      const begun = tasks[at - 1]?.type === "FORK_JOIN";
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
      id: task.taskReferenceName,
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
      case "JOIN":
        return this.#join(task, common, place.begun);
      default:
        return [this.#add(leafOf(task, common))];
    }
  }

  /**
   * Only a worker's task can start when the task before it has sent its first part. The task before may then end later, so the task at the
   * end of the chain may not be the last one to end.
   */
  #streamed(task: WorkflowTask, from: readonly number[]): readonly number[] {
    this.joinsEverything = false;
    const operator = operatorOf(task.type);
    const isWork = isForWorkers(operator);
    if (isWork && from.length > 0) return from;
    throw bad(`Task ${task.taskReferenceName} has startWhen ${task.startWhen}, expected that of work that comes after other tasks.`);
  }

  #add(node: PlanNode): number {
    if (this.#index.has(node.id)) throw bad(`Two tasks have the reference name ${node.id}.`);
    const at = this.#nodes.push(node) - 1;
    this.#index.set(node.id, at);
    return at;
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
    this.#nodes[at] = { ...(this.#nodes[at] as InstantNode), choice: { by, cases: heads, otherwise } };
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
    const at = this.#add({ ...common, kind: "instant", input: part("input"), output: part("output"), timeouts: {} });
    return [at, part("case")];
  }

  /** The case is the value of an expression: a task that the server evaluates, and a node after it that chooses. */
  #evaluated(task: WorkflowTask, common: Common, template: SwitchTemplate): [at: number, by: ConductorTemplate] {
    const fresh = template.input.parameters.kind === "constant" ? {} : { freshInput: true };
    const work = this.#add(systemNode(task, { ...common, ...fresh }, null, { kind: "input", ...template.input }));
    const gate = { id: this.#hiddenId(afterPrefix, task.taskReferenceName), onFailure: common.onFailure, origin: null, ...unseen };
    const node = { ...gate, after: [work], waitsFor: "done" as const, input: nothing, output: nothing, timeouts: {} };
    return [this.#add({ ...node, kind: "instant" }), { kind: "selected", of: work }];
  }

  /** Returns the first node of a branch of the switch `at`; adds the ends of the branch to `exits`. */
  *#branch(at: number, tasks: readonly WorkflowTask[], exits: number[]): Sliced<number[]> {
    if (tasks.length === 0) return [];
    const head = this.#nodes.length;
    for (const exit of yield* this.chain(tasks, [], true)) exits.push(exit);
    this.#startedBy(at, [head]);
    return [head];
  }

  *#fork(task: WorkflowTask, common: Common, next: WorkflowTask | undefined): Sliced<number[]> {
    const joined = next?.type === "JOIN";
    const wrong = impossible("Fork task definition is not followed by a join task.  Check the blueprint");
    const input = joined ? ({ kind: "input", ...inputOf(task, null) } as const) : wrong;
    const at = this.#add({ ...common, kind: "instant", input, output: nothing, timeouts: {} });
    const starts: number[] = [];
    const ends: string[] = [];
    for (const branch of task.forkTasks ?? []) {
      if (branch.length === 0) continue;
      starts.push(this.#nodes.length);
      yield* this.chain(branch, [], true);
      ends.push(branch.at(-1)?.taskReferenceName ?? "");
      if (branch.at(-1)?.type === "SWITCH") this.joinsEverything = false;
    }
    const joinOn = new Set(next?.joinOn);
    if (!ends.every((name) => joinOn.has(name))) this.joinsEverything = false;
    // The join comes next in the chain, and starts to wait together with the branches.
    if (joined) starts.push(this.#nodes.length);
    this.#nodes[at] = { ...(this.#nodes[at] as InstantNode), starts };
    this.#startedBy(at, starts);
    return joined ? [] : [at];
  }

  #join(task: WorkflowTask, common: Common, begun: boolean): number[] {
    const joinOn = task.joinOn ?? [];
    if (!begun) {
      const gate = this.#add({
        ...common,
        origin: null,
        id: this.#hiddenId(beforePrefix, task.taskReferenceName),
        ...unseen,
        kind: "instant",
        input: nothing,
        output: nothing,
        timeouts: {},
        starts: [this.#nodes.length + 1],
      });
      this.#startedBy(gate, [this.#nodes.length]);
    }
    const at = this.#add({
      ...common,
      kind: "join",
      after: [],
      waitsFor: "settled",
      demanded: true,
      input: { kind: "join-input", joinOn } satisfies ConductorTemplate,
      output: nothing,
      timeouts: {},
    });
    this.#joins.push({ at, joinOn: [...new Set(joinOn)] });
    return [at];
  }

  #hiddenId(prefix: string, name: string): string {
    let id = `${prefix}${name}`;
    while (this.#index.has(id)) id += "'";
    return id;
  }

  #startedBy(at: number, started: readonly number[]): void {
    for (const node of started) {
      const known = this.#starters.get(node);
      if (known === undefined) this.#starters.set(node, [at]);
      else known.push(at);
    }
  }
}

/** The prefixes of ids of nodes that are not tasks of the definition. */
const beforePrefix = "before ";
const afterPrefix = "after ";

const unseen = { hidden: true, placeless: true } as const;

/** A node of the plan without a task of the definition; it is not shown. */
export function isGate(plan: Plan, at: number): boolean {
  return plan.nodes[at]?.origin === null;
}
