// The server half of Conductor on a server. It has no configuration. Routes are loaded only on a server with a port.

import type { FailureListener } from "../../../core/failure-listener.ts";
import type { PreparedProtocol, ProtocolEngine } from "../../server-half.ts";
import { dialectName } from "../dialect/compile.ts";
import { conductorDialect } from "../dialect/dialect.ts";
import { environmentValue } from "../dialect/environment.ts";
import type { Registry } from "./registry.ts";
import type { SystemTasks } from "./system/system-tasks.ts";

export const prepared: PreparedProtocol = {
  dialects: [conductorDialect(environmentValue)],
  async open({ engine, trouble, isIdle }) {
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
    const system = isIdle ? undefined : await startSystemTasks(engine, trouble);
    return {
      handle: {},
      async close() {
        await system?.close();
      },
      async serve({ version, tokens }) {
        const { conductorRoutes } = await import("./routes.ts");
        const deps = { clock, board, runs, logs, reader, workers, plan, removeRun, listen, version, tokens };
        return { routes: conductorRoutes({ ...deps, registry: await known() }) };
      },
    };
  },
};

async function startSystemTasks(engine: ProtocolEngine, trouble: FailureListener): Promise<SystemTasks> {
  const { SystemTasks: Opened } = await import("./system/system-tasks.ts");
  const system = new Opened({ engine, failed: (what, error) => trouble.failing(`a ${what} of system tasks`, error) });
  await system.start();
  return system;
}
