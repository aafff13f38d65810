// Prepares Stepflow's server half: reads the configuration, makes the dialect from it, and loads the routes if the server has a port.

import type { ReservedLanes } from "../../../engine/board/reserved-lanes.ts";
import type { PreparedProtocol, Preparing } from "../../server-half.ts";
import { stepflowDialect } from "../dialect/dialect.ts";
import { itemsDialect } from "../dialect/items.ts";
import type { StepflowConfig } from "./config/config.ts";
import { defaultConfig } from "./config/default.ts";
import { makeRouter } from "./config/router.ts";
import { type FlowAccess, flowAccess } from "./flow-access.ts";
import type { StepflowOptions } from "./options.ts";

export async function prepare(options: StepflowOptions, around: Preparing): Promise<PreparedProtocol> {
  const { log, listens, secretPaths, environment, reservedLanes } = around;
  const config = await configOf(options.config, log);
  if (!listens && config.file !== null) log.warn(`${config.file}: No plugin runs, because this server has no port.`);
  const orchestratorUrl = options.orchestratorUrl ?? (environment.STEPFLOW_ORCHESTRATOR_URL || undefined);
  return preparedWith(config, { access: flowAccess(options, secretPaths), orchestratorUrl, reservedLanes });
}

interface More {
  /** What flows may read from this machine. */
  readonly access?: FlowAccess;
  readonly orchestratorUrl?: string | undefined;
  readonly reservedLanes: ReservedLanes;
}

export function preparedWith(config: StepflowConfig, { access = flowAccess(), orchestratorUrl, reservedLanes }: More): PreparedProtocol {
  return {
    dialects: [stepflowDialect(makeRouter(config, reservedLanes)), itemsDialect],
    open: async ({ engine, log, trouble }) => ({
      handle: {},
      async serve({ version, tokens }) {
        const { StepflowServer } = await import("./server.ts");
        const server = new StepflowServer({
          engine,
          config,
          version,
          orchestratorUrl,
          asksToken: tokens.required,
          environment: process.env,
          access,
          trouble,
          log,
        });
        return {
          routes: server.routes,
          methods: server.methods,
          start: (url) => server.start(url),
          stop: (deadlineMs) => server.stop(deadlineMs),
        };
      },
    }),
  };
}

async function configOf(path: string | undefined, log: Preparing["log"]): Promise<StepflowConfig> {
  if (path === undefined) return defaultConfig();
  // The parser is loaded only when there is a file to parse.
  const { loadConfig } = await import("./config/load.ts");
  const { config, warnings } = loadConfig(path);
  for (const warning of warnings) log.warn(warning);
  return config;
}
