// The attacker has no token, and opens as many connections as the server accepts. It sends nothing on them: no request, no TLS handshake,
// or only a health check now and then. Other clients must still be able to connect, and active clients must not be disconnected.

import { readFileSync } from "node:fs";
import { request } from "node:https";
import { connect, type Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { createAuth } from "../../src/net/listener/auth.ts";
import type { ListenOptions } from "../../src/net/listener/listener.ts";
import { call, groupOf, RawClient, route, startServer, type TestServer, turn } from "../support/http.ts";

const connections = 20;
const pem = (name: string) => readFileSync(new URL(`../fixtures/tls/${name}.pem`, import.meta.url), "utf8");
const tls = { cert: pem("cert"), key: pem("key") };
const token = "worker-0123456789abcdef";
const health = route("GET /health", () => ({ status: 200, body: "well" }), { action: "server.health" });
const work = route("GET /work", () => ({ status: 200, body: "work" }));

function started(options: Partial<ListenOptions> = {}) {
  const auth = createAuth([{ name: "worker", scopes: ["worker"], secret: token }]);
  return startServer({ groups: [groupOf("main", [health, work])], limits: { connections }, auth, ...options });
}

/** Connections on which nothing is sent. */
async function silent(server: TestServer, count: number): Promise<Socket[]> {
  const sockets = Array.from({ length: count }, () => connect(server.port, "127.0.0.1"));
  for (const socket of sockets) {
    socket.on("error", () => {});
    onTestFinished(() => void socket.destroy());
  }
  while (sockets.some((socket) => socket.connecting)) await turn();
  return sockets;
}

const askFor = (path: string) => `GET ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n\r\n`;

it("silent connections are closed to make room for others, and an active worker keeps its connection", async () => {
  const server = await started();
  const worker = new RawClient(server).send(askFor("/work"));
  await worker.until("work");
  await silent(server, 3 * connections);
  expect((await call(`${server.url}/work`, { headers: { authorization: `Bearer ${token}` } })).text).toBe("work");
  expect(server.connections()).toBeLessThanOrEqual(connections);
  worker.received = "";
  worker.send(askFor("/work"));
  await worker.until("work");
});

it("connections that only request the health are also closed to make room", async () => {
  const server = await started();
  const strangers = Array.from({ length: connections }, () =>
    new RawClient(server).send("GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"),
  );
  for (const stranger of strangers) await stranger.until("well");
  expect((await call(`${server.url}/work`, { headers: { authorization: `Bearer ${token}` } })).text).toBe("work");
});

it("unfinished handshakes are closed to make room for others", async () => {
  const server = await started({ tls });
  await silent(server, 3 * connections);
  const answer = await new Promise<number | undefined>((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` };
    const sent = request(`${server.url}/work`, { ca: tls.cert, agent: false, headers }, (response) => resolve(response.statusCode));
    sent.on("error", reject);
    sent.end();
  });
  expect(answer).toBe(200);
});

it("a server whose connections all belong to workers refuses the next one", async () => {
  const server = await started();
  const workers = Array.from({ length: connections }, () => new RawClient(server).send(askFor("/work")));
  for (const worker of workers) await worker.until("work");
  expect(await new RawClient(server).closed()).toBe("");
  expect(server.connections()).toBe(connections);
});
