// Connections that are handed over on one path, and all other behaviour, which stays the same.

import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { groupOf, latch, RawClient, route, startServer } from "../../../test/support/http.ts";
import { TestClock } from "../../testing/clock.ts";
import { createAuth } from "./auth.ts";
import type { ListenOptions } from "./listener.ts";
import type { UpgradeRequest } from "./upgrade.ts";

interface Taken {
  request: UpgradeRequest;
  socket: Socket;
  head: string;
}

const groups = [groupOf("main", [route("GET /hello", () => ({ status: 200, body: "hello" }))])];

async function serve(options: Partial<ListenOptions> = {}) {
  const taken = latch<Taken>();
  const server = await startServer({
    groups,
    upgrade: { path: "/other", take: (request, socket, head) => taken.open({ request, socket, head: head.toString() }) },
    ...options,
  });
  return { server, taken };
}

const asks = "host: anything\r\nconnection: keep-alive, Upgrade\r\nupgrade: other-protocol\r\nx-more: 1\r\n\r\n";

describe("a request for an upgrade", () => {
  it("hands over its connection, its headers and the bytes after them, without a token", async () => {
    const auth = createAuth([{ name: "w", secret: "0123456789abcdef", scopes: ["read"] }]);
    const { server, taken } = await serve({ auth });
    const client = new RawClient(server).send(`GET /other HTTP/1.1\r\n${asks}first bytes`);
    const { request, socket, head } = await taken.opened;
    expect(request.headers).toMatchObject({ upgrade: "other-protocol", "x-more": "1" });
    expect(head).toBe("first bytes");
    expect(socket.listenerCount("data") + socket.listenerCount("timeout")).toBe(0);
    const received = latch<string>();
    socket.on("data", (bytes: Buffer) => received.open(bytes.toString()));
    client.send("second");
    expect(await received.opened).toBe("second");
    socket.write("answer");
    await client.until("answer");
    expect(client.received).toBe("answer");
  });

  it("may arrive in pieces", async () => {
    const { server, taken } = await serve();
    const client = new RawClient(server).send("GET /other HTTP/1.1\r\nhost: x\r\n");
    await new Promise((resolve) => setImmediate(resolve));
    client.send("connection: upgrade\r\nupg").send("rade: other\r\n\r\nrest");
    expect((await taken.opened).request.headers).toEqual({ host: "x", connection: "upgrade", upgrade: "other" });
  });

  it("ends with 408 when its headers are not complete in time", async () => {
    const clock = new TestClock();
    const { server } = await serve({ clock });
    const client = new RawClient(server).send("GET /other HTTP/1.1\r\nhost: x\r\n");
    await clock.armed(10_000);
    await clock.advance(10_000);
    expect(await client.closed()).toContain("HTTP/1.1 408 ");
  });

  it.each([
    ["on another path", `GET /elsewhere HTTP/1.1\r\n${asks.replace("anything", "localhost")}`, "404"],
    ["on a route", `GET /hello HTTP/1.1\r\n${asks.replace("anything", "localhost")}`, "200"],
    ["with a body", `GET /other HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: x\r\ncontent-length: 0\r\n\r\n`, "404"],
    ["without the option of the connection", "GET /other HTTP/1.1\r\nhost: localhost\r\nupgrade: x\r\n\r\n", "404"],
    ["with two values", "GET /other HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: x\r\nupgrade: y\r\n\r\n", "404"],
    ["with too long headers", `GET /other HTTP/1.1\r\nhost: localhost\r\nx: ${"y".repeat(20_000)}\r\n\r\n`, "431"],
  ])("%s is answered as any other request", async (_title, text, status) => {
    const { server } = await serve();
    await new RawClient(server).send(text).until(`HTTP/1.1 ${status} `);
  });

  it("is an ordinary request for a listener that hands over nothing", async () => {
    const server = await startServer({ groups });
    await new RawClient(server).send(`GET /other HTTP/1.1\r\n${asks.replace("anything", "localhost")}`).until("HTTP/1.1 404 ");
  });
});

describe("a connection that was handed over", () => {
  it("is disconnected when the listener is full and its client is not yet known", async () => {
    const { server, taken } = await serve({ limits: { connections: 1 } });
    const first = new RawClient(server).send(`GET /other HTTP/1.1\r\n${asks}`);
    (await taken.opened).socket.on("error", () => undefined);
    await new RawClient(server).send("GET /hello HTTP/1.1\r\nhost: localhost\r\n\r\n").until("hello");
    await first.closed();
  });

  it("counts as one connection, and stays in a full listener when its client is known", async () => {
    const { server, taken } = await serve({ limits: { connections: 1 } });
    const first = new RawClient(server).send(`GET /other HTTP/1.1\r\n${asks}`);
    const { socket, request } = await taken.opened;
    socket.on("error", () => undefined);
    expect(server.connections()).toBe(1);
    request.known();
    await new RawClient(server).closed();
    expect(first.socket.destroyed).toBe(false);
    expect(socket.destroyed).toBe(false);
  });

  it("ends when the listener closes", async () => {
    const { server, taken } = await serve();
    const client = new RawClient(server).send(`GET /other HTTP/1.1\r\n${asks}`);
    const { socket } = await taken.opened;
    socket.on("error", () => undefined);
    socket.resume();
    await server.close();
    await client.closed();
    expect(server.connections()).toBe(0);
  });
});
