// The attackers have no token and send one ClientHello on thousands of connections of a server with TLS at the same time. This costs them
// nothing, but each response costs the server a signature. One turn of the event loop once answered all of them, and other requests waited.

import { readFileSync } from "node:fs";
import { request } from "node:https";
import { type AddressInfo, createServer } from "node:net";
import { connect as connectTls } from "node:tls";
import { expect, it, onTestFinished } from "vitest";
import { handshakeUnits } from "../../src/net/listener/awaited-hello.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { groupOf, RawClient, route, startServer, type TestServer, turn } from "../support/http.ts";
import { countTurns } from "../support/turn-count.ts";

const pem = (name: string) => readFileSync(new URL(`../fixtures/tls/${name}.pem`, import.meta.url), "utf8");
const tls = { cert: pem("cert"), key: pem("key") };
/** Units of a turn; see core/slices/loop-turns.ts. */
const handshakesOfATurn = 4_096 / handshakeUnits;

/** The first bytes of a TLS client. */
function hello(): Promise<Buffer> {
  return new Promise((resolve) => {
    const server = createServer((socket) => {
      socket.once("data", (bytes) => {
        resolve(bytes);
        socket.destroy();
        server.close();
      });
    }).listen(0, "127.0.0.1", () => {
      const client = connectTls((server.address() as AddressInfo).port, "127.0.0.1");
      client.on("error", () => {});
    });
  });
}

async function started(limits: { readonly strangerSessions?: number } = {}) {
  const clock = new TestClock();
  const routes = [route("GET /work", () => ({ status: 200, body: "work" }))];
  const server = await startServer({ groups: [groupOf("main", routes)], tls, limits, clock });
  const connect = async (count: number) => {
    const clients = Array.from({ length: count }, () => new RawClient(server));
    while (clients.some(({ socket }) => socket.connecting)) await turn();
    // When a later connection has received a response, these have been accepted.
    await ask(server);
    return clients;
  };
  const broken = (status: string) => Number(new RegExp(`broken_total{status="${status}"} (\\d+)`).exec(server.metrics.text())?.[1] ?? 0);
  return { server, clock, connect, broken };
}

function ask({ url }: TestServer): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request(`${url}/work`, { ca: tls.cert, agent: false }, ({ statusCode }) => resolve(statusCode));
    sent.on("error", reject);
    sent.end();
    onTestFinished(() => void sent.destroy());
  });
}

it("a few of the handshakes that begin together are answered in each turn, and all are answered", async () => {
  const { connect } = await started();
  const bytes = await hello();
  const clients = await connect(150);
  const answered = countTurns();
  for (const { socket } of clients) socket.once("data", () => answered.add());
  for (const { socket } of clients) socket.write(bytes);
  while (answered.total < clients.length) await turn();
  // Responses of two turns may be read together.
  expect(answered.most).toBeLessThanOrEqual(2 * handshakesOfATurn);
});

it("handshakes in pieces are also answered a few in a turn", async () => {
  const { connect } = await started();
  const bytes = await hello();
  const clients = await connect(150);
  const answered = countTurns();
  for (const { socket } of clients) socket.once("data", () => answered.add());
  for (const [from, to] of [
    [0, 3],
    [3, 70],
    [70, bytes.length - 1],
    [bytes.length - 1, bytes.length],
  ]) {
    for (const { socket } of clients) socket.write(bytes.subarray(from, to));
    for (let at = 0; at < 5; at++) await turn();
  }
  while (answered.total < clients.length) await turn();
  expect(answered.most).toBeLessThanOrEqual(2 * handshakesOfATurn);
});

it("unfinished handshakes are closed to make room for others", async () => {
  const { server, connect, broken } = await started({ strangerSessions: 5 });
  const bytes = await hello();
  const clients = await connect(20);
  for (const { socket } of clients) socket.write(bytes);
  while (clients.filter(({ socket }) => !socket.destroyed).length > 5) await turn();
  expect(broken("full")).toBe(15);
  expect(await ask(server)).toBe(200);
});

it("a connection without a TLS handshake, or with an endless one, is closed", async () => {
  const { server, connect, broken } = await started();
  const record = (length: number, ...bytes: number[]) => Buffer.from([22, 3, 1, length >> 8, length & 255, ...bytes]);
  const beginnings = [
    Buffer.from("GET / HTTP/1.1\r\n\r\n"),
    // Another message than a ClientHello; one of 16 MB; records without content.
    record(4, 2, 0, 0, 0),
    record(4, 1, 255, 255, 255),
    record(0),
    record(65_535, 1, 0, 1, 0),
  ];
  const clients = await connect(beginnings.length);
  for (const [at, client] of clients.entries()) client.socket.write(beginnings[at] as Buffer);
  for (const client of clients) expect(await client.closed()).toBe("");
  expect(broken("tls")).toBe(beginnings.length);
  expect(await ask(server)).toBe(200);
});

it("a connection whose handshake does not begin in time is closed", async () => {
  const { connect, clock, broken } = await started();
  const [client] = (await connect(1)) as [RawClient];
  client.socket.write((await hello()).subarray(0, 50));
  for (let at = 0; at < 20; at++) await turn();
  await clock.advance(10_000);
  await client.closed();
  expect(broken("tls")).toBe(1);
});
