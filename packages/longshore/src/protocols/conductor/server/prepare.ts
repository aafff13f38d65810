// The server half of Conductor on a server. It has no configuration. Routes are loaded only on a server with a port.

import type { PreparedProtocol } from "../../server-half.ts";
import { dialectName } from "../dialect/compile.ts";
import { conductorDialect } from "../dialect/dialect.ts";
import { environmentValue } from "../dialect/environment.ts";
import type { Registry } from "./registry.ts";

export const prepared: PreparedProtocol = {
  dialects: [conductorDialect(environmentValue)],
  async open({ engine }) {
    const { clock, board, runs, logs, reader, workers, documents, plan, removeRun, listen } = engine;
    // One registry for all: it caches definitions.
    let registry: Promise<Registry> | undefined;
    const known = () => {
      registry ??= import("./registry.ts").then((module) => new module.Registry(documents, runs));
      return registry;
    };
    const named = async () => (await import("./named.ts")).namedWorkflows(await known());
    runs.namesFor(dialectName, {
      define: async (source) => (await named()).define(source),
      start: async (name, input) => (await named()).start(name, input),
    });
    return {
      handle: {},
      async serve({ version, tokens }) {
        const { conductorRoutes } = await import("./routes.ts");
        const deps = { clock, board, runs, logs, reader, workers, plan, removeRun, listen, version, tokens };
        return { routes: conductorRoutes({ ...deps, registry: await known() }) };
      },
    };
  },
};
