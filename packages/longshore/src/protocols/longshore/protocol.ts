// The registry's entry of our own protocol: the dialect of `graph()`, and the API of the server.

import type { Protocol } from "../protocol.ts";

export const longshoreProtocol: Protocol = {
  name: "longshore",
  prepare: async () => (await import("./server/prepare.ts")).prepared,
};
