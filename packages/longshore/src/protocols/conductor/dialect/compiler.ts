// Makes the nodes of a definition. Each task is one node under its reference name. Before a JOIN that does not follow a FORK_JOIN, there is one more
// node. It starts the JOIN, which then waits for its tasks.
//
// A list of tasks is a chain. A task that branches continues from the ends of its branches: the task after a SWITCH waits for any of its
// cases to end, because only one is ever taken.
//
// A DO_WHILE is a join that waits for the end of its last iteration. Each iteration is a chain, the evaluation of the condition, and a node that
// leads to the next iteration or to the end.

import { type Sliced, sliceItems } from "../../../core/slices/slice-work.ts";
import type { InstantNode, JoinNode, PlanNode } from "../../../engine/run/plan.ts";
import { compileValue } from "./expression.ts";
import { iterationsAtFirst } from "./iterations.ts";
import { bad, type Common, impossible, inputOf, isForWorkers, leafOf, nothing, systemNode } from "./leaf.ts";
import { type Growth, inIteration, type Loop, Loops, type Within } from "./loops.ts";
import type { WorkflowTask } from "./model.ts";
import { choosesByScript, operatorOf } from "./operators.ts";
import type { ConductorTemplate, SwitchTemplate } from "./template.ts";

/** A JOIN, or, with `otherwise`, an EXCLUSIVE_JOIN. */
interface Joining {
  readonly at: number;
  joinOn: readonly string[];
  readonly otherwise: readonly string[] | null;
  readonly within: Within | null;
}

export class Compiler {
  readonly #nodes: PlanNode[] = [];
  readonly #index = new Map<string, number>();
  readonly loops = new Loops();
  readonly #joins: Joining[] = [];
  readonly #forks = new Map<string, { at: number; join: number }>();
  /** The iteration that is being compiled. */
  #within: Within | null = null;
  /** The tasks that are being compiled come from the data of a run. */
  #isData = false;
  readonly #starters = new Map<number, number[]>();
  /** The number of nodes at which this slice ends. */
  #sliceEnd = sliceItems;
  /** True when all branches of each FORK_JOIN end before the task after it. Then the task at the end of the chain ends last. */
  joinsEverything = true;

