// Steps of a run that a caller has ordered to be skipped. Their records exist from the order on. Whether the run has reached such a step is
// stored here.

import type { Run } from "./run.ts";

/** The JSON text in the run. A run of an earlier version has only the list of nodes; all of them count as reached. */
type Kept = readonly number[] | { readonly nodes: readonly number[]; readonly reached: readonly number[] };

export class Skips {
  /** For each skipped node, whether the run has reached it. Created on demand, because few runs have such nodes. */
  #reached: Map<number, boolean> | null = null;

  constructor({ skips }: Pick<Run, "skips">) {
    if (skips === null) return;
    const kept = JSON.parse(skips) as Kept;
    const [nodes, reached] = "nodes" in kept ? [kept.nodes, new Set(kept.reached)] : [kept, new Set(kept)];
    this.#reached = new Map(nodes.map((node) => [node, reached.has(node)]));
  }

  has(node: number): boolean {
    return this.#reached?.has(node) === true;
  }

  /** Whether the run has reached the step, and continued with the steps after it. */
  isReached(node: number): boolean {
    return this.#reached?.get(node) === true;
  }

  add(node: number): void {
    this.#reached ??= new Map();
    this.#reached.set(node, false);
  }

  reach(node: number): void {
    if (this.has(node)) this.#reached?.set(node, true);
  }

  /** Marks these nodes as not reached. */
  leave(nodes: Iterable<number>): void {
    if (this.#reached !== null) for (const node of nodes) if (this.has(node)) this.#reached.set(node, false);
  }

  /** Returns false when there was no such order. */
  delete(node: number): boolean {
    return this.#reached?.delete(node) === true;
  }

  clear(): void {
    this.#reached = null;
  }

  get text(): string | null {
    if (this.#reached === null || this.#reached.size === 0) return null;
    const nodes = [...this.#reached.keys()];
    return JSON.stringify({ nodes, reached: nodes.filter((node) => this.isReached(node)) });
  }
}
