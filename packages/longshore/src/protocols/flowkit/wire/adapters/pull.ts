// `pull.from_artifacts`: each partial artifact of the upstream nodes is a batch, while these nodes still run.

import { checkPullArgs, type PullArgs, pullAdapter } from "../adapter-args.ts";
import { Batch } from "../batch.ts";
import type { InputAdapter, Upstream } from "./adapter.ts";

export const pull: InputAdapter<PullArgs> = { name: pullAdapter, check: checkPullArgs, open };

async function* open({ fromNodes, ...options }: PullArgs, upstream: Upstream): AsyncIterable<Batch> {
  const several = fromNodes.length > 1;
  for await (const { fromNode, uid, meta } of upstream.read(fromNodes, options)) {
    yield new Batch({
      // The consumer's artifact has the same name as the upstream artifact. With several sources, the name of the source is added, because
      // two sources may use the same name.
      batch_uid: several ? namedBySource(fromNode, uid) : uid,
      payload: { from_node: fromNode, ref: { task_id: upstream.taskId, node_id: fromNode, batch_uid: uid }, meta },
      finishes: [{ fromNode, uid }],
    });
  }
}

/** The name of a batch whose consumer has several sources. */
export function namedBySource(fromNode: string, uid: string): string {
  return `${plainly(fromNode)}:${uid}`;
}

/** Escapes colons, so that the first colon in a batch's name ends the source: `a` with `b:c` is not `a:b` with `c`. */
function plainly(node: string): string {
  return /[%:]/.test(node) ? node.replaceAll("%", "%25").replaceAll(":", "%3A") : node;
}
