// `pull.from_artifacts.rechunk:size`: splits the lists in upstream artifacts into pieces of one size. `meta_list_key` names the list; it is
// never guessed. Without it, or if it names no list, the artifact itself is the only item. A piece never spans two artifacts, and its name
// is made from the artifact's name, so every attempt makes the same pieces.

import type { Json, JsonObject } from "../../../../core/json/json.ts";
import { checkRechunkArgs, type RechunkArgs, rechunkAdapter } from "../adapter-args.ts";
import type { PartRef } from "../artifacts/artifacts.ts";
import { Batch } from "../batch.ts";
import { dedupIds } from "../hash.ts";
import type { InputAdapter, Upstream } from "./adapter.ts";

export const rechunk: InputAdapter<RechunkArgs> = { name: rechunkAdapter, check: checkRechunkArgs, open };

/** How many artifacts without items are remembered. Others are read once more by the next attempt, which is harmless. */
const emptyMax = 1_000;

async function* open({ fromNodes, size, metaListKey, ...options }: RechunkArgs, upstream: Upstream): AsyncIterable<Batch> {
  /** Artifacts without items: they are finished together with the next piece. */
  let empty: PartRef[] = [];
  for await (const { fromNode, uid, meta } of upstream.read(fromNodes, options)) {
    const items = itemsOf(meta, metaListKey);
    const parent = { ref: { batch_uid: uid }, meta_list_key: listIn(meta, metaListKey) === null ? null : metaListKey };
    if (items.length === 0 && empty.length < emptyMax) empty.push({ fromNode, uid });
    for (let at = 0, idx = 0; at < items.length; at += size, idx++) {
      const isLast = at + size >= items.length;
      yield new Batch({
        batch_uid: dedupIds.chunk(fromNode, uid, idx),
        payload: { from_node: fromNode, items: items.slice(at, at + size), parent },
        // Only the last piece finishes an artifact. When an attempt ends before this piece, the next attempt gets all pieces again.
        finishes: isLast ? [...empty, { fromNode, uid }] : [],
      });
      if (isLast) empty = [];
    }
  }
}

/** The items of an artifact. */
export function itemsOf(meta: JsonObject, metaListKey: string | null): readonly Json[] {
  return listIn(meta, metaListKey) ?? [meta];
}

function listIn(meta: JsonObject, metaListKey: string | null): readonly Json[] | null {
  const list = metaListKey !== null && Object.hasOwn(meta, metaListKey) ? meta[metaListKey] : null;
  return Array.isArray(list) ? list : null;
}
