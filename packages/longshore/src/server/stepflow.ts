// Stepflow's server half on this server's engine.

import type { StepflowConfig } from "../protocols/stepflow/server/config/config.ts";
import { StepflowServer } from "../protocols/stepflow/server/server.ts";
import { packageVersion } from "../version.ts";
import type { Engine } from "./engine.ts";
import { FailureLog } from "./failure-log.ts";
import type { FlowAccess } from "./flow-access.ts";
import type { Logger } from "./logger.ts";

export interface StepflowServerParts extends Partial<FlowAccess> {
  readonly orchestratorUrl?: string | undefined;
  readonly asksToken?: boolean;
  readonly logger: Logger;
}

export function stepflowServer(engine: Engine, config: StepflowConfig, parts: StepflowServerParts): StepflowServer {
  const { logger, asksToken = false, files = null, variables = new Set() } = parts;
  const { orchestratorUrl = process.env.STEPFLOW_ORCHESTRATOR_URL || undefined } = parts;
  return new StepflowServer({
    engine,
    config,
    orchestratorUrl,
    asksToken,
    files,
    variables,
    version: packageVersion(),
    environment: process.env,
    trouble: new FailureLog(logger, engine.clock),
    log: logger,
  });
}
