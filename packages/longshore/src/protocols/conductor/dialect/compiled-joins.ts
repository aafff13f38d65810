// The joins of a definition that is being compiled. Before a JOIN that does not follow a FORK_JOIN, there is one more node. It starts the JOIN,
// which then waits for its tasks.

import type { JoinNode } from "../../../engine/run/plan.ts";
import { beforePrefix, type CompiledNodes, unseen } from "./compiled-nodes.ts";
import { bad, type Common, nothing } from "./leaf.ts";
import type { Within } from "./loops.ts";
import type { WorkflowTask } from "./model.ts";
import type { ConductorTemplate } from "./template.ts";

/** A JOIN, or, with `otherwise`, an EXCLUSIVE_JOIN. */
interface Joining {
  readonly at: number;
  joinOn: readonly string[];
  readonly otherwise: readonly string[] | null;
  readonly within: Within | null;
}

export class CompiledJoins {
  readonly #nodes: CompiledNodes;
  readonly #joins: Joining[] = [];

  constructor(nodes: CompiledNodes) {
    this.#nodes = nodes;
  }

  add(task: WorkflowTask, common: Common, begun: boolean): number[] {
    const joinOn = task.joinOn ?? [];
    const isExclusive = task.type === "EXCLUSIVE_JOIN";
    const otherwise = isExclusive ? (task.defaultExclusiveJoinTask ?? []) : null;
    const input: ConductorTemplate = { kind: "join-input", joinOn, ...(otherwise === null ? {} : { otherwise }) };
    if (!begun || isExclusive) {
      const gate = this.#nodes.add({
        ...common,
        origin: null,
        id: this.#nodes.hiddenId(beforePrefix, common.id),
        ...unseen,
        kind: "instant",
        input: nothing,
        output: nothing,
        timeouts: {},
        starts: [this.#nodes.list.length + 1],
      });
      this.#nodes.startedBy(gate, [this.#nodes.list.length]);
    }
    const at = this.#nodes.add(
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
    this.#joins.push({ at, joinOn: [...new Set(joinOn)], otherwise, within: this.#nodes.within });
    return [at];
  }

  /** A fork has got its tasks: its join waits for these. */
  waitsFor(at: number, joinOn: readonly string[]): void {
    const join = this.#joins.find((joining) => joining.at === at);
    if (join !== undefined) join.joinOn = joinOn;
    this.#nodes.list[at] = { ...(this.#nodes.list[at] as JoinNode), input: { kind: "join-input", joinOn } };
  }

  /** The tasks that joins wait for are set only at the end, because they may come later in the definition. */
  finish(): void {
    for (const joining of this.#joins) {
      const { at, joinOn, otherwise } = joining;
      const node = this.#nodes.list[at] as JoinNode;
      if (otherwise !== null) {
        const joined = this.#known(joinOn, joining);
        const defaults = this.#known(otherwise, joining);
        const output: ConductorTemplate = { kind: "exclusive-join-output", joined, defaults };
        this.#nodes.list[at] = { ...node, after: [...new Set([...joined, ...defaults])], output };
        continue;
      }
      const after = this.#known(joinOn, joining);
      const unknown = joinOn.find((name) => this.#nodes.indexIn(name, joining.within) === undefined);
      if (unknown !== undefined) throw bad(`JOIN ${node.id} joins on ${unknown}, which is not a task of this definition.`);
      this.#nodes.list[at] = { ...node, after, output: { kind: "join-output", joined: after } satisfies ConductorTemplate };
    }
  }

  #known(names: readonly string[], joining: Joining): number[] {
    return names.map((name) => this.#nodes.indexIn(name, joining.within)).filter((at) => at !== undefined);
  }
}
