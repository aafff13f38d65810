// The attackers have no token and open thousands of connections. Then all of them send at the same time: pipelined requests, calls over
// HTTP/2, many streams on each connection. One turn of the event loop once handled all of it. A thousand HTTP/2 connections with 250
// streams each used 1.3 GB. Now one limit applies to the work of all unknown clients in a turn, and each of them has a few streams. A known
// client keeps its own part of each turn.

import { expect, it } from "vitest";
import { serverStream, unary } from "../../src/net/grpc/service.ts";
import { createAuth } from "../../src/net/listener/auth.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { Echo } from "../support/grpc.ts";
import { groupOf, RawClient, route, startServer, turn } from "../support/http.ts";
import { callFields, field, frame, goawayIn, preface } from "../support/raw-frames.ts";
import { countTurns } from "../support/turn-count.ts";

const token = "worker-0123456789abcdef";
const auth = createAuth([{ name: "worker", scopes: ["worker"], secret: token }]);
/** Requests that all connections begin in a turn. */
const turnRequests = 256;
const openStream = (id: number, path: string, ...more: Buffer[]) => frame(1, 4, id, Buffer.concat([callFields(path), ...more]));
const bearer = field("authorization", `Bearer ${token}`);
const message = Buffer.from([0, 0, 0, 0, 0]);

async function started(limits: { readonly strangerSessions?: number } = {}) {
  const begun = countTurns();
  const served = countTurns();
  const counting = <Answer>(count: { add(): void }, answer: Answer) => {
    return () => {
      count.add();
      return answer;
    };
  };
  const health = route("GET /health", counting(begun, { status: 200, body: "well" }), { action: "server.health" });
  const work = route("GET /work", counting(served, { status: 200, body: "work" }));
  const open = unary(Echo.Say, "server.health", counting(begun, {}));
  const pull = serverStream(Echo.Count, "task.claim", () => begun.add());
  const options = { groups: [groupOf("main", [health, work])], methods: [open, pull], auth, limits, clock: new TestClock() };
  const server = await startServer(options);
  const connect = async (count: number) => {
    const clients = Array.from({ length: count }, () => new RawClient(server));
    while (clients.some(({ socket }) => socket.connecting)) await turn();
    return clients;
  };
  const http2 = async () => {
    const client = new RawClient(server);
    const send = (...frames: Buffer[]) => void client.send(Buffer.concat(frames).toString("latin1"));
    send(preface, frame(4, 0, 0));
    while (client.received.length === 0) await turn();
    // Its acknowledgement: from here on the server holds the client to the settings.
    send(frame(4, 1, 0));
    return { client, send };
  };
  const figure = (name: string) => Number(new RegExp(`${name}\\S* (\\d+)`).exec(server.metrics.text())?.[1] ?? 0);
  return { server, begun, served, connect, http2, figure };
}

it("a limited number of requests of very many connections begin in a turn, and all are answered", async () => {
  const { begun, connect } = await started();
  const clients = await connect(400);
  const each = 4;
  for (const client of clients) client.send("GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(each));
  while (begun.total < clients.length * each) await turn();
  expect(begun.most).toBeLessThanOrEqual(turnRequests);
});

it("a worker's request is answered between them", async () => {
  const { begun, served, connect } = await started();
  const clients = await connect(300);
  const worker = (await connect(1))[0] as RawClient;
  const ask = () => worker.send(`GET /work HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n\r\n`);
  await ask().until("work");
  for (const client of clients) client.send("GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(8));
  ask();
  while (served.total < 2) await turn();
  expect(begun.total).toBeLessThan(clients.length * 8);
  while (begun.total < clients.length * 8) await turn();
});

it("a client without a token has a few streams at a time, and more after one of its calls was allowed", async () => {
  const { http2 } = await started();
  const { client, send } = await http2();
  const ids = (from: number, count: number) => Array.from({ length: count }, (_, at) => from + 2 * at);
  send(openStream(1, Echo.Count.path, bearer), frame(0, 1, 1, message));
  // The server's SETTINGS with the larger number of streams, which the client acknowledges.
  while (!client.received.includes("\0\x03\0\0\x01\0")) await turn();
  send(frame(4, 1, 0), ...ids(3, 200).map((id) => openStream(id, Echo.Count.path, bearer)));
  for (let at = 0; at < 50; at++) await turn();
  expect(client.socket.destroyed).toBe(false);

  const stranger = await http2();
  stranger.send(...ids(1, 200).map((id) => openStream(id, Echo.Say.path)));
  await stranger.client.closed();
  expect(goawayIn(Buffer.from(stranger.client.received, "latin1"))).toBeDefined();
});

it("streams of very many unknown clients have a limited number of calls", async () => {
  const { http2, figure } = await started({ strangerSessions: 5 });
  const sessions = [];
  for (let at = 0; at < 20; at++) {
    const session = await http2();
    sessions.push(session);
    session.send(...[1, 3, 5, 7].map((id) => openStream(id, Echo.Say.path)));
  }
  while (sessions.filter(({ client }) => !client.socket.destroyed).length > 5) await turn();
  while (figure("longshore_http_in_flight") > 5 * 4) await turn();
  expect(figure('longshore_http_broken_total{status="full"}')).toBe(15);
});

it("unknown clients displace only other unknown clients, and no worker", async () => {
  const { http2 } = await started({ strangerSessions: 5 });
  const worker = await http2();
  const before = worker.client.received.length;
  worker.send(openStream(1, Echo.Count.path, bearer), frame(0, 1, 1, message));
  while (worker.client.received.length === before) await turn();
  const sessions = [];
  for (let at = 0; at < 20; at++) sessions.push(await http2());
  while (sessions.filter(({ client }) => !client.socket.destroyed).length > 5) await turn();
  expect(worker.client.socket.destroyed).toBe(false);
});
