// TLS on the one port: both versions of HTTP, and clients that never finish.

import { readFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { request } from "node:https";
import { connect as dial } from "node:net";
import { connect, type TLSSocket } from "node:tls";
import { describe, expect, it, onTestFinished } from "vitest";
import { answerOf, channelTo, Echo } from "../../../test/support/grpc.ts";
import { type Answer, groupOf, latch, route, startServer } from "../../../test/support/http.ts";
import { until } from "../../../test/support/until.ts";
import { serve as serveAll } from "../../server/server.ts";
import { TestClock } from "../../testing/clock.ts";
import { serverStream, unary } from "../grpc/service.ts";
import type { ListenOptions } from "./listener.ts";

const pem = (name: string) => readFileSync(new URL(`../../../test/fixtures/tls/${name}.pem`, import.meta.url), "utf8");
const tls = { cert: pem("cert"), key: pem("key") };
const ca = tls.cert;

const methods = [unary(Echo.Say, "task.report", (message) => message), serverStream(Echo.Count, "server.health", () => {})];
const routes = [
  route("GET /hello", () => ({ status: 200, body: "hello" })),
  route("POST /echo", ({ text }) => ({ status: 200, body: text })),
  route(
    "GET /events",
    () => ({
      status: 200,
      events: (sink) => {
        sink.send({ data: "one" });
        sink.end();
      },
    }),
    { openEnded: true },
  ),
];

function serve(options: Partial<ListenOptions> = {}) {
  return startServer({ groups: [groupOf("main", routes)], methods, tls, ...options });
}

function call(url: string, body?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { ca, agent: false, method: body === undefined ? "GET" : "POST" }, (response) => {
      let text = "";
      response.on("data", (chunk) => {
        text += chunk;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

/** A TLS client. Resolves with the result of the handshake. */
function shake(port: number, options: object): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", ca, ...options }, () => resolve(socket));
    socket.on("error", reject);
    onTestFinished(() => void socket.destroy());
  });
}

describe("with TLS", () => {
  it("routes are served over HTTP/1.1, directly and by node:http", async () => {
    const server = await serve();
    expect(server.url).toBe(`https://127.0.0.1:${server.port}`);
    expect((await call(`${server.url}/hello`)).text).toBe("hello");
    expect((await call(`${server.url}/echo`, "x".repeat(1_000_000))).text.length).toBe(1_000_000);
    expect((await call(`${server.url}/events`)).text).toContain("data: one");
  });

  it("gRPC is served, calls and streams", async () => {
    const server = await serve();
    const channel = channelTo(server.url, { tls: { ca } });
    expect(await channel.unary(Echo.Say, { text: "secret", blob: new Uint8Array(500_000) })).toMatchObject({ text: "secret" });
    const opened = latch();
    const reading = channel.serverStream(Echo.Count, {}, { opened: () => opened.open() }).next();
    await opened.opened;
    const ended = expect(reading).rejects.toMatchObject({ code: 14, message: "The server is shutting down." });
    await server.close();
    await ended;
    expect(server.connections()).toBe(0);
  });

  it("a client that does not trust the certificate gets the reason", async () => {
    const server = await serve();
    await expect(channelTo(server.url).unary(Echo.Say, {})).rejects.toMatchObject({
      code: 14,
      message: expect.stringContaining("self-signed certificate"),
    });
  });

  it("clients that offer both versions get HTTP/1.1, those that offer only h2 get h2, and others are refused", async () => {
    const { port } = await serve();
    expect((await shake(port, { ALPNProtocols: ["h2", "http/1.1"] })).alpnProtocol).toBe("http/1.1");
    expect((await shake(port, { ALPNProtocols: ["grpc-exp", "h2"] })).alpnProtocol).toBe("h2");
    expect((await shake(port, {})).alpnProtocol).toBe(false);
    await expect(shake(port, { ALPNProtocols: ["spdy/3"] })).rejects.toThrow(/alert/);
  });

  it("a client cannot make the server repeat the handshake on the same connection", async () => {
    const { port } = await serve();
    const socket = await shake(port, { maxVersion: "TLSv1.2" });
    socket.removeAllListeners("error");
    const outcome = new Promise<string>((resolve) => {
      socket.once("error", ({ message }) => resolve(message));
      socket.renegotiate({}, (error) => resolve(error === null ? "another handshake" : error.message));
    });
    expect(await outcome).toMatch(/no renegotiation/);
  });

  it("plain HTTP/2 gets an explanation of what is served", async () => {
    const server = await serve();
    const session = connectHttp2(server.url, { ca });
    onTestFinished(() => session.destroy());
    expect((await answerOf(session.request({ ":path": "/hello" }))).head[":status"]).toBe(415);
  });

  it("a client without TLS is counted and disconnected", async () => {
    const server = await serve();
    const socket = dial(server.port, "127.0.0.1");
    socket.on("error", () => {});
    socket.resume();
    socket.write("GET /hello HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await new Promise((resolve) => socket.once("close", resolve));
    expect(server.metrics.text()).toContain('longshore_http_broken_total{status="tls"} 1');
  });

  it("a client that never completes the handshake is disconnected after a time", async () => {
    const server = await serve({ limits: { headersMs: 30 } });
    const socket = dial(server.port, "127.0.0.1");
    socket.on("error", () => {});
    socket.resume();
    await new Promise((resolve) => socket.once("close", resolve));
  });

  it("closing does not wait for handshakes", async () => {
    const clock = new TestClock();
    const server = await serve({ clock });
    const socket = dial(server.port, "127.0.0.1");
    socket.on("error", () => {});
    socket.resume();
    await new Promise((resolve) => socket.once("connect", resolve));
    // When a second connection has received a response, the first has been accepted.
    await call(`${server.url}/hello`);
    await until(() => server.connections() === 0);
    await server.close();
    expect(clock.now()).toBe(new TestClock().now());
  });

  it("a certificate that does not match its key is refused at the start", async () => {
    const bad = serveAll({ ephemeral: true, port: 0, tls: { cert: tls.cert, key: "nonsense" } });
    await expect(bad).rejects.toMatchObject({
      code: "LONGSHORE_BAD_CONFIG",
      message: expect.stringContaining("cannot be used"),
      detail: { field: "tls" },
    });
  });

  it("serve() returns its URL", async () => {
    const server = await serveAll({ ephemeral: true, port: 0, tls });
    onTestFinished(() => server.close());
    expect(server.url).toBe(`https://127.0.0.1:${server.port}`);
    expect((await call(`${server.url}/health`)).status).toBe(200);
  });
});
