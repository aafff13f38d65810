// A server in two parts, for tests that look inside: its engine with the store, and its port.

import { createLogger } from "../../src/core/logger.ts";
import { createMetrics } from "../../src/core/metrics.ts";
import { openServerPort } from "../../src/server/server-port.ts";
import { openEngineWithStore } from "./engine.ts";
import { call } from "./http.ts";
import { protocolsOn } from "./protocols.ts";

/** The caller must close it. */
export async function openEnginePort(options: Parameters<typeof openEngineWithStore>[0]) {
  const engine = await openEngineWithStore(options);
  const logger = createLogger({ level: "silent", write: () => {}, clock: engine.clock });
  const protocols = await protocolsOn(engine);
  const port = await openServerPort({ engine, protocols, options: { port: 0 }, tokens: [], logger, metrics: createMetrics() });
  return {
    engine,
    url: port.url,
    /** Sends JSON to a path below `/api`. */
    send: (method: string, path: string, body?: unknown) =>
      call(`${port.url}/api${path}`, {
        method,
        headers: { "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    async close() {
      await port.close(0);
      await engine.close();
    },
  };
}
