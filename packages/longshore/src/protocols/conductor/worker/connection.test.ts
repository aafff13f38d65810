// The sockets of a worker, as the server sees them.

import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from "node:http2";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, connect, type Server as NetServer } from "node:net";
import { describe, expect, it } from "vitest";
import { anyPoll, ConductorStub } from "../../../../test/support/conductor-stub.ts";
import { setup } from "../../../../test/support/conductor-worker.ts";
import { deferred, until } from "../../../../test/support/until.ts";
import { task } from "../../../core/task.ts";
import { TestClock } from "../../../testing/clock.ts";
import { Client } from "./client.ts";
import { Connection } from "./connection.ts";
import { type ConductorOptions, settingsOf } from "./options.ts";

const pem = (name: string) => readFileSync(new URL(`../../../../test/fixtures/tls/${name}.pem`, import.meta.url), "utf8");
const tls = { key: pem("key"), cert: pem("cert") };

async function listening(server: NetServer): Promise<{ readonly port: number; [Symbol.asyncDispose](): Promise<void> }> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      (server as Server).closeAllConnections?.();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

async function open(url: string, options: ConductorOptions = {}) {
  const connection = await Connection.open(settingsOf(url, { env: {}, ...options }));
  const get = (path = "/api/x") => connection.send({ method: "GET", path, headers: {}, timeoutMs: 30_000 });
  return { connection, get, [Symbol.asyncDispose]: () => connection.close() };
}

describe("connections", () => {
  it("[C-HTTP-02] are at most a hundred, and fifty idle ones stay open", async () => {
    const waiting: (() => void)[] = [];
    const server = createServer((_request, response) => void waiting.push(() => response.end("[]")));
    await using s = await listening(server);
    await using c = await open(`http://127.0.0.1:${s.port}`);
    const connections = () => new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count)));
    const calls = Array.from({ length: 150 }, () => c.get());
    await until(() => waiting.length === 100);
    expect(await connections()).toBe(100);
    let answered = 0;
    for (const call of calls) void call.then(() => answered++);
    while (answered < 150) {
      for (const answer of waiting.splice(0)) answer();
      await new Promise((resolve) => setImmediate(resolve));
    }
    let left = await connections();
    while (left > 50) {
      await new Promise((resolve) => setImmediate(resolve));
      left = await connections();
    }
    expect(left).toBe(50);
  });

  it("[C-HTTP-04, C-HTTP-03] that the server closed while idle, or that break, are replaced at once for calls that may be repeated", async () => {
    await using s = await setup({ tasks: [task("greet", () => null)], before: (stub) => void stub.misbehave(anyPoll, "cut", 1) });
    // The clock does not move, so the second poll did not wait for a backoff.
    await until(() => s.stub.seen(anyPoll).length === 2);
    expect(s.notices.filter(({ level }) => level === "warn")).toEqual([]);
  });

  it("[C-HTTP-03] that never answer are cancelled after the request's timeout", async () => {
    await using stub = await ConductorStub.start();
    stub.misbehave(/^GET/, "hang");
    const settings = settingsOf(stub.url, { env: {}, requestTimeout: 20 });
    const client = await Client.open({ settings, clock: new TestClock(), ended: () => {} });
    await expect(client.taskDef("x")).rejects.toThrow(/Headers Timeout/);
    await client.close();
  });

  it.each(["", "/", "/api", "/api/", "/prefix", "/prefix/api"])("use the same paths when the address ends in %j", async (end) => {
    await using stub = await ConductorStub.start();
    const settings = settingsOf(stub.url + end, { env: {} });
    const client = await Client.open({ settings, clock: new TestClock(), ended: () => {} });
    await client.taskDef("x");
    await client.close();
    expect(stub.requests[0]?.path).toBe(`${end.startsWith("/prefix") ? "/prefix" : ""}/api/metadata/taskdefs/x`);
  });

  it("send the user and password of the address as basic authorization", async () => {
    await using stub = await ConductorStub.start();
    const settings = settingsOf(stub.url.replace("//", "//ada:pw@"), { env: {} });
    const client = await Client.open({ settings, clock: new TestClock(), ended: () => {} });
    await client.taskDef("x");
    await client.close();
    expect(stub.requests[0]?.headers.authorization).toBe(`Basic ${Buffer.from("ada:pw").toString("base64")}`);
  });
});

