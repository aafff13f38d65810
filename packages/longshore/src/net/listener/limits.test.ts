// Makes each limit small and then reaches it. When a limit belongs to Node, the test uses Node's own timers: short ones, and it waits for the
// event.

import { describe, expect, it } from "vitest";
import { call, groupOf, latch, RawClient, route, startServer } from "../../../test/support/http.ts";
import type { HttpReply } from "../http/http.ts";
import { type HttpLimits, httpLimits } from "./limits.ts";

const hello = route("GET /x", () => ({ status: 200, body: "hello" }));
const post = route("POST /x", () => ({ status: 200, body: "taken" }));

function serve(limits: Partial<HttpLimits>) {
  return startServer({ groups: [groupOf("main", [hello, post])], limits });
}

describe("limits", () => {
  it("keep their order: a long URL gets our error before Node refuses the headers, and sockets stay idle longer than those of Go and reqwest", () => {
    expect(httpLimits.urlChars).toBeLessThan(httpLimits.headerBytes);
    expect(httpLimits.headersMs).toBeLessThan(httpLimits.requestMs);
    expect(httpLimits.keepAliveMs).toBeGreaterThan(90_000);
    expect(httpLimits.eventQuietMs).toBeLessThan(30_000);
    expect(httpLimits.inFlightConnection).toBeLessThan(httpLimits.inFlightToken);
    expect(httpLimits.inFlightToken).toBeLessThan(httpLimits.inFlight);
    expect(httpLimits.streams).toBeLessThan(httpLimits.inFlightConnection);
  });

  it("refuse a long URL with 414 in the group's error format", async () => {
    const server = await serve({ urlChars: 100 });
    const answer = await call(`${server.url}/x?${"q".repeat(100)}`);
    expect(answer.status).toBe(414);
    const detail = { field: "url", expected: "at most 100 characters" };
    expect(JSON.parse(answer.text)).toMatchObject({ kind: "too-large", message: "The URL is longer than 100 characters.", detail });
    expect((await call(`${server.url}/x?q=1`)).status).toBe(200);
  });

  it("refuse large headers with 431 and hang up", async () => {
    const server = await serve({ headerBytes: 1_000 });
    const client = new RawClient(server);
    client.send(`GET /x HTTP/1.1\r\nhost: localhost\r\nx-large: ${"y".repeat(2_000)}\r\n\r\n`);
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 431 .*connection: close/is);
    expect(server.metrics.text()).toContain('longshore_http_broken_total{status="431"} 1\n');
  });

  it("refuse what is not HTTP with 400 and hang up, logging none of it", async () => {
    const server = await serve({});
    const client = new RawClient(server);
    client.send("these-bytes are not http\r\n\r\n");
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 400 /);
    expect(server.log.join()).not.toContain("these-bytes");
  });

  it("end a connection that sends its headers too slowly with 408", async () => {
    const server = await serve({ headersMs: 50, requestMs: 60_000, checkMs: 20 });
    const client = new RawClient(server);
    client.send("GET /x HTTP/1.1\r\nhost: localh");
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 408 /);
  });

  it("end a connection that never sends anything", async () => {
    const server = await serve({ headersMs: 50, requestMs: 60_000, checkMs: 20 });
    await new RawClient(server).closed();
    expect(server.connections()).toBe(0);
  });

  it("end a request whose body does not arrive, before its handler is called", async () => {
    const server = await serve({ headersMs: 50, requestMs: 80, checkMs: 20 });
    const client = new RawClient(server);
    client.send("POST /x HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\nabc");
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 408 /);
    expect(server.metrics.text()).toContain("longshore_http_in_flight 0\n");
  });

  it("do not cut a long poll that waits longer than a request may take to arrive", async () => {
    const waiting = latch();
    const answer = latch<HttpReply>();
    const wait = route("POST /wait", () => {
      waiting.open();
      return answer.opened;
    });
    const server = await startServer({
      groups: [groupOf("main", [wait])],
      limits: { headersMs: 30, requestMs: 40, checkMs: 10, keepAliveMs: 20 },
    });
    const poll = new RawClient(server);
    poll.send("POST /wait HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}");
    await waiting.opened;
    // Node has checked for late sockets and found this one, after the poll had waited longer than every limit.
    const slow = new RawClient(server);
    slow.send("POST /wait HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{");
    await slow.closed();
    answer.open({ status: 200, body: "granted" });
    await poll.until("granted");
  });

  it("close an idle connection when its keep-alive time is over", async () => {
    const server = await serve({ keepAliveMs: 30 });
    const client = new RawClient(server);
    client.send("GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n");
    expect(await client.closed()).toContain("hello");
  });

  it("drop connections above the maximum number", async () => {
    const server = await serve({ connections: 1 });
    const first = new RawClient(server);
    first.send("GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await first.until("hello");
    expect(await new RawClient(server).closed()).toBe("");
    first.received = "";
    first.send("GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await first.until("hello");
  });

  it("refuse pipelined requests above the number in flight with 503 and Retry-After, and accept them again later", async () => {
    const answer = latch<HttpReply>();
    const wait = route("GET /wait", () => answer.opened);
    const server = await startServer({
      groups: [groupOf("main", [wait, hello])],
      limits: { inFlightOwn: 1, inFlight: 1, inFlightReserve: 0 },
    });
    const client = new RawClient(server);
    client.send("GET /wait HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(3));
    const other = await call(`${server.url}/x`);
    expect(other.status).toBe(200);
    answer.open({ status: 200 });
    const received = await client.until("overloaded");
    expect(received.match(/^HTTP\/1\.1 \d+/gm)).toEqual(["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 503"]);
    expect(received).toMatch(/retry-after: 1\r\n/i);
    client.received = "";
    client.send("GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await client.until("hello");
  });
});
