// The server half of workflow-graph on a server. It has no configuration. Routes are loaded only on a server with a port.

import type { PreparedProtocol } from "../../server-half.ts";
import { workflowGraphDialect } from "../dialect/compile.ts";
import { sampleId, sampleSource } from "../dialect/sample.ts";
import { dialectName } from "../dialect/source.ts";

export const prepared: PreparedProtocol = {
  dialects: [workflowGraphDialect],
  sample: { name: sampleId, dialect: dialectName, source: sampleSource },
  open: async ({ engine }) => ({
    handle: {},
    async serve() {
      const { workflowGraphRoutes } = await import("./routes.ts");
      return { routes: workflowGraphRoutes(engine) };
    },
  }),
};
