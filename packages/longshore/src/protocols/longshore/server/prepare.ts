// The server half of our own protocol on a server: the API. It has no configuration. Routes are loaded only on a server with a port.

import type { PreparedProtocol } from "../../server-half.ts";
import { codeDialect } from "../dialect/dialect.ts";
import { functionDialect } from "../dialect/function.ts";

export const prepared: PreparedProtocol = {
  dialects: [codeDialect, functionDialect],
  async open({ engine }) {
    let close: (() => void) | undefined;
    return {
      handle: {},
      async serve(serving) {
        const [{ ownRoutes }, { changesOf }] = await Promise.all([import("./routes.ts"), import("./changes.ts")]);
        const changes = changesOf(engine);
        close = () => changes.close();
        return { routes: ownRoutes({ engine, serving, changes }), isFallback: true };
      },
      async close() {
        close?.();
      },
    };
  },
};
