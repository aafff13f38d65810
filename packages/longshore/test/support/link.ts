// Nodes of a cluster for tests of the link: owners that serve it on a real listener, and clients of them.

import { onTestFinished } from "vitest";
import { LinkClient, type LinkClientOptions } from "../../src/cluster/link/client.ts";
import type { LinkOwner } from "../../src/cluster/link/dial.ts";
import { linkPath } from "../../src/cluster/link/proof.ts";
import { LinkServer, type LinkServerOptions } from "../../src/cluster/link/server.ts";
import type { LinkService } from "../../src/cluster/link/service.ts";
import type { ListenOptions } from "../../src/net/listener/listener.ts";
import { groupOf, route, startServer, type TestServer } from "./http.ts";

export const secret = new Uint8Array(32).fill(7);

/** Answers calls with their arguments, and opens no streams. */
const echo: LinkService = {
  call: async (_name, args) => args,
  open: () => () => undefined,
};

export interface TestOwner extends LinkOwner {
  readonly link: LinkServer;
  readonly http: TestServer;
}

/** A node that serves the link. */
export async function startOwner(
  service: LinkService = echo,
  options: Partial<LinkServerOptions> = {},
  listening: Partial<ListenOptions> = {},
): Promise<TestOwner> {
  const { node = "owner-1", clock } = options;
  const link = new LinkServer({ secret, service, ...options, node });
  const http = await startServer({
    groups: [groupOf("main", [route("GET /hello", () => ({ status: 200, body: "hello" }))])],
    upgrade: { path: linkPath, take: (request, socket, head) => link.accept(request, socket, head) },
    ...(clock === undefined ? {} : { clock }),
    ...listening,
  });
  onTestFinished(() => link.close());
  return { node, url: http.url, link, http };
}

/** A node that uses it. `owner` is asked for each connection. */
export function startNode(owner: () => LinkOwner | null, options: Partial<LinkClientOptions> = {}): LinkClient {
  const client = new LinkClient({ secret, node: "node-2", owner: async () => owner(), ...options });
  onTestFinished(() => client.close());
  return client;
}
