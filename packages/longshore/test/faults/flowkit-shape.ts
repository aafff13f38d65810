// The graph of FlowKit's fault proof, and everything that must come out of it: which batches each node has, by name, with which items.
//
//   u makes batches of three items; d cuts them into two and one while u goes on; e takes them as they are; j takes what d and e made, and
//   s adds up what d counted.
import { dedupIds } from "../../src/protocol/flowkit/hash.ts";

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

/** Items by batch, by node. */
export function expectedOf({ batches }: Shape): Map<string, Map<string, readonly string[]>> {
  const u = new Map<string, readonly string[]>();
  for (let index = 0; index < batches; index++) {
    const items = Array.from({ length: BATCH_ITEMS }, (_, at) => `item-${index * BATCH_ITEMS + at}`);
    u.set(`b${index}`, items);
  }
  const d = new Map<string, readonly string[]>();
  for (const [uid, items] of u) {
    for (let at = 0, piece = 0; at < items.length; at += PIECE_ITEMS, piece++) {
      d.set(dedupIds.chunk("u", uid, piece), items.slice(at, at + PIECE_ITEMS));
    }
  }
  const e = new Map(u);
  const from = (node: string, made: Map<string, readonly string[]>) => [...made].map(([uid, items]) => [`${node}:${uid}`, items] as const);
  const j = new Map([...from("d", d), ...from("e", e)]);
  return new Map([
    ["u", u],
    ["d", d],
    ["e", e],
    ["j", j],
  ]);
}

/** What s must come to. */
export function sumOf({ batches }: Shape): number {
  return batches * BATCH_ITEMS;
}
