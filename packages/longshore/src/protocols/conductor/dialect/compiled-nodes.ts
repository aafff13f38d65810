// The nodes of a definition that is being compiled: their list, their names, and what starts them.

import type { InstantNode, PlanNode } from "../../../engine/run/plan.ts";
import { bad, nothing } from "./leaf.ts";
import { inIteration, Loops, type Within } from "./loops.ts";

/** The prefixes of ids of nodes that are not tasks of the definition. */
export const beforePrefix = "before ";
export const afterPrefix = "after ";

export const unseen = { hidden: true, placeless: true } as const;

export class CompiledNodes {
  readonly list: PlanNode[] = [];
  readonly loops = new Loops();
  /** The iteration that is being compiled. */
  within: Within | null = null;
  /** The tasks that are being compiled come from the data of a run. */
  isData = false;
  readonly #index = new Map<string, number>();
  readonly #starters = new Map<number, number[]>();

  /** `ref` is the reference name of the task, for a node that people see. */
  add(node: PlanNode, ref: string | null = null): number {
    // A fork may get other tasks in a later life of its run. The earlier ones keep their places.
    if (this.#index.has(node.id) && !this.isData) throw bad(`Two tasks have the reference name ${node.id}.`);
    const at = this.list.push(node) - 1;
    this.#index.set(node.id, at);
    if (this.within !== null) this.loops.place(at, this.within, ref);
    return at;
  }

  idOf(ref: string): string {
    return this.within === null ? ref : inIteration(ref, this.within.iteration);
  }

  hidden(id: string, fields: Partial<InstantNode> & { after: readonly number[] }): number {
    const waitsFor = fields.after.length > 1 ? ("any" as const) : ("done" as const);
    const node = { origin: null, ...unseen, kind: "instant" as const, input: nothing, output: nothing, timeouts: {}, waitsFor, ...fields };
    return this.add({ ...node, id: this.hiddenId("", id) });
  }

  hiddenId(prefix: string, name: string): string {
    let id = `${prefix}${name}`;
    while (this.#index.has(id)) id += "'";
    return id;
  }

  startedBy(at: number, started: readonly number[]): void {
    for (const node of started) {
      const known = this.#starters.get(node);
      if (known === undefined) this.#starters.set(node, [at]);
      else known.push(at);
    }
  }

  /** The node of a name: in a loop, that of the same iteration. */
  indexIn(name: string, within: Within | null): number | undefined {
    const inside = within === null ? undefined : this.#index.get(inIteration(name, within.iteration));
    return inside ?? this.#index.get(name);
  }

  /** For the search of cycles: the nodes that must have started before this one, besides those it waits for. */
  startersOf(at: number): readonly number[] {
    return this.#starters.get(at) ?? [];
  }
}
