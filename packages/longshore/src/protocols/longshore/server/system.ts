// For monitoring: version, health, metrics and the API document.

import { z } from "zod";
import { type Metrics, metricsContentType } from "../../../core/metrics.ts";
import type { Health, HealthCheck } from "./health.ts";
import { json, type Operation, operation } from "./operation.ts";
import { welcomeOperation } from "./welcome.ts";

const tag = "system";

const healthShape = z
  .object({
    status: z.enum(["ok", "unavailable"]),
    version: z.string(),
    store: z.enum(["ok", "unavailable"]).describe("Whether the data file can be written."),
    message: z.string().optional().describe("Why not."),
    uptimeSeconds: z.number().int(),
  })
  .meta({ id: "Health" });

export interface SystemDeps {
  readonly health: HealthCheck;
  readonly metrics: Metrics;
  /** Whether browsers find a dashboard at `/ui`. */
  readonly hasPages: boolean;
  /** The OpenAPI document as JSON text. */
  readonly document: () => Promise<string>;
}

export function systemOperations({ health, metrics, hasPages, document }: SystemDeps): Operation[] {
  return [
    welcomeOperation(tag, hasPages),
    stateOperation("health", "/health", {
      summary: "Report whether the server can take work. Needs no token.",
      yes: "It can.",
      no: "The store cannot be written now; reads continue.",
      read: () => health.look(),
    }),
    operation({
      ...{ id: "live", tag, method: "GET", path: "/livez", root: true, action: "server.health" },
      summary: "Report whether the process is alive, for any state of its store. Needs no token.",
      answers: { 200: { description: "It is.", schema: z.object({ status: z.literal("ok") }).meta({ id: "Alive" }) } },
      handle: () => json(200, { status: "ok" }),
    }),
    stateOperation("ready", "/readyz", {
      summary: "Report whether the server accepts work now. Needs no token.",
      yes: "It does.",
      no: "The store cannot be written now, or the server is closing.",
      read: () => health.ready(),
    }),
    operation({
      ...{ id: "metrics", tag, method: "GET", path: "/metrics", root: true, action: "server.measure" },
      summary: "Read figures in the text format of Prometheus.",
      answers: { 200: { description: "One line a series.", contentType: metricsContentType } },
      handle: async () => ({ status: 200, headers: { "content-type": metricsContentType }, body: await metrics.read() }),
    }),
    operation({
      ...{ id: "openapi", tag, method: "GET", path: "/openapi.json", action: "server.describe" },
      summary: "Read this document.",
      answers: { 200: { description: "OpenAPI 3.1.", contentType: "application/json" } },
      handle: async () => ({ status: 200, headers: { "content-type": "application/json" }, body: await document() }),
    }),
  ];
}

interface StateSpec {
  readonly summary: string;
  /** The descriptions of the two answers. */
  readonly yes: string;
  readonly no: string;
  read(): Promise<Health>;
}

/** 200 or 503, both with the state. */
function stateOperation(id: string, path: string, { summary, yes, no, read }: StateSpec): Operation {
  return operation({
    ...{ id, tag, method: "GET", path, root: true, action: "server.health", summary },
    answers: { 200: { description: yes, schema: healthShape }, 503: { description: no, schema: healthShape } },
    handle: async () => {
      const health = await read();
      return json(health.status === "ok" ? 200 : 503, health);
    },
  });
}
