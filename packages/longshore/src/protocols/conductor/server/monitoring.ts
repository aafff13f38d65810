// What monitoring asks the real server for: the paths of Spring's actuator, and the description of the API.

import { type Metrics, metricsContentType } from "../../../core/metrics.ts";
import type { HttpReply, Route } from "../../../net/http/http.ts";
import type { Storage } from "../../server-half.ts";
import { realOperations } from "./operations.ts";
import { json } from "./replies.ts";

export interface MonitoringDeps {
  readonly storage: Pick<Storage, "look" | "unavailable">;
  readonly metrics: Pick<Metrics, "read">;
  readonly version: string;
}

export class Monitoring {
  readonly #deps: MonitoringDeps;
  #document: string | undefined;

  constructor(deps: MonitoringDeps) {
    this.#deps = deps;
  }

  index = (): HttpReply => {
    const links = ["health", "info", "prometheus"].map((name) => [name, { href: `/actuator/${name}`, templated: false }] as const);
    return json({ _links: { self: { href: "/actuator", templated: false }, ...Object.fromEntries(links) } });
  };

  /** `/health` says more; this is for probes that expect Spring's words. */
  health = (): HttpReply => {
    const { storage } = this.#deps;
    storage.look();
    return storage.unavailable === null ? json({ status: "UP" }) : { ...json({ status: "DOWN" }), status: 503 };
  };

  info = (): HttpReply => json({ build: { artifact: "longshore", name: "longshore", version: this.#deps.version } });

  prometheus = async (): Promise<HttpReply> => ({
    status: 200,
    headers: { "content-type": metricsContentType },
    body: await this.#deps.metrics.read(),
  });

  /** The operations of the real server's document that these routes serve. Made once: it depends only on the code. */
  document(routes: readonly Pick<Route, "method" | "path">[]): () => HttpReply {
    return () => {
      this.#document ??= JSON.stringify(documentOf(routes, this.#deps.version));
      return { status: 200, headers: { "content-type": "application/json" }, body: this.#document };
    };
  }
}

function documentOf(routes: readonly Pick<Route, "method" | "path">[], version: string): object {
  const served = new Set(routes.map(({ method, path }) => `${method} ${shapeOf(path)}`));
  const paths: Record<string, Record<string, object>> = {};
  for (const { group, method, path, what } of realOperations) {
    if (!served.has(`${method} ${shapeOf(path)}`)) continue;
    const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);
    const parameters = names.map((name) => ({ name, in: "path", required: true, schema: { type: "string" } }));
    paths[path] ??= {};
    (paths[path] as Record<string, object>)[method.toLowerCase()] = {
      ...{ tags: [group], summary: what, parameters },
      responses: { 200: { description: "OK" }, default: { description: "A refusal.", content: refusal } },
    };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Conductor's API on Longshore",
      version,
      description: "Longshore's own API is described at /api/longshore/v1/openapi.json.",
    },
    paths,
    components: { schemas: { Refusal: refusalSchema } },
  };
}

const refusal = { "application/json": { schema: { $ref: "#/components/schemas/Refusal" } } };
const refusalSchema = {
  type: "object",
  properties: {
    status: { type: "integer" },
    message: { type: "string" },
    instance: { type: "string" },
    retryable: { type: "boolean" },
    validationErrors: { type: "array", items: { type: "object" } },
  },
  required: ["status", "message"],
};

/** A path without the names of its parameters, which differ between our routes and the document. */
export function shapeOf(path: string): string {
  return path.replace(/:\w+|\{\w+\}/g, "{}");
}
