// Connections that are served without node:http, and how they are handed over to it. Clients must not notice a difference: they get the same
// bytes, for any division of their requests into pieces.

import { connect } from "node:net";
import { Readable } from "node:stream";
import { describe, expect, it, onTestFinished } from "vitest";
import { call, groupOf, latch, RawClient, route, startServer, type TestServer, turn } from "../../../test/support/http.ts";
import type { HttpReply, HttpRequest, Route } from "../http/http.ts";
import { DirectExchange } from "./direct-exchange.ts";
import { directBytesMax } from "./direct-request.ts";
import type { HttpLimits } from "./limits.ts";

const echo = route("POST /echo", (request) => ({ status: 200, headers: { "x-by": carrier(request) }, body: `<${request.text}>` }));
const hello = route("GET /hello", (request) => ({ status: 200, headers: { "x-by": carrier(request) }, body: "hello" }));
const helloRequest = "GET /hello HTTP/1.1\r\nhost: localhost\r\n\r\n";

function carrier(request: HttpRequest): string {
  return request instanceof DirectExchange ? "direct" : "node";
}

function serve(routes: readonly Route[] = [echo, hello], limits: Partial<HttpLimits> = {}) {
  return startServer({ groups: [groupOf("main", routes)], limits });
}

function post(body: string, path = "/echo"): string {
  return `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

function handedOver(server: TestServer): number {
  return Number(/^longshore_http_handed_over_total (\d+)$/m.exec(server.metrics.text())?.[1] ?? 0);
}

/** A response without its date, which may differ, and without the mark of who served it. */
function comparable(answer: string): string {
  return answer.replace(/Date: [^\r]+/, "Date: -").replace(/x-by: \w+/, "x-by: -");
}

describe("a connection that is served directly", () => {
  it("serves ten thousand requests without a growth of memory", async () => {
    const listeners: string[] = [];
    const watched = route("POST /x", (request) => {
      const { socket } = (request as DirectExchange).connection;
      listeners.push(
        socket
          .eventNames()
          .map((name) => `${String(name)} ${socket.listenerCount(name)}`)
          .join(),
      );
      return { status: 200, body: request.text, undelivered: () => undefined };
    });
    const server = await serve([watched]);
    const client = new RawClient(server);
    for (let sent = 0; sent < 10_000; sent++) {
      client.received = "";
      client.send(post(String(sent), "/x"));
      await client.until(`\r\n\r\n${sent}`);
    }
    expect(new Set(listeners).size).toBe(1);
    expect([server.connections(), handedOver(server)]).toEqual([1, 0]);
    expect(server.metrics.text()).toContain("longshore_http_in_flight 0\n");
  }, 60_000);

  it("sends the same bytes as node:http", async () => {
    const replies: Record<string, HttpReply> = {
      empty: { status: 200 },
      text: { status: 201, headers: { "content-type": "text/plain", "X-Odd": "a\tb" }, body: "text" },
      wide: { status: 200, body: "é☃" },
      bytes: { status: 200, body: new Uint8Array([0, 255, 13, 10]) },
      none: { status: 204 },
      same: { status: 304, headers: { etag: '"a"' } },
      odd: { status: 299, body: "?" },
      undelivered: { status: 200, body: "granted", undelivered: () => undefined },
      large: { status: 200, body: "z".repeat(200_000) },
    };
    const server = await serve([route("POST /:name", (request) => replies[request.params.name as string] ?? { status: 404 })]);
    const ask = async (name: string, firstPiece: number) => {
      const client = new RawClient(server);
      const before = handedOver(server);
      const request = post("x", `/${name}`);
      client.send(request.slice(0, firstPiece));
      while (firstPiece < request.length && handedOver(server) === before) await turn();
      client.send(request.slice(firstPiece));
      const head = (await client.until("\r\n\r\n")).split("\r\n\r\n", 1)[0] as string;
      const length = Number(/content-length: (\d+)/.exec(head)?.[1] ?? 0);
      while (client.received.length < head.length + 4 + length) await turn();
      return comparable(client.received);
    };
    for (const name of [...Object.keys(replies), "unknown"]) expect(await ask(name, 10_000)).toBe(await ask(name, 20));
    expect(handedOver(server)).toBe(Object.keys(replies).length + 1);
  });

  it("is used for the requests of common clients, with and without a body", async () => {
    const server = await serve();
    expect((await call(`${server.url}/echo`, { method: "POST", body: "text" })).headers["x-by"]).toBe("direct");
    expect((await call(`${server.url}/echo`, { method: "POST", body: Buffer.from("bytes") })).headers["x-by"]).toBe("direct");
    const fetched = await fetch(`${server.url}/echo`, { method: "POST", body: "{}", headers: { "content-type": "application/json" } });
    expect([fetched.headers.get("x-by"), await fetched.text()]).toEqual(["direct", "<{}>"]);
    expect((await fetch(`${server.url}/hello`)).headers.get("x-by")).toBe("direct");
  });

  it("refuses a header that could break out of its line, as node:http does", async () => {
    const server = await serve([route("POST /x", () => ({ status: 200, headers: { "x-bad": "a\r\nset-cookie: b" } }))]);
    for (const carried of ["directly", "by node:http"] as const) {
      const answer = await call(`${server.url}/x`, { method: "POST", carried });
      expect([answer.status, answer.headers["set-cookie"], answer.headers["x-bad"]]).toEqual([500, undefined, undefined]);
    }
  });

  it("is not closed while a request waits, but after it has been idle for long enough", async () => {
    const waiting = latch();
    const answer = latch<HttpReply>();
    const wait = route("GET /wait", () => {
      waiting.open();
      return answer.opened;
    });
    const server = await serve([wait, hello], { keepAliveMs: 30, headersMs: 30 });
    const poll = new RawClient(server).send("GET /wait HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await waiting.opened;
    // Another connection has been idle for more than twice the longest poll.
    for (let round = 0; round < 2; round++) await new RawClient(server).send(helloRequest).closed();
    expect(poll.received).toBe("");
    answer.open({ status: 200, body: "granted" });
    expect(await poll.closed()).toContain("granted");
    expect(handedOver(server)).toBe(0);
  });

  it("is ended when the server closes: at once when it is idle, otherwise after its response", async () => {
    const waiting = latch();
    const answer = latch<HttpReply>();
    const wait = route("GET /wait", () => {
      waiting.open();
      return answer.opened;
    });
    const server = await serve([wait, hello]);
    const idle = new RawClient(server).send(helloRequest);
    await idle.until("hello");
    const busy = new RawClient(server).send("GET /wait HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await waiting.opened;
    const closed = server.close();
    await idle.closed();
    answer.open({ status: 200, body: "in time" });
    expect(await busy.closed()).toMatch(/Connection: close\r\n\r\nin time$/);
    await closed;
    expect(handedOver(server)).toBe(0);
  });
});

describe("a connection is passed on", () => {
  it("when a request arrives in two pieces, cut at any place", async () => {
    const server = await serve();
    const request = Buffer.from(post('{"snow":"☃"}'));
    const whole = new RawClient(server);
    whole.socket.write(request);
    const expected = comparable(await whole.until("}>"));
    // HTTP/2's preface begins with the same letter, so nothing can be handed over yet.
    for (let cut = 2; cut < request.length; cut++) {
      const client = new RawClient(server);
      client.socket.write(request.subarray(0, cut));
      while (handedOver(server) < cut - 1) await turn();
      client.socket.write(request.subarray(cut));
      expect(comparable(await client.until("}>"))).toBe(expected);
      client.socket.destroy();
    }
    expect(handedOver(server)).toBe(request.length - 2);
  });

  it("in the middle of its life, and continues with later requests", async () => {
    const server = await serve();
    const client = new RawClient(server);
    const ask = async (request: string, by: string) => {
      client.received = "";
      client.send(request);
      expect(await client.until("\r\n\r\nhello")).toContain(`x-by: ${by}`);
    };
    await ask(helloRequest, "direct");
    await ask(helloRequest, "direct");
    await ask("GET /hello HTTP/1.1\r\nhost: localhost\r\nx: 1\r\nx: 2\r\n\r\n", "node");
    await ask(helloRequest, "node");
    expect([server.connections(), handedOver(server)]).toEqual([1, 1]);
  });

  it("for methods and versions that are not served directly", async () => {
    const server = await serve();
    expect(await new RawClient(server).send("HEAD /hello HTTP/1.1\r\nhost: localhost\r\n\r\n").until("\r\n\r\n")).toContain("x-by: node");
    expect(await new RawClient(server).send("GET /hello HTTP/1.0\r\nhost: localhost\r\n\r\n").closed()).toMatch(/x-by: node.*hello$/s);
    const closing = new RawClient(server).send("GET /hello HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    expect(await closing.closed()).toMatch(/x-by: node.*hello$/s);
    expect(handedOver(server)).toBe(3);
  });

  it("for routes that read or send a stream, or send events", async () => {
    const read = route("PUT /read", async (request) => ({ status: 200, body: String((await request.stream.toArray()).length) }), {
      body: "stream",
    });
    const stream = route("GET /stream", () => ({ status: 200, body: Readable.from(["a", "b"]) }), { openEnded: true });
    const events = route("GET /events", () => ({ status: 200, events: (sink) => sink.send({ data: "x" }) }), { openEnded: true });
    const server = await serve([read, stream, events]);
    expect((await call(`${server.url}/read`, { method: "PUT", body: "abc" })).text).toBe("1");
    expect((await call(`${server.url}/stream`)).text).toBe("ab");
    await new RawClient(server).send("GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n").until("data: x\n\n");
    expect(handedOver(server)).toBe(3);
  });

  it("but not for a route that is not marked as open-ended: a stream of such a route is a programming mistake", async () => {
    const content = Readable.from(["a"]);
    const server = await serve([route("GET /x", () => ({ status: 200, body: content }))]);
    for (const carried of ["directly", "by node:http"] as const) expect((await call(`${server.url}/x`, { carried })).status).toBe(500);
    expect(content.destroyed).toBe(true);
    expect(server.log.join()).toContain("openEnded");
  });

  it("when its client does not read, so that responses do not pile up", async () => {
    let handled = 0;
    // More than the two socket buffers hold.
    const body = "z".repeat(16_000_000);
    const server = await serve([route("GET /large", () => ({ status: ++handled && 200, body }))]);
    const client = connect(server.port, server.host);
    onTestFinished(() => void client.destroy());
    const ask = () => client.write("GET /large HTTP/1.1\r\nhost: localhost\r\n\r\n");
    client.pause();
    ask();
    while (handled < 1) await turn();
    for (let sent = 1; sent < 8; sent++) ask();
    for (let turns = 0; turns < 100; turns++) await turn();
    expect(handled).toBe(1);
    let received = 0;
    client.on("data", (chunk: Buffer) => {
      received += chunk.length;
    });
    client.resume();
    while (received < 8 * body.length) await turn();
    expect([handled, handedOver(server)]).toEqual([8, 1]);
  });

  it("when bytes that are not HTTP, or too large, follow valid requests", async () => {
    const server = await serve([hello], { headerBytes: 1_000 });
    const attempts = { 400: "garbage\r\n\r\n", 431: `GET /hello HTTP/1.1\r\nhost: localhost\r\nx: ${"y".repeat(2_000)}\r\n\r\n` };
    for (const [status, bytes] of Object.entries(attempts)) {
      const client = new RawClient(server).send(helloRequest);
      await client.until("hello");
      expect(await client.send(bytes).closed()).toMatch(new RegExp(`hello.*HTTP/1.1 ${status} .*connection: close`, "s"));
    }
    expect(server.metrics.text()).toContain('longshore_http_broken_total{status="400"} 1\n');
    expect(server.metrics.text()).toContain('longshore_http_broken_total{status="431"} 1\n');
  });
});

describe("bytes that arrive during a request", () => {
  async function setup() {
    const waiting = latch<HttpRequest>();
    const answer = latch<HttpReply>();
    const wait = route("GET /wait", (request) => {
      waiting.open(request);
      return answer.opened;
    });
    const server = await serve([wait, echo, hello]);
    const client = new RawClient(server).send("GET /wait HTTP/1.1\r\nhost: localhost\r\n\r\n");
    const request = (await waiting.opened) as DirectExchange;
    /** Waits until the server has read this many bytes on that connection. */
    const received = async (bytes: number) => {
      while (request.connection.socket.bytesRead < bytes) await turn();
    };
    return { server, client, answer, request, received };
  }

  it("are answered after it, in order", async () => {
    const { server, client, answer, request, received } = await setup();
    const early = helloRequest + post("early") + post("late").slice(0, -2);
    const before = request.connection.socket.bytesRead;
    client.send(early);
    await received(before + early.length);
    expect(client.received).toBe("");
    answer.open({ status: 200, body: "first" });
    await client.until("<early>");
    client.send("te");
    expect(await client.until("<late>")).toMatch(/first.*hello.*<early>.*<late>/s);
    expect(handedOver(server)).toBe(1);
  });

  it("are not read without end", async () => {
    const { client, answer, request } = await setup();
    const count = 3_000;
    client.send(post("x".repeat(50)).repeat(count));
    while (!request.connection.socket.isPaused()) await turn();
    expect(request.connection.socket.bytesRead).toBeLessThan(5 * directBytesMax);
    answer.open({ status: 200, body: "first" });
    while (client.received.split("HTTP/1.1 200").length - 1 < count + 1) await turn();
    expect(client.received).toMatch(/first/);
  });

  it("do not prevent the server from noticing that the client has disconnected", async () => {
    const { server, client, request, received } = await setup();
    const gone = new Promise((resolve) => request.gone.addEventListener("abort", resolve));
    const before = request.connection.socket.bytesRead;
    client.send(helloRequest);
    await received(before + helloRequest.length);
    client.socket.destroy();
    await gone;
    while (server.connections() > 0) await turn();
    expect(server.metrics.text()).toContain("longshore_http_in_flight 0\n");
  });
});
