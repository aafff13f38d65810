// The server half of Conductor on a server. Routes are loaded only on a server with a port.

import { checkedVariable, type Environment } from "../../../core/environment.ts";
import { LongshoreError } from "../../../core/errors.ts";
import type { FailureListener } from "../../../core/failure-listener.ts";
import { AddressGuard } from "../../../net/http/address-guard.ts";
import type { PreparedProtocol, Preparing, ProtocolEngine } from "../../server-half.ts";
import { dialectName } from "../dialect/compile.ts";
import { conductorDialect } from "../dialect/dialect.ts";
import { environmentValue, secretValue } from "../dialect/environment.ts";
import { FileUpkeep } from "./file-upkeep.ts";
import type { OpenStarter } from "./open-starter.ts";
import type { Registry } from "./registry.ts";
import type { Starter } from "./start.ts";
import type { SystemTasks } from "./system/system-tasks.ts";

export function prepare({ environment }: Pick<Preparing, "environment">): PreparedProtocol {
  const targets = new AddressGuard(targetsIn(environment));
  const filesAddress = checkedVariable(environment, filesVariable, addressIn);
  return {
    dialects: [conductorDialect(environmentValue)],
    async open({ engine, trouble, isIdle }) {
      const { clock, board, runs, logs, reader, workers, documents, plan, removeRun, listen, storage, schedules, blobs, makeId } = engine;
      // One registry for all: it caches definitions.
      let registry: Promise<Registry> | undefined;
      const known = () => {
        registry ??= import("./registry.ts").then((module) => new module.Registry(documents, runs));
        return registry;
      };
      const named = async () => (await import("./named-workflows.ts")).namedWorkflows(await known());
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
      const upkeep = isIdle ? undefined : new FileUpkeep({ clock, reader, documents, blobs, trouble });
      return {
        handle: {},
        async close() {
          upkeep?.close();
          await system?.close();
        },
        async serve({ version, tokens, metrics }) {
          const { conductorRoutes } = await import("./routes.ts");
          const { events } = engine;
          const deps = { clock, board, runs, logs, reader, workers, plan, removeRun, listen, version, tokens, storage, metrics, schedules };
          const own = { ...deps, documents, events, blobs, makeId, filesAddress };
          return { routes: conductorRoutes({ ...own, ...(await starting()), registry: await known() }) };
        },
      };
    },
  };
}

/** Hosts, addresses and networks that HTTP tasks may reach although they are not public. */
const targetsVariable = "CONDUCTOR_HTTP_TARGETS";

/** The address of this server in the addresses of files, under the name of the real server's property. */
const filesVariable = "CONDUCTOR_FILESTORAGE_CONDUCTOR_BASEURL";

function addressIn(text: string): string {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text))
    throw new LongshoreError("LONGSHORE_BAD_INPUT", `it is ${JSON.stringify(text)}, expected an address such as https://host:4500.`);
  const { origin, pathname } = new URL(text);
  return `${origin}${pathname.replace(/\/$/, "")}`;
}

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
