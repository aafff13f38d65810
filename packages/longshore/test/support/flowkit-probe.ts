// A worker with one role that counts the items of its batches, and upstream nodes for it.

import type { JsonObject } from "../../src/core/json/json.ts";
import { Batch, BatchResult } from "../../src/protocols/flowkit/wire/batch.ts";
import type { FlowkitOptions } from "../../src/protocols/flowkit/worker/options.ts";
import { streamTask } from "../../src/protocols/flowkit/worker/stream-task.ts";
import { type FlowkitWorld, flowkitWorld } from "./flowkit-played.ts";

export const pull = "pull.from_artifacts";
export const rechunk = "pull.from_artifacts.rechunk:size";

export interface Probe {
  /** The adapter that the handler proposes. */
  readonly proposes?: JsonObject;
  readonly options?: FlowkitOptions;
}

/** Counts the items of its batches. */
export async function setup({ proposes, options }: Probe = {}) {
  const world = await flowkitWorld();
  const seen: Batch[] = [];
  let iterated = 0;
  const probe = streamTask("probe", {
    loadInput: (ref, inline) => ({ input_ref: ref ?? {}, input_inline: proposes ?? inline ?? {} }),
    *iterBatches() {
      iterated++;
      yield new Batch({ batch_uid: "own1", payload: { items: [1, 2, 3] } });
      yield { batchUid: "own2", payload: { items: [4, 5] } };
    },
    processBatch: (batch) => {
      seen.push(batch);
      const { items } = batch.payload;
      return new BatchResult({ success: true, metrics: { count: Array.isArray(items) ? items.length : 1 } });
    },
  });
  await world.worker([probe], options);
  return { world, seen, iterated: () => iterated };
}

export function upstream(world: FlowkitWorld, node: string, ...lists: number[][]): void {
  world.artifacts.produce(
    world.taskId,
    node,
    lists.map((skus) => ({ skus })),
  );
}

export const cmd = (input_adapter: string, input_args: JsonObject): JsonObject => ({ input_adapter, input_args });