describe("HTTP/2", () => {
  function secureServer(sessions: Set<ServerHttp2Session>, versions: string[], held?: Promise<void>): Http2SecureServer {
    const server = createSecureServer({ ...tls, allowHTTP1: true }, async (request, response) => {
      versions.push(request.httpVersion);
      await held;
      response.end("ok");
    });
    server.on("session", (session) => sessions.add(session));
    return server;
  }

  it("[C-HTTP-01] is used when the server selects it, with many requests on one connection", async () => {
    const sessions = new Set<ServerHttp2Session>();
    const versions: string[] = [];
    const held = deferred<void>();
    await using s = await listening(secureServer(sessions, versions, held.promise));
    await using c = await open(`https://127.0.0.1:${s.port}`, { tls: { ca: tls.cert } });
    const first = c.get();
    await until(() => versions.length === 1);
    const rest = Array.from({ length: 20 }, () => c.get());
    await until(() => versions.length === 21);
    held.resolve();
    await Promise.all([first, ...rest]);
    expect(new Set(versions)).toEqual(new Set(["2.0"]));
    expect(sessions.size).toBe(1);
    for (const session of sessions) session.destroy();
  });

  it("is replaced by HTTP/1.1 when the server supports nothing else, and when it is switched off", async () => {
    const versions: string[] = [];
    await using plain = await listening(
      createHttpsServer(tls, (request, response) => {
        versions.push(request.httpVersion);
        response.end("ok");
      }),
    );
    await using c = await open(`https://127.0.0.1:${plain.port}`, { tls: { ca: tls.cert } });
    expect((await c.get()).status).toBe(200);
    await using both = await listening(secureServer(new Set(), versions));
    await using off = await open(`https://127.0.0.1:${both.port}`, { tls: { ca: tls.cert }, http2: false });
    expect((await off.get()).text).toBe("ok");
    expect(versions).toEqual(["1.1", "1.1"]);
  });

  it("is replaced by HTTP/1.1 after three failures in a row", async () => {
    const versions: string[] = [];
    const server = createSecureServer({ ...tls, allowHTTP1: true });
    server.on("stream", (stream) => stream.close(2));
    server.on("request", (request, response) => {
      if (request.httpVersion !== "1.1") return;
      versions.push(request.httpVersion);
      response.end("ok");
    });
    const sessions = new Set<ServerHttp2Session>();
    server.on("session", (session) => sessions.add(session));
    await using s = await listening(server);
    await using c = await open(`https://127.0.0.1:${s.port}`, { tls: { ca: tls.cert } });
    for (let failures = 0; failures < 3; failures++) await expect(c.get()).rejects.toThrow();
    expect((await c.get()).text).toBe("ok");
    expect(versions).toEqual(["1.1"]);
    for (const session of sessions) session.destroy();
  });

  it("and TLS refuse a certificate that no authority has signed, by default", async () => {
    await using s = await listening(createHttpsServer(tls, (_request, response) => void response.end("ok")));
    await using strict = await open(`https://127.0.0.1:${s.port}`);
    await expect(strict.get()).rejects.toThrow(/certificate/);
    await using lax = await open(`https://127.0.0.1:${s.port}`, { env: { CONDUCTOR_TLS_INSECURE: "true" } });
    expect((await lax.get()).status).toBe(200);
  });
});

describe("a proxy", () => {
  it("is used with a tunnel", async () => {
    const asked: string[] = [];
    const proxy = createServer();
    proxy.on("connect", (request, socket, head) => {
      asked.push(request.url ?? "");
      const [host = "", port = ""] = (request.url ?? "").split(":");
      const upstream = connect(Number(port), host, () => {
        socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
        upstream.write(head);
        upstream.pipe(socket).pipe(upstream);
      });
      upstream.on("error", () => socket.destroy());
      socket.on("error", () => upstream.destroy());
    });
    await using stub = await ConductorStub.start();
    await using through = await listening(proxy);
    await using c = await open(stub.url, { env: { CONDUCTOR_PROXY_URL: `http://127.0.0.1:${through.port}` } });
    expect((await c.get("/api/tasks/poll/batch/x?count=1")).text).toBe("[]");
    expect(asked).toEqual([new URL(stub.url).host]);
  });
});