  /** The tasks that joins wait for are set only at the end, because they may come later in the definition. */
  finish(): PlanNode[] {
    for (const joining of this.#joins) {
      const { at, joinOn, otherwise } = joining;
      const node = this.#nodes[at] as JoinNode;
      if (otherwise !== null) {
        const joined = this.#known(joinOn, joining);
        const defaults = this.#known(otherwise, joining);
        const output: ConductorTemplate = { kind: "exclusive-join-output", joined, defaults };
        this.#nodes[at] = { ...node, after: [...new Set([...joined, ...defaults])], output };
        continue;
      }
      const after = this.#known(joinOn, joining);
      const unknown = joinOn.find((name) => this.#indexIn(name, joining) === undefined);
      if (unknown !== undefined) throw bad(`JOIN ${node.id} joins on ${unknown}, which is not a task of this definition.`);
      this.#nodes[at] = { ...node, after, output: { kind: "join-output", joined: after } satisfies ConductorTemplate };
    }
    return this.#nodes;
  }

  #known(names: readonly string[], joining: Joining): number[] {
    return names.map((name) => this.#indexIn(name, joining)).filter((at) => at !== undefined);
  }

  /** The node of a name: in a loop, that of the same iteration. */
  #indexIn(name: string, { within }: Joining): number | undefined {
    const inside = within === null ? undefined : this.#index.get(inIteration(name, within.iteration));
    return inside ?? this.#index.get(name);
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
      id: this.#idOf(task.taskReferenceName),
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
        return yield* this.#loop(task, common);
      case "JOIN":
      case "EXCLUSIVE_JOIN":
        return this.#join(task, common, place.begun);
      default:
        return [this.#add(leafOf(task, common, this.#isData), task.taskReferenceName)];
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

  /** `ref` is the reference name of the task, for a node that people see. */
  #add(node: PlanNode, ref: string | null = null): number {
    // A fork may get other tasks in a later life of its run. The earlier ones keep their places.
    if (this.#index.has(node.id) && !this.#isData) throw bad(`Two tasks have the reference name ${node.id}.`);
    const at = this.#nodes.push(node) - 1;
    this.#index.set(node.id, at);
    if (this.#within !== null) this.loops.place(at, this.#within, ref);
    return at;
  }

  #idOf(ref: string): string {
    return this.#within === null ? ref : inIteration(ref, this.#within.iteration);
  }

  #hidden(id: string, parts: Partial<InstantNode> & { after: readonly number[] }): number {
    const waitsFor = parts.after.length > 1 ? ("any" as const) : ("done" as const);
    const node = { origin: null, ...unseen, kind: "instant" as const, input: nothing, output: nothing, timeouts: {}, waitsFor, ...parts };
    return this.#add({ ...node, id: this.#hiddenId("", id) });
  }

  /** The tasks of a fork, or more iterations of a loop, behind all other nodes. */
  *grow(growth: Growth): Sliced<void> {
    if ("loop" in growth) {
      const loop = this.loops.named(growth.loop);
      if (loop !== undefined) yield* this.#iterate(loop, growth.upTo);
      return;
    }
    const fork = this.#forks.get(growth.fork);
    if (fork === undefined) return;
    this.#isData = true;
    this.#within = this.loops.of(fork.at) ?? null;
    const starts: number[] = [];
    for (const task of growth.tasks) {
      starts.push(this.#nodes.length);
      yield* this.chain([task], [], true);
    }
    this.#isData = false;
    this.#within = null;
    starts.push(fork.join);
    this.#nodes[fork.at] = { ...(this.#nodes[fork.at] as InstantNode), starts };
    this.#startedBy(fork.at, starts);
    const join = this.#joins.find(({ at }) => at === fork.join);
    if (join !== undefined) join.joinOn = growth.joinOn;
    this.#nodes[fork.join] = { ...(this.#nodes[fork.join] as JoinNode), input: { kind: "join-input", joinOn: growth.joinOn } };
  }

  /** Without tasks yet: a run brings them when it reaches the fork. */
  #dynamicFork(task: WorkflowTask, common: Common, next: WorkflowTask | undefined): number[] {
    if (next?.type !== "JOIN") {
      const wrong = impossible("Dynamic join definition is not followed by a join task.  Check the workflow definition.");
      return [this.#add({ ...common, kind: "instant", input: wrong, output: nothing, timeouts: {} }, task.taskReferenceName)];
    }
    const part = (which: "grows" | "input"): ConductorTemplate => ({
      ...{ kind: "forked", part: which, id: common.id, task, input: inputOf(task, null) },
    });
    const node = { ...common, kind: "instant" as const, grows: part("grows"), input: part("input"), output: nothing, timeouts: {} };
    const join = this.#nodes.length + 1;
    const at = this.#add({ ...node, starts: [join], skipsWith: [join] }, task.taskReferenceName);
    this.#startedBy(at, [join]);
    this.#forks.set(common.id, { at, join });
    return [];
  }

  *#loop(task: WorkflowTask, common: Common): Sliced<number[]> {
    this.joinsEverything = false;
    const ref = task.taskReferenceName;
    const gate = this.#hidden(`${beforePrefix}${ref}`, { ...common, origin: null });
    const input = inputOf(task, null);
    const at = this.#add({
      ...{
        id: common.id,
        onFailure: common.onFailure,
        origin: task,
        kind: "join",
        after: [],
        threshold: 1,
        waitsFor: "settled",
        demanded: true,
        skipsWith: [gate],
      },
      ...{ input: { kind: "input", ...input }, output: { kind: "loop-output", loop: ref, input }, timeouts: {} },
    } as JoinNode);
    const { _items } = task.inputParameters;
    const items = task.items !== undefined ? compileValue(task.items) : _items === undefined ? null : compileValue(_items);
    const loop: Loop = { ref, at, task, items, ends: [], turns: [], conditions: [], bodies: [] };
    this.loops.add(loop);
    const before = this.#nodes.length;
    // A list may be empty, so a loop over one also decides before its first iteration.
    const first = items === null ? [] : [this.#turn(loop, 0, [], { demanded: true })];
    this.#nodes[gate] = { ...(this.#nodes[gate] as InstantNode), starts: [at, before], skipsWith: [at] };
    this.#startedBy(gate, [at, before]);
    yield* this.#iterate(loop, iterationsAtFirst, first[0]);
    return [at];
  }

  /** Adds iterations up to this number. The turn of the last one before leads to the first new one. */
  *#iterate(loop: Loop, upTo: number, first?: number): Sliced<void> {
    let turn = first ?? this.#turns.get(loop.ref);
    for (let iteration = loop.bodies.length + 1; iteration <= upTo; iteration++) {
      loop.bodies.push([]);
      const head = this.#nodes.length;
      this.#within = { loop, iteration };
      let exits = yield* this.chain(loop.task.loopOver ?? [], [], true);
      if (loop.task.loopCondition) {
        const input: ConductorTemplate = { kind: "loop-condition", loop: loop.ref, iteration, input: inputOf(loop.task, null) };
        const common: Common = { id: "", after: exits, waitsFor: exits.length > 1 ? "any" : "done", onFailure: "end", origin: loop.task };
        const work = { ...systemNode(loop.task, common, null, input), ...unseen, id: this.#hiddenId(afterPrefix, this.#idOf(loop.ref)) };
        loop.conditions[iteration] = this.#add(work);
        exits = [loop.conditions[iteration] as number];
      }
      if (turn !== undefined) this.#leads(turn, head);
      turn = this.#turn(loop, iteration, exits, {});
      this.#within = null;
    }
    if (turn !== undefined) this.#turns.set(loop.ref, turn);
    const node = this.#nodes[loop.at] as JoinNode;
    this.#nodes[loop.at] = { ...node, after: loop.ends.filter((end) => end !== undefined) };
  }

