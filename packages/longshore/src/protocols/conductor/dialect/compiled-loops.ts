// The loops of a definition that is being compiled. A DO_WHILE is a join that waits for the end of its last iteration. An iteration is a
// chain, the evaluation of the condition, and a node that leads to the next iteration or to the end.

import type { Sliced } from "../../../core/slices/slice-work.ts";
import type { InstantNode, JoinNode } from "../../../engine/run/plan.ts";
import { afterPrefix, beforePrefix, type CompiledNodes, unseen } from "./compiled-nodes.ts";
import { compileValue } from "./expression.ts";
import { iterationsAtFirst } from "./iterations.ts";
import { type Common, inputOf, systemNode } from "./leaf.ts";
import { inIteration, type Loop } from "./loops.ts";
import type { WorkflowTask } from "./model.ts";
import type { ConductorTemplate } from "./template.ts";

export class CompiledLoops {
  readonly #nodes: CompiledNodes;
  /** Adds the tasks of an iteration. Returns the nodes that end it. */
  readonly #chain: (tasks: readonly WorkflowTask[]) => Sliced<number[]>;
  /** The node after the last iteration, by the reference name of the loop. */
  readonly #turns = new Map<string, number>();

  constructor(nodes: CompiledNodes, chain: (tasks: readonly WorkflowTask[]) => Sliced<number[]>) {
    this.#nodes = nodes;
    this.#chain = chain;
  }

  *add(task: WorkflowTask, common: Common): Sliced<number[]> {
    const ref = task.taskReferenceName;
    const gate = this.#nodes.hidden(`${beforePrefix}${ref}`, { ...common, origin: null });
    const input = inputOf(task, null);
    const at = this.#nodes.add({
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
    this.#nodes.loops.add(loop);
    const before = this.#nodes.list.length;
    // A list may be empty, so a loop over one also decides before its first iteration.
    const first = items === null ? [] : [this.#turn(loop, 0, [], { demanded: true })];
    this.#nodes.list[gate] = { ...(this.#nodes.list[gate] as InstantNode), starts: [at, before], skipsWith: [at] };
    this.#nodes.startedBy(gate, [at, before]);
    yield* this.iterate(loop, iterationsAtFirst, first[0]);
    return [at];
  }

  /** Adds iterations up to this number. The turn of the last one before leads to the first new one. */
  *iterate(loop: Loop, upTo: number, first?: number): Sliced<void> {
    let turn = first ?? this.#turns.get(loop.ref);
    for (let iteration = loop.bodies.length + 1; iteration <= upTo; iteration++) {
      loop.bodies.push([]);
      const head = this.#nodes.list.length;
      this.#nodes.within = { loop, iteration };
      let exits = yield* this.#chain(loop.task.loopOver ?? []);
      if (loop.task.loopCondition) {
        const input: ConductorTemplate = { kind: "loop-condition", loop: loop.ref, iteration, input: inputOf(loop.task, null) };
        const common: Common = { id: "", after: exits, waitsFor: exits.length > 1 ? "any" : "done", onFailure: "end", origin: loop.task };
        const work = {
          ...systemNode(loop.task, common, null, input),
          ...unseen,
          id: this.#nodes.hiddenId(afterPrefix, this.#nodes.idOf(loop.ref)),
        };
        loop.conditions[iteration] = this.#nodes.add(work);
        exits = [loop.conditions[iteration] as number];
      }
      if (turn !== undefined) this.#leads(turn, head);
      turn = this.#turn(loop, iteration, exits, {});
      this.#nodes.within = null;
    }
    if (turn !== undefined) this.#turns.set(loop.ref, turn);
    const node = this.#nodes.list[loop.at] as JoinNode;
    this.#nodes.list[loop.at] = { ...node, after: loop.ends.filter((end) => end !== undefined) };
  }

  /** The node that decides what follows an iteration, and the node that ends the loop after it. */
  #turn(loop: Loop, iteration: number, after: readonly number[], fields: { demanded?: boolean }): number {
    const about = { loop: loop.ref, iteration };
    const id = inIteration(loop.ref, iteration);
    const within = this.#nodes.within;
    this.#nodes.within = { loop, iteration };
    const grows = { grows: { kind: "more-iterations", ...about } satisfies ConductorTemplate };
    const at = this.#nodes.hidden(`turn ${id}`, { after, onFailure: "end", ...fields, ...grows });
    const end = this.#nodes.hidden(`end ${id}`, { after: [], demanded: true, onFailure: "end" });
    this.#nodes.within = within;
    loop.ends[iteration] = end;
    loop.turns[iteration] = at;
    const choice = {
      by: { kind: "loop-turn", ...about } satisfies ConductorTemplate,
      cases: new Map<string, number[]>(),
      otherwise: [end],
    };
    this.#nodes.list[at] = { ...(this.#nodes.list[at] as InstantNode), choice };
    this.#nodes.startedBy(at, [end]);
    return at;
  }

  #leads(turn: number, head: number): void {
    const { choice, grows: _grows, ...node } = this.#nodes.list[turn] as InstantNode;
    if (choice !== undefined) this.#nodes.list[turn] = { ...node, choice: { ...choice, cases: new Map([["go", [head]]]) } };
    this.#nodes.startedBy(turn, [head]);
  }
}
