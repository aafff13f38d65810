// The graph of FlowKit's fault test and its expected output: the batches of each node by name, with their items.
//
//   u makes batches of three items; d cuts them into two and one while u continues; e takes them as they are; j takes what d and e made, and
//   s adds up what d counted.
import { dedupIds } from "../../src/protocols/flowkit/wire/hash.ts";

export interface Shape {
  /** Batches that u makes. */
  readonly batches: number;
  /** How long each batch of each node takes. */
  readonly ms: number;
}

const BATCH_ITEMS = 3;
const PIECE_ITEMS = 2;

export type Roles = Record<"make" | "cut" | "take" | "join", string>;

export function graphOf({ batches, ms }: Shape, roles: Roles): Record<string, unknown> {
  const policy = { max: 50, backoff_sec: 0.1, lost: 1_000 };
  const streaming = (node_id: string, type: string, from: string[], adapter: string, args: Record<string, unknown>) => ({
    node_id,
    type,
    depends_on: from,
    retry_policy: policy,
    io: { start_when: "first_batch", input_inline: { ms, input_adapter: adapter, input_args: { from_nodes: from, poll_ms: 50, ...args } } },
  });
  return {
    nodes: [
      { node_id: "u", type: roles.make, retry_policy: policy, io: { input_inline: { batches, size: BATCH_ITEMS, ms } } },
      streaming("d", roles.cut, ["u"], "pull.from_artifacts.rechunk:size", { size: PIECE_ITEMS, meta_list_key: "skus" }),
      streaming("e", roles.take, ["u"], "pull.from_artifacts", {}),
      streaming("j", roles.join, ["d", "e"], "pull.from_artifacts", {}),
      { node_id: "s", type: "coordinator_fn", depends_on: ["d"], io: { fn: "metrics.aggregate", fn_args: { node_id: "d" } } },
    ],
  };
}

/** The items of one batch of u. */
export function itemsOf(index: number): string[] {
  return Array.from({ length: BATCH_ITEMS }, (_, at) => `item-${index * BATCH_ITEMS + at}`);
}

/** For each node: the items of each batch. */
export function expectedOf({ batches }: Shape): Map<string, Map<string, readonly string[]>> {
  const u = new Map<string, readonly string[]>();
  for (let index = 0; index < batches; index++) u.set(`b${index}`, itemsOf(index));
  const made = new Map([["u", u]]);
  for (const [reader, source] of reads) {
    const batches = [...(made.get(source) ?? [])].flatMap(([uid, items]) => [...madeOf(reader, source, uid, items)]);
    made.set(reader, new Map([...(made.get(reader) ?? []), ...batches]));
  }
  return made;
}

/** The source of each reader. */
export const reads: readonly (readonly [reader: string, source: string])[] = [
  ["d", "u"],
  ["e", "u"],
  ["j", "d"],
  ["j", "e"],
];

/** The batches that a reader makes of one batch of its source. */
export function madeOf(reader: string, source: string, uid: string, items: readonly string[]): Map<string, readonly string[]> {
  if (reader === "j") return new Map([[`${source}:${uid}`, items]]);
  if (reader === "e") return new Map([[uid, items]]);
  const pieces = Array.from({ length: Math.ceil(items.length / PIECE_ITEMS) }, (_, piece) => piece);
  return new Map(pieces.map((piece) => [dedupIds.chunk(source, uid, piece), items.slice(piece * PIECE_ITEMS, (piece + 1) * PIECE_ITEMS)]));
}

/** The expected sum of s. */
export function sumOf({ batches }: Shape): number {
  return batches * BATCH_ITEMS;
}
