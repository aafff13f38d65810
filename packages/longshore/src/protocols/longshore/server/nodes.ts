// The servers that share the data, and which of them owns it.

import { z } from "zod";
import type { ProtocolEngine } from "../../server-half.ts";
import { nodeShape } from "../wire/server-shapes.ts";
import { pageOf } from "../wire/shapes.ts";
import { json, type Operation, operation } from "./operation.ts";

export function nodeOperations({ nodes }: Pick<ProtocolEngine, "nodes">): Operation[] {
  return [
    operation({
      ...{ id: "listNodes", tag: "server", method: "GET", path: "/nodes", action: "node.read" },
      summary: "List the servers that share the data.",
      query: z.strictObject({}),
      answers: { 200: { description: "All of them, in the order of their ids.", schema: pageOf(nodeShape) } },
      handle: async () => json(200, { items: await nodes(), next: null }),
    }),
  ];
}
