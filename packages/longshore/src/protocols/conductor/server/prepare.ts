// The server half of Conductor on a server. It has no configuration. Routes are loaded only on a server with a port.

import type { PreparedProtocol } from "../../server-half.ts";
import { conductorDialect } from "../dialect/dialect.ts";
import { environmentValue } from "../dialect/environment.ts";

export const prepared: PreparedProtocol = {
  dialects: [conductorDialect(environmentValue)],
  open: async ({ engine }) => ({
    handle: {},
    async serve({ version, tokens }) {
      const { conductorRoutes } = await import("./routes.ts");
      const { clock, board, runs, logs, reader, workers, documents, plan, removeRun, listen } = engine;
      return {
        routes: conductorRoutes({ clock, board, runs, logs, reader, workers, documents, plan, removeRun, listen, version, tokens }),
      };
    },
  }),
};
