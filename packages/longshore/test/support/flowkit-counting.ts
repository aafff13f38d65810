// A stream task for tests of FlowKit's worker.

import { Batch, FinalizeResult } from "../../src/protocols/flowkit/wire/batch.ts";
import type { RunContext } from "../../src/protocols/flowkit/worker/run-context.ts";
import { streamTask } from "../../src/protocols/flowkit/worker/stream-task.ts";

/** A handler of `count` batches. */
export function counting(count: number, process: (batch: Batch, ctx: RunContext) => unknown = () => ({ done: 1 })) {
  return streamTask("probe", {
    *iterBatches() {
      for (let at = 0; at < count; at++) yield new Batch({ batch_uid: `b${at}`, payload: { at } });
    },
    processBatch: process,
    finalize: () => new FinalizeResult({ metrics: { total: count } }),
  });
}
