// Nodes of a cluster for tests of the link: owners that serve it on a real listener, and clients of them.

import { type AddressInfo, createConnection, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { LinkClient, type LinkClientOptions } from "../../src/cluster/link/client.ts";
import type { LinkOwner } from "../../src/cluster/link/dial.ts";
import { linkPath } from "../../src/cluster/link/proof.ts";
import { LinkServer, type LinkServerOptions } from "../../src/cluster/link/server.ts";
import type { LinkCall, LinkService, LinkStream } from "../../src/cluster/link/service.ts";
import type { ListenOptions } from "../../src/net/listener/listener.ts";
import { groupOf, route, startServer, type TestServer } from "./http.ts";
import { deferred } from "./until.ts";

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

/** A service whose calls the test answers. */
export function held() {
  const calls: { name: string; args: unknown; call: LinkCall; answer: (value: unknown) => void; fail: (error: unknown) => void }[] = [];
  const service: LinkService = {
    call(name, args, call) {
      const { promise, resolve, reject } = deferred<unknown>();
      calls.push({ name, args, call, answer: resolve, fail: reject });
      return promise;
    },
    open: () => () => undefined,
  };
  return { calls, service };
}

/** A service with streams that the test feeds. */
export function feed() {
  const streams: { name: string; args: unknown; stream: LinkStream; closed: boolean }[] = [];
  const service: LinkService = {
    call: async (_name, args) => args,
    open(name, args, stream) {
      const opened = { name, args, stream, closed: false };
      streams.push(opened);
      return () => {
        opened.closed = true;
      };
    },
  };
  return { streams, service };
}

/** Passes bytes between a node and the owner until a test makes it drop them. */
export async function proxyTo(owner: LinkOwner) {
  const sockets = new Set<Socket>();
  const state = { silent: false };
  const server = createServer((near) => {
    const far = createConnection(Number(new URL(owner.url).port), "127.0.0.1");
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("data", (bytes) => state.silent || to.write(bytes));
      from.on("close", () => to.destroy());
      from.on("error", () => undefined);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    state,
  };
}
