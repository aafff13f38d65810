// The attacker begins requests and sends no more, or single bytes now and then. So each keeps its place and its memory for minutes: a body
// over HTTP/1.1, or a message over HTTP/2. The attacker holds no token, or a worker token. The server must end requests that have stopped
// for ten seconds or send almost nothing, but must not end slow ones.

import { expect, it } from "vitest";
import { unary } from "../../src/net/grpc/service.ts";
import { httpLimits } from "../../src/net/listener/limits.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { answerOf, Echo, grpcHead, rawSession, settled } from "../support/grpc.ts";
import { groupOf, RawClient, route, startServer, turn } from "../support/http.ts";

const stallMs = httpLimits.receiveStallMs * 1.5;
const methods = [unary(Echo.Say, "server.health", (message) => message)];
const echo = route("POST /echo", (request) => ({ status: 200, body: request.text }));
const upload = route(
  "PUT /upload",
  async (request) => {
    let bytes = 0;
    for await (const piece of request.stream) bytes += (piece as Buffer).length;
    return { status: 200, body: String(bytes) };
  },
  { body: "stream" },
);

async function started() {
  const clock = new TestClock();
  const server = await startServer({ groups: [groupOf("main", [echo, upload])], methods, clock });
  const count = (what: string) => Number(new RegExp(`${what} (\\d+)`).exec(server.metrics.text())?.[1]);
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 1_000) {
      await clock.advance(1_000);
      for (let turns = 0; turns < 5; turns++) await turn();
    }
  };
  return { server, clock, count, pass };
}

it("a body that stops in the middle gets 408 after ten seconds, and its memory is free", async () => {
  const { server, count, pass } = await started();
  const client = new RawClient(server);
  client.send("POST /echo HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\nhalf");
  while (count("longshore_http_receiving_bytes") < 4) await turn();
  await pass(stallMs);
  expect(await client.closed()).toMatch(/HTTP\/1.1 408 .*receiveStallMs/s);
  expect(count("longshore_http_receiving_bytes")).toBe(0);
  expect(count("longshore_http_in_flight")).toBe(0);
});

it("an upload that stops in the middle is ended", async () => {
  const { server, count, pass } = await started();
  const client = new RawClient(server);
  client.send("PUT /upload HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\nhalf");
  while (count("longshore_http_in_flight") < 1) await turn();
  await pass(stallMs);
  await client.closed();
  expect(count("longshore_http_in_flight")).toBe(0);
});

it("a body that arrives slowly is read", async () => {
  const { server, count, pass } = await started();
  const client = new RawClient(server);
  const piece = "x".repeat((httpLimits.receiveRate * httpLimits.receiveStallMs) / 1_000);
  client.send(`POST /echo HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${10 * piece.length}\r\n\r\n`);
  for (let sent = 1; sent <= 10; sent++) {
    client.send(piece);
    if (sent < 10) while (count("longshore_http_receiving_bytes") < sent * piece.length) await turn();
    if (sent < 10) await pass(httpLimits.receiveStallMs * 0.7);
  }
  await client.until(piece.repeat(10));
});

it("a body that arrives byte by byte gets 408 long before its time limit", async () => {
  const { server, count, pass } = await started();
  const client = new RawClient(server);
  client.send("POST /echo HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n");
  for (let sent = 1; sent <= 2; sent++) {
    client.send("x");
    while (count("longshore_http_receiving_bytes") < sent) await turn();
    await pass(httpLimits.receiveStallMs * 0.9);
  }
  expect(await client.closed()).toMatch(/HTTP\/1.1 408 .*receiveRate/s);
  expect(count("longshore_http_receiving_bytes")).toBe(0);
});

it("an upload that arrives byte by byte is ended", async () => {
  const { server, count, pass } = await started();
  const client = new RawClient(server);
  client.send("PUT /upload HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n");
  while (count("longshore_http_in_flight") < 1) await turn();
  for (let sent = 1; sent <= 2; sent++) {
    client.send("x");
    await pass(httpLimits.receiveStallMs * 0.9);
  }
  await client.closed();
  expect(count("longshore_http_in_flight")).toBe(0);
});

it("a gRPC message that arrives byte by byte ends its call", async () => {
  const { server, count, pass } = await started();
  const stream = rawSession(server.port).request(grpcHead(Echo.Say.path));
  stream.write(Buffer.from([0, 0, 0, 0, 100]));
  const answer = answerOf(stream);
  for (let sent = 1; sent <= 2; sent++) {
    stream.write(Buffer.from([1]));
    while (count("longshore_http_receiving_bytes") < 5 + sent) await turn();
    await pass(httpLimits.receiveStallMs * 0.9);
  }
  expect((await answer).head["grpc-status"]).toBe("4");
  expect(count("longshore_http_in_flight")).toBe(0);
});

it("a gRPC message that stops in the middle ends its call after ten seconds", async () => {
  const { server, count, pass } = await started();
  const sessions = Array.from({ length: 5 }, () => rawSession(server.port));
  await Promise.all(sessions.map(settled));
  const calls = [...sessions, ...sessions, ...sessions, ...sessions].map((session) => {
    const stream = session.request(grpcHead(Echo.Say.path));
    stream.write(Buffer.from([0, 0, 0, 0, 100, 1, 2]));
    return answerOf(stream);
  });
  while (count("longshore_http_receiving_bytes") < 140) await turn();
  await pass(stallMs);
  for (const { head } of await Promise.all(calls)) expect(head["grpc-status"]).toBe("4");
  expect(count("longshore_http_receiving_bytes")).toBe(0);
  expect(count("longshore_http_in_flight")).toBe(0);
});
