// Stepflow's queues for the fault test: the server's configuration, and the shapes of workflows written as flows.
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Job, UnexpectedAnswer } from "./api.ts";
import type { Arena, Wire } from "./arena.ts";
import type { Connection } from "./http.ts";

/** How long a worker of a queue may be silent: the protocol's crash window, which is fixed. */
export const STEPFLOW_TERM_MS = 5_000;
/** How long a task may wait to be claimed. It is short: what a lost stream held is soon with others. */
export const OFFER_SECS = 2;
/** Far above what any schedule of faults can use up, so that only a cancel keeps a run from succeeding. */
const BUDGET = 1_000;

/** Tasks come over a stream of gRPC, or through NATS when a server of it is named. Then workers may serve other orchestrators, too. */
export function stepflowWire(nats?: string, others: readonly Pick<Arena, "url" | "directory">[] = []): Wire {
  const plugin = nats === undefined ? { type: "grpc", queueName: "python" } : { type: "nats", url: nats, stream: "STEPFLOW_TASKS" };
  const habits = nats === undefined ? {} : { nats, others: others.map(({ url, directory }) => ({ url, directory })) };
  return { ...wireOf({ ...plugin, queueTimeoutSecs: OFFER_SECS }), habits };
}

/** With another plugin, whose workers the test starts itself. */
export function wireOf(plugin: Record<string, unknown>): Wire {
  return {
    worker: fileURLToPath(new URL("./stepflow-worker-process.ts", import.meta.url)),
    define: defineFlow,
    flags(directory) {
      const file = join(directory, "stepflow-config.yml");
      const retry = { transportMaxRetries: BUDGET, backoff: { type: "constant", delayMs: 10 } };
      writeFileSync(file, JSON.stringify({ plugins: { python: plugin }, routes: { "/": [{ plugin: "python" }] }, retry }));
      return ["--stepflow-config", file];
    },
  };
}

/** A flow is started by its name. Each step gets the outputs of the steps that it depends on, by their names. */
async function defineFlow(connection: Connection, name: string, jobs: Job[]): Promise<string> {
  const flowName = `${name}-${randomUUID()}`;
  const outputsOf = (ids: readonly string[]): Record<string, unknown> => Object.fromEntries(ids.map((id) => [id, { $step: id }]));
  const onError = { action: "retry", maxRetries: BUDGET };
  const steps = jobs.map(({ id, depends_on }) => ({ id, component: "/work", input: outputsOf(depends_on), onError }));
  const flow = { name: flowName, description: "for faults", steps, output: outputsOf(jobs.map(({ id }) => id)) };
  const answer = await connection.request("POST", "/api/v1/flows", { flow });
  if (answer.status !== 200 || !(JSON.parse(answer.text) as { stored: boolean }).stored) throw new UnexpectedAnswer("POST flow", answer);
  return flowName;
}
