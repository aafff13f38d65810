// Graphs that the tests of this folder submit, and their results.
import type { Operator } from "./operator.ts";
import type { GraphNode } from "./python.ts";

export const PULL = "pull.from_artifacts";
export const RECHUNK = "pull.from_artifacts.rechunk:size";

/** A node that makes `batches` of `size` items each. */
export const makes = (
  node_id: string,
  type: string,
  input: { batches: number; size: number; ms?: number; linger_ms?: number },
): GraphNode => ({
  node_id,
  type,
  io: { input_inline: input },
});

/** A node that reads the output of another node while that node still works. */
export const streams = (node_id: string, type: string, from: string, adapter: string, args: Record<string, unknown> = {}): GraphNode => ({
  node_id,
  type,
  depends_on: [from],
  io: { start_when: "first_batch", input_inline: { input_adapter: adapter, input_args: { from_node: from, poll_ms: 25, ...args } } },
});

export const items = (count: number): string[] => Array.from({ length: count }, (_, index) => `item-${index}`);

/** The items that a node has counted, in the order of its batches. */
export async function skusOf(operator: Operator, id: string, node: string): Promise<string[]> {
  return (await operator.artifacts(id, node)).flatMap(({ meta }) => meta.skus);
}
