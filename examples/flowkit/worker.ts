// Two roles for a graph of FlowKit: `longshore dev` is its coordinator, bus and store. `longshore work` finds them by their exports.

import { streamTask } from "longshore/flowkit";

const shelves: Record<string, string[]> = { A: ["lantern", "rope", "anchor"], B: ["compass"] };
const grams: Record<string, number> = { lantern: 850, rope: 400, anchor: 9000, compass: 120 };

// Makes its batches itself, one for each shelf. The result of a batch is stored for readers of this node.
export const stocktake = streamTask("stocktake", {
  *iterBatches() {
    for (const [shelf, items] of Object.entries(shelves)) yield { batch_uid: `shelf-${shelf}`, payload: { shelf, items } };
  },
  processBatch: ({ payload: { shelf, items } }) => ({ shelf, items }),
});

// Gets its batches from the coordinator: pieces of those lists, while the shelves are still being counted.
export const weigh = streamTask("weigh", {
  processBatch({ payload }) {
    const items = payload.items as string[];
    return { items: items.length, grams: items.reduce((sum, item) => sum + (grams[item] ?? 0), 0) };
  },
});
