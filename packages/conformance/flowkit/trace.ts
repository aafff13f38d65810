// What the reference did on a real broker, as a script for the Python coordinator.
import type { Script } from "./python.ts";

/** Two nodes; the second reads the output of the first as a stream. `before` runs when the workers of both are ready. */
export function trace(src: string, sink: string, before: Script["steps"] = []): Script {
  const rechunk = { from_node: "u", size: 2, poll_ms: 25, meta_list_key: "skus" };
  const pull = { input_adapter: "pull.from_artifacts.rechunk:size", input_args: rechunk };
  return {
    types: [src, sink],
    nodes: [
      { node_id: "u", type: src, io: { input_inline: { batches: 3, size: 3 } } },
      { node_id: "d", type: sink, io: { input_inline: pull } },
    ],
    steps: [
      { do: "online", type: src },
      { do: "online", type: sink },
      ...before,
      { do: "start", node: "u" },
      { do: "await", kind: "BATCH_OK", node_id: "u" },
      { do: "start", node: "d" },
      { do: "await", kind: "TASK_DONE", node_id: "u" },
      { do: "await", kind: "TASK_DONE", node_id: "d" },
    ],
  };
}
