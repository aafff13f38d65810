// Our server with a plugin `python`, which reaches its workers in one of the possible ways, and with routes to Longshore's own tasks.
import { type OurServer, type OurServerOptions, startOurServer } from "../src/longshore.ts";
import type { Stage } from "../src/stage.ts";

export interface StepflowServer extends OurServer {
  /** Without a scheme, as the queue protocol writes addresses. */
  readonly address: string;
}

/** A killed process costs retries. On a busy machine there must still be enough left. */
const PATIENT = { transportMaxRetries: 50, backoff: { type: "constant", delayMs: 500 } };

export const QUEUE = { type: "grpc", queueName: "python" };

export async function startStepflowServer(
  stage: Stage,
  python: Record<string, unknown>,
  options: Pick<OurServerOptions, "data" | "port"> = {},
): Promise<StepflowServer> {
  const plugins = { builtin: { type: "builtin" }, python, longshore: { type: "longshore" } };
  const routes = Object.fromEntries(Object.keys(plugins).map((plugin) => [`/${plugin}`, [{ plugin }]]));
  const server = await startOurServer(stage, { ...options, stepflow: { plugins, routes, retry: PATIENT } });
  return { ...server, address: new URL(server.url).host };
}
