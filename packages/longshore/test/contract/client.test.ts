import { connectBy } from "../../src/client/connect.ts";
import { createMetrics } from "../../src/core/metrics.ts";
import type { RouteGroup } from "../../src/net/http/http.ts";
import { createAuth } from "../../src/net/listener/auth.ts";
import { programSide } from "../../src/server/handle.ts";
import { ownAddress, routeFetch } from "../../src/server/route-fetch.ts";
import { serve } from "../../src/server/server.ts";
import { tableOf } from "../../src/server/server-port.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { openEngineWithStore } from "../support/engine.ts";
import { protocolsOn } from "../support/protocols.ts";
import type { OpenClient } from "./client-fixtures.ts";
import { clientContract } from "./client-suite.ts";

const token = "kV3mQ0rT8xLw2ZpB";

async function overHttp(): Promise<OpenClient> {
  const clock = new TestClock();
  const server = await serve({ ephemeral: true, port: 0, clock, tokens: [token], logger: { level: "silent" } });
  return { client: connectBy(server.url as string, { token }, clock), on: server, clock, close: () => server.close() };
}

async function inProcess(): Promise<OpenClient> {
  const clock = new TestClock();
  const server = await serve({ ephemeral: true, port: null, clock, logger: { level: "silent" } });
  return { client: server, on: server, clock, close: () => server.close() };
}

/** As in the program of a cluster node, which calls the routes without a socket. */
async function overRoutes(): Promise<OpenClient> {
  const clock = new TestClock();
  const engine = await openEngineWithStore({ directory: null, clock });
  const protocols = await protocolsOn(engine);
  const { groups, fallback } = await tableOf({ engine, protocols, metrics: createMetrics(), auth: createAuth([]) });
  const fetch = routeFetch(groups, fallback ?? (groups[0] as RouteGroup));
  return { client: connectBy(ownAddress, { fetch }, clock), on: programSide(engine), clock, close: () => engine.close() };
}

clientContract("over HTTP", overHttp);
clientContract("in the process of the server", inProcess);
clientContract("over the routes of its process", overRoutes);