  readonly #turns = new Map<string, number>();

  /** The node that decides what follows an iteration, and the node that ends the loop after it. */
  #turn(loop: Loop, iteration: number, after: readonly number[], parts: { demanded?: boolean }): number {
    const about = { loop: loop.ref, iteration };
    const id = inIteration(loop.ref, iteration);
    const within = this.#within;
    this.#within = { loop, iteration };
    const grows = { grows: { kind: "more-iterations", ...about } satisfies ConductorTemplate };
    const at = this.#hidden(`turn ${id}`, { after, onFailure: "end", ...parts, ...grows });
    const end = this.#hidden(`end ${id}`, { after: [], demanded: true, onFailure: "end" });
    this.#within = within;
    loop.ends[iteration] = end;
    loop.turns[iteration] = at;
    const choice = {
      by: { kind: "loop-turn", ...about } satisfies ConductorTemplate,
      cases: new Map<string, number[]>(),
      otherwise: [end],
    };
    this.#nodes[at] = { ...(this.#nodes[at] as InstantNode), choice };
    this.#startedBy(at, [end]);
    return at;
  }

  #leads(turn: number, head: number): void {
    const { choice, grows: _grows, ...node } = this.#nodes[turn] as InstantNode;
    if (choice !== undefined) this.#nodes[turn] = { ...node, choice: { ...choice, cases: new Map([["go", [head]]]) } };
    this.#startedBy(turn, [head]);
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
    const node = { ...common, kind: "instant" as const, input: part("input"), output: part("output"), timeouts: {} };
    return [this.#add(node, task.taskReferenceName), part("case")];
  }

  /** The case is the value of an expression: a task that the server evaluates, and a node after it that chooses. */
  #evaluated(task: WorkflowTask, common: Common, template: SwitchTemplate): [at: number, by: ConductorTemplate] {
    const fresh = template.input.parameters.kind === "constant" ? {} : { freshInput: true };
    const evaluation = systemNode(task, { ...common, ...fresh }, null, { kind: "input", ...template.input });
    const work = this.#add({ ...evaluation, skipsWith: [this.#nodes.length + 1] }, task.taskReferenceName);
    const gate = { id: this.#hiddenId(afterPrefix, common.id), onFailure: common.onFailure, origin: null, ...unseen };
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
    const at = this.#add({ ...common, kind: "instant", input, output: nothing, timeouts: {} }, task.taskReferenceName);
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
    const skipsWith = joined ? { skipsWith: [this.#nodes.length] } : {};
    if (joined) starts.push(this.#nodes.length);
    this.#nodes[at] = { ...(this.#nodes[at] as InstantNode), starts, ...skipsWith };
    this.#startedBy(at, starts);
    return joined ? [] : [at];
  }

  #join(task: WorkflowTask, common: Common, begun: boolean): number[] {
    const joinOn = task.joinOn ?? [];
    const isExclusive = task.type === "EXCLUSIVE_JOIN";
    const otherwise = isExclusive ? (task.defaultExclusiveJoinTask ?? []) : null;
    const input: ConductorTemplate = { kind: "join-input", joinOn, ...(otherwise === null ? {} : { otherwise }) };
    if (!begun || isExclusive) {
      const gate = this.#add({
        ...common,
        origin: null,
        id: this.#hiddenId(beforePrefix, common.id),
        ...unseen,
        kind: "instant",
        input: nothing,
        output: nothing,
        timeouts: {},
        starts: [this.#nodes.length + 1],
      });
      this.#startedBy(gate, [this.#nodes.length]);
    }
    const at = this.#add(
      {
        ...common,
        kind: "join",
        after: [],
        waitsFor: "settled",
        demanded: true,
        ...(isExclusive ? { threshold: 1 } : {}),
        input,
        output: nothing,
        timeouts: {},
      },
      task.taskReferenceName,
    );
    this.#joins.push({ at, joinOn: [...new Set(joinOn)], otherwise, within: this.#within });
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

const forkTypes = new Set(["FORK_JOIN", "FORK_JOIN_DYNAMIC"]);
