// The attacker requests large responses and never reads them, so that all of them wait in the server's memory. Over HTTP/1.1 it does not
// read from the socket, over HTTP/2 it has a window of 0. The attacker holds a worker token. The server must stay within its memory budget,
// report this to other callers, and disconnect a reader that reads nothing for half a minute. A slow reader must get its complete response.

import { connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { Readable } from "node:stream";
import { expect, it, onTestFinished } from "vitest";
import { unary } from "../../src/net/grpc/service.ts";
import type { EventSink } from "../../src/net/http/http.ts";
import { httpLimits } from "../../src/net/listener/limits.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { Echo, grpcHead } from "../support/grpc.ts";
import { call, groupOf, route, startServer, type TestServer, turn } from "../support/http.ts";
import { startStepflow } from "../support/stepflow-server.ts";

/** More than the buffers of the system hold. */
const large = "z".repeat(20_000_000);
const stallMs = httpLimits.sendStallMs * 1.5;

function heldBy(server: TestServer): number {
  return Number(/longshore_http_sending_bytes (\d+)/.exec(server.metrics.text())?.[1]);
}

/** Sends the request and does not read the response. */
function ask(server: { port: number }, path: string, head = ""): Socket {
  const socket = connect(server.port, "127.0.0.1");
  socket.on("error", () => {});
  onTestFinished(() => void socket.destroy());
  socket.pause();
  socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n${head}\r\n`);
  return socket;
}

const whole = route("GET /large", () => ({ status: 200, body: large }));
const streamed = route("GET /stream", () => ({ status: 200, body: Readable.from(pieces(), { objectMode: false }) }), { openEnded: true });

function* pieces() {
  for (let at = 0; at < 400; at++) yield Buffer.alloc(65_536);
}

/** Lets time pass, and lets sockets and promises proceed meanwhile. */
async function pass(clock: TestClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 1_000) {
    await clock.advance(1_000);
    for (let turns = 0; turns < 5; turns++) await turn();
  }
}

it.each(["", "connection: close\r\n"])("responses that are not read use at most the budget (%j)", async (head) => {
  const clock = new TestClock();
  const server = await startServer({ groups: [groupOf("main", [whole])], clock, limits: { sendingBytes: 50_000_000 } });
  ask(server, "/large", head);
  ask(server, "/large", head);
  while (heldBy(server) < 40_000_000) await turn();
  const refused = await call(`${server.url}/large`);
  expect([refused.status, refused.text]).toEqual([503, expect.stringContaining("50000000 bytes")]);
  expect(refused.headers["retry-after"]).toBeDefined();
  // Both are disconnected, and their memory is free again.
  await pass(clock, stallMs);
  while (server.connections() > 0) await turn();
  expect(heldBy(server)).toBe(0);
  expect((await call(`${server.url}/large`)).text.length).toBe(large.length);
});

it("a streamed response that is not read is ended", async () => {
  const clock = new TestClock();
  const server = await startServer({ groups: [groupOf("main", [streamed])], clock });
  ask(server, "/stream");
  while (heldBy(server) === 0) await turn();
  await pass(clock, stallMs);
  while (server.connections() > 0) await turn();
  expect(heldBy(server)).toBe(0);
});

it.each(["/large", "/stream"])("a slow reader gets %s completely", async (path) => {
  const clock = new TestClock();
  const server = await startServer({ groups: [groupOf("main", [whole, streamed])], clock });
  const socket = ask(server, path, "connection: close\r\n");
  let received = 0;
  const ended = new Promise<void>((resolve) => socket.once("end", resolve));
  socket.on("data", (bytes) => {
    received += bytes.length;
    socket.pause();
  });
  let over = false;
  void ended.then(() => {
    over = true;
  });
  while (!over) {
    // A second passes for each piece that is read.
    await clock.advance(1_000);
    socket.resume();
    await turn();
  }
  expect(received).toBeGreaterThan(path === "/large" ? large.length : 400 * 65_536);
});

it("a gRPC call whose caller opens no window uses at most the budget and is ended", async () => {
  const clock = new TestClock();
  const methods = [unary(Echo.Say, "task.report", () => ({ text: "z".repeat(5_000_000) }))];
  const server = await startServer({ groups: [groupOf("main", [whole])], methods, clock, limits: { sendingBytes: 12_000_000 } });
  const session = connectHttp2(server.url, { settings: { initialWindowSize: 0 } });
  onTestFinished(() => session.destroy());
  session.on("error", () => {});
  const calls = Array.from({ length: 3 }, () => {
    const stream = session.request(grpcHead(Echo.Say.path));
    stream.on("error", () => {});
    stream.end(Buffer.from([0, 0, 0, 0, 0]));
    const status = new Promise<unknown>((resolve) => {
      stream.once("response", (headers) => resolve(headers["grpc-status"]));
      stream.once("close", () => resolve("cut"));
    });
    const closed = new Promise<void>((resolve) => stream.once("close", resolve));
    return { status, closed };
  });
  // The headers of a response that has begun have no status yet. The third call is refused at once.
  expect(await Promise.all(calls.map(({ status }) => status))).toEqual([undefined, undefined, "8"]);
  expect(heldBy(server)).toBeLessThanOrEqual(12_000_000);
  await pass(clock, stallMs);
  await Promise.all(calls.map(({ closed }) => closed));
  expect(heldBy(server)).toBe(0);
});

it("a large blob is sent as JSON without being in memory completely", async () => {
  const { url, call: ask, engine } = await startStepflow();
  const text = "z".repeat(10_000_000);
  const { body } = await ask("POST", "/blobs", { data: text });
  const held = async () => Number(/longshore_http_sending_bytes (\d+)/.exec((await call(`${url}/metrics`)).text)?.[1]);
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  socket.pause();
  socket.write(`GET /api/v1/blobs/${body.blobId} HTTP/1.1\r\nhost: localhost\r\n\r\n`);
  let most = 0;
  while (most === 0) most = await held();
  expect(most).toBeLessThan(1_000_000);
  expect((await ask("GET", `/blobs/${body.blobId}`)).body).toMatchObject({ data: text, blobId: body.blobId });
  expect(engine.storage.unavailable).toBeNull();
});

it("event readers that never read share one budget: above it, slow readers are disconnected, and a normal reader is served", async () => {
  const clock = new TestClock();
  const sinks: EventSink[] = [];
  const events = route("GET /events", () => ({ status: 200, events: (sink) => void sinks.push(sink) }), { openEnded: true });
  const server = await startServer({ groups: [groupOf("main", [events])], clock, limits: { eventBytes: 600_000 } });
  for (let readers = 0; readers < 8; readers++) ask(server, "/events");
  while (sinks.length < 8) await turn();
  // Each may use 256 KiB of memory, besides the system's buffers.
  const data = "z".repeat(60_000);
  const left = () => sinks.filter(({ gone }) => !gone.aborted).length;
  for (let turns = 0; turns < 2_000; turns++) {
    for (const sink of sinks) sink.send({ data });
    await turn();
  }
  expect([1, 2]).toContain(left());
  const reading = ask(server, "/events");
  reading.resume();
  while (sinks.length < 9) await turn();
  sinks.at(-1)?.send({ data: "small" });
  const text = await new Promise<string>((resolve) => reading.once("data", (bytes) => resolve(String(bytes))));
  expect(text).toContain("200 OK");
  expect(sinks.at(-1)?.gone.aborted).toBe(false);
});
