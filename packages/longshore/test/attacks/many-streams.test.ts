// The attacker has no token and floods the server over one HTTP/2 connection: calls that arrive together, streams that are opened and
// immediately reset, messages in pieces of one byte. The server must begin a limited number of calls in one turn of the event loop. It must
// end a connection that only wastes time.

import { expect, it } from "vitest";
import { serverStream, unary } from "../../src/net/grpc/service.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { Echo } from "../support/grpc.ts";
import { call, groupOf, RawClient, route, startServer, turn } from "../support/http.ts";
import { callFields, frame, goawayIn, preface } from "../support/raw-frames.ts";
import { countTurns } from "../support/turn-count.ts";

const calm = 11;
const message = Buffer.from([0, 0, 0, 0, 0]);
const cancel = Buffer.from([0, 0, 0, 8]);
const opening = (path: string) => (stream: number) => frame(1, 4, stream, callFields(path));
const open = opening(Echo.Say.path);

async function started() {
  const begun = countTurns();
  const say = unary(Echo.Say, "task.report", () => {
    begun.add();
    return {};
  });
  const count = serverStream(Echo.Count, "task.report", () => begun.add());
  const other = route("GET /other", () => ({ status: 200, body: "here" }));
  // A client that is known has as many streams from the first call on.
  const limits = { strangerStreams: 256 };
  const server = await startServer({ groups: [groupOf("main", [other])], methods: [say, count], limits, clock: new TestClock() });
  const client = new RawClient(server);
  const send = (...frames: Buffer[]) => client.send(Buffer.concat(frames).toString("latin1"));
  send(preface, frame(4, 0, 0));
  while (client.received.length === 0) await turn();
  const goaway = () => goawayIn(Buffer.from(client.received, "latin1"));
  const figure = (name: string) => Number(new RegExp(`${name}\\S* (\\d+)`).exec(server.metrics.text())?.[1] ?? 0);
  return { server, client, send, begun, goaway, figure };
}

/** Stream ids, as clients number them. */
const ids = (count: number) => Array.from({ length: count }, (_, at) => 2 * at + 1);

it("a few of the calls that arrive together begin in each turn, and all are answered", async () => {
  const { client, send, begun } = await started();
  send(...ids(250).flatMap((id) => [open(id), frame(0, 1, id, message)]));
  while (begun.total < 250) await turn();
  expect(begun.most).toBeLessThanOrEqual(64);
  // Each answer ends with trailers: HEADERS with END_STREAM and END_HEADERS.
  while (client.received.split("\x01\x05\0\0").length <= 250) await turn();
});

it("streams that are opened and immediately reset end their connection", async () => {
  const { server, client, send, begun, goaway } = await started();
  send(...ids(400).flatMap((id) => [open(id), frame(3, 0, id, cancel)]));
  await client.closed();
  expect(goaway()).toBe(calm);
  expect(begun.total).toBe(0);
  expect(server.metrics.text()).toContain('longshore_http_broken_total{status="flood"} 1');
  expect(server.metrics.text()).toContain("longshore_http_in_flight 0");
  expect((await call(`${server.url}/other`)).text).toBe("here");
});

it("calls that are cancelled a few at a time do not count as a flood", async () => {
  const { client, send, begun, figure } = await started();
  for (const id of ids(200)) {
    send(open(id), frame(3, 0, id, cancel));
    while (figure("longshore_grpc_calls_total{") < (id + 1) / 2) await turn();
  }
  send(open(401), frame(0, 1, 401, message));
  while (begun.total === 0) await turn();
  expect(client.socket.destroyed).toBe(false);
});

it("very many pieces of one byte in one turn end their connection", async () => {
  const { client, send, goaway } = await started();
  send(open(1), ...Array.from({ length: 6_000 }, () => frame(0, 0, 1, Buffer.alloc(1))));
  await client.closed();
  expect(goaway()).toBe(calm);
});

it("the same pieces end the connection of streams whose call has not begun, and of requests that are not calls", async () => {
  for (const type of ["application/grpc", "text/plain"]) {
    const { client, send, goaway } = await started();
    const streams = ids(80).map((id) => frame(1, 4, id, callFields(Echo.Say.path, type)));
    send(...streams, ...Array.from({ length: 6_000 }, () => frame(0, 0, 159, Buffer.alloc(1))));
    await client.closed();
    expect(goaway()).toBe(calm);
  }
});

it("a message that continues to arrive in pieces of one byte ends its call", async () => {
  const { send, figure } = await started();
  send(open(1), frame(0, 0, 1, Buffer.from([0, 0, 0, 255, 255])));
  for (let sent = 1_000; sent <= 10_000; sent += 1_000) {
    send(...Array.from({ length: 1_000 }, () => frame(0, 0, 1, Buffer.alloc(1))));
    while (sent < 10_000 && figure("longshore_http_receiving_bytes") < 5 + sent) await turn();
  }
  while (figure(`longshore_grpc_calls_total{method="${Echo.Say.path}",code="RESOURCE_EXHAUSTED"`) < 1) await turn();
});

it("streams that wait for their turn when the server closes are notified", async () => {
  const { server, client, send, begun } = await started();
  send(...ids(200).flatMap((id) => [opening(Echo.Count.path)(id), frame(0, 1, id, message)]));
  while (begun.total === 0) await turn();
  // No time passes, so nothing is disconnected.
  await server.close();
  await client.closed();
  expect(server.metrics.text()).toContain("longshore_http_in_flight 0");
});
