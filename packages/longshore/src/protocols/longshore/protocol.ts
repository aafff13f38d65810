// The registry's entry of our own protocol: the dialect of `graph()`, and the API of the server.

import { functionLanes } from "../../core/turn.ts";
import type { Protocol } from "../protocol.ts";

export const longshoreProtocol: Protocol = {
  name: "longshore",
  reserved: [{ names: functionLanes, dialects: ["function"], isForWorkers: true }],
  hints: async (options) => (await import("./hints.ts")).hints(options),
  prepare: async () => (await import("./server/prepare.ts")).prepared,
};
