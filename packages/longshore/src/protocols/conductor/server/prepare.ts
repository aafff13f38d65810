// The server half of Conductor on a server. Routes are loaded only on a server with a port.

import { checkedVariable, type Environment } from "../../../core/environment.ts";
import type { FailureListener } from "../../../core/failure-listener.ts";
import { AddressGuard } from "../../../net/http/address-guard.ts";
import type { PreparedProtocol, Preparing, ProtocolEngine } from "../../server-half.ts";
import { dialectName } from "../dialect/compile.ts";
import { conductorDialect } from "../dialect/dialect.ts";
import { environmentValue, secretValue } from "../dialect/environment.ts";
import type { OpenStarter } from "./open-starter.ts";
import type { Registry } from "./registry.ts";
import type { Starter } from "./start.ts";
import type { SystemTasks } from "./system/system-tasks.ts";

export function prepare({ environment }: Pick<Preparing, "environment">): PreparedProtocol {
  const targets = new AddressGuard(targetsIn(environment));
  return {
    dialects: [conductorDialect(environmentValue)],
    async open({ engine, trouble, isIdle }) {
      const { clock, board, runs, logs, reader, workers, documents, plan, removeRun, listen, storage, schedules } = engine;
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
      let opened: Promise<OpenStarter> | undefined;
      const starting = () => {
        opened ??= Promise.all([import("./open-starter.ts"), known()]).then(([module, own]) => module.openStarter(engine, own));
        return opened;
      };
      const system = isIdle ? undefined : await startSystemTasks(engine, trouble, targets, async () => (await starting()).starter);
      return {
        handle: {},
        async close() {
          await system?.close();
        },
        async serve({ version, tokens, metrics }) {
          const { conductorRoutes } = await import("./routes.ts");
          const { documents, events } = engine;
          const deps = { clock, board, runs, logs, reader, workers, plan, removeRun, listen, version, tokens, storage, metrics, schedules };
          return { routes: conductorRoutes({ ...deps, documents, events, ...(await starting()), registry: await known() }) };
        },
      };
    },
  };
}

/** Hosts, addresses and networks that HTTP tasks may reach although they are not public. */
const targetsVariable = "CONDUCTOR_HTTP_TARGETS";

function targetsIn(environment: Environment): string[] {
  return checkedVariable(environment, targetsVariable, (text) => text.split(",")) ?? [];
}

async function startSystemTasks(
  engine: ProtocolEngine,
  trouble: FailureListener,
  targets: AddressGuard,
  starter: () => Promise<Starter>,
): Promise<SystemTasks> {
  const { SystemTasks: Opened } = await import("./system/system-tasks.ts");
  const system = new Opened({
    engine,
    targets,
    starter,
    secret: secretValue,
    failed: (what, error) => trouble.failing(`a ${what} of system tasks`, error),
  });
  await system.start();
  return system;
}
