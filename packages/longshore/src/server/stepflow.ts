// Stepflow's server half on this server's engine.

import { dialectName } from "../dialect/stepflow/source.ts";
import { BlobLibrary } from "../protocol/stepflow/blob-library.ts";
import type { StepflowConfig } from "../protocol/stepflow/config/config.ts";
import { StepflowServer } from "../protocol/stepflow/server.ts";
import type { Engine } from "./engine.ts";
import type { Logger } from "./logger.ts";
import { TroubleLog } from "./trouble.ts";

export interface StepflowServerParts {
  readonly orchestratorUrl?: string;
  readonly logger: Logger;
}

export function stepflowServer(engine: Engine, config: StepflowConfig, parts: StepflowServerParts): StepflowServer {
  const { logger, orchestratorUrl = process.env.STEPFLOW_ORCHESTRATOR_URL || undefined } = parts;
  const blobs = new BlobLibrary(engine.blobs, async (flowId) => {
    const definition = await engine.runs.definitionById(flowId);
    return definition?.dialect === dialectName ? definition.source : undefined;
  });
  return new StepflowServer({ engine, config, blobs, orchestratorUrl, trouble: new TroubleLog(logger, engine.clock) });
}
