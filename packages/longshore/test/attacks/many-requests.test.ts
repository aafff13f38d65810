// The attacker has no token and sends very many small pieces on one connection at once: pipelined requests, or a body in pieces of one byte.
// The server used to handle everything that arrived together in one turn, and every other caller waited. It must handle a limited number in
// one turn of the event loop, and end a connection that only wastes time.

import { expect, it, vi } from "vitest";
import { BodyRequest } from "../../src/net/listener/body.ts";
import { call, groupOf, RawClient, route, startServer, turn } from "../support/http.ts";
import { countTurns } from "../support/turn-count.ts";

/** How many requests one connection may begin in a turn, and how many more one slice of its bytes may contain. */
const perConnection = 64 + 150;
/** The same for ten connections together: the turn's total, four slices, and the share of each connection. */
const perTurn = 256 + 4 * 150 + 10 * 4;

async function started() {
  const handled = countTurns();
  const hit = route("GET /", () => {
    handled.add();
    return { status: 204 };
  });
  const other = route("GET /other", () => ({ status: 200, body: String(handled.total) }));
  const read = route("POST /read", ({ text }) => ({ status: 200, body: `read ${text.length}` }));
  const server = await startServer({ groups: [groupOf("main", [hit, other, read])] });
  return { server, handled };
}

const request = "GET / HTTP/1.1\r\nhost:localhost\r\n\r\n";
const head = "POST /read HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n";
const piece = "1\r\nx\r\n";

it("a few pipelined requests of one connection begin in each turn, and all are answered", async () => {
  const { server, handled } = await started();
  const client = new RawClient(server).send(request.repeat(5_000));
  while (handled.total < 5_000) await turn();
  expect(handled.most).toBeLessThanOrEqual(perConnection);
  while (client.received.split("204 No Content").length <= 5_000) await turn();
});

it("connections that flood the server together share one turn", async () => {
  const { server, handled } = await started();
  for (let at = 0; at < 10; at++) new RawClient(server).send(request.repeat(2_000));
  while (handled.total < 20_000) await turn();
  expect(handled.most).toBeLessThanOrEqual(perTurn);
});

it("another caller is answered while a flood of requests waits", async () => {
  const { server, handled } = await started();
  new RawClient(server).send(request.repeat(20_000));
  while (handled.total === 0) await turn();
  const { text } = await call(`${server.url}/other`);
  expect(Number(text)).toBeLessThan(5_000);
});

it("a body in pieces of one byte is read over many turns", async () => {
  const { server } = await started();
  const pieces = countTurns();
  const push = BodyRequest.prototype.push;
  vi.spyOn(BodyRequest.prototype, "push").mockImplementation(function (this: BodyRequest, ...args) {
    pieces.add();
    return push.apply(this, args);
  });
  await new RawClient(server).send(`${head}${piece.repeat(9_000)}0\r\n\r\n`).until("read 9000");
  expect(pieces.most).toBeLessThanOrEqual(1_024 + 700);
});

it("an endless body in pieces of one byte ends its connection", async () => {
  const { server } = await started();
  const client = new RawClient(server).send(`${head}${piece.repeat(30_000)}`);
  expect(await client.closed()).toContain("HTTP/1.1 400 ");
  expect(server.metrics.text()).toContain('longshore_http_broken_total{status="400"} 1');
});

it("all pipelined requests begin although the client ends its side after them", async () => {
  const { server, handled } = await started();
  new RawClient(server).send(request.repeat(500)).socket.end();
  while (handled.total < 500) await turn();
  expect(handled.most).toBeLessThanOrEqual(perConnection);
});
