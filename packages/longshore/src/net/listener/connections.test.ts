// Requests in progress when their client disconnects, or when the server closes.

import { describe, expect, it } from "vitest";
import { groupOf, latch, RawClient, route, startServer, turn } from "../../../test/support/http.ts";
import { TestClock } from "../../testing/clock.ts";
import type { HttpReply, HttpRequest, Route } from "../http/http.ts";

function serve(...routes: Route[]) {
  return startServer({ groups: [groupOf("main", routes)] });
}

/** A server with this route, and a client whose request has reached it and waits for `answer`. */
async function waitingRequest(path: "GET /x" | "POST /claim") {
  const waiting = latch();
  const answer = latch<HttpReply>();
  const server = await serve(
    route(path, () => {
      waiting.open();
      return answer.opened;
    }),
  );
  const client = new RawClient(server);
  client.send(`${path} HTTP/1.1\r\nhost: localhost\r\n${path === "GET /x" ? "\r\n" : "content-length: 2\r\n\r\n{}"}`);
  await waiting.opened;
  return { server, client, answer };
}

describe("a client that disconnects", () => {
  it("aborts `gone` of a waiting request, and the reply is given back", async () => {
    const waiting = latch<HttpRequest>();
    const undelivered = latch();
    const server = await serve(
      route("POST /claim", async (request) => {
        const { gone } = request;
        waiting.open(request);
        await new Promise((resolve) => gone.addEventListener("abort", resolve));
        return { status: 200, body: "granted", undelivered: () => undelivered.open() };
      }),
    );
    const client = new RawClient(server);
    client.send("POST /claim HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}");
    const request = await waiting.opened;
    expect(request.gone.aborted).toBe(false);
    client.socket.destroy();
    await undelivered.opened;
    expect(request.gone.aborted).toBe(true);
    expect(server.metrics.text()).toContain("longshore_http_undelivered_total 1\n");
    expect(server.metrics.text()).toContain("longshore_http_in_flight 0\n");
  });

  it("is detected when it only ends its side, as a killed process does", async () => {
    const waiting = latch();
    const undelivered = latch();
    const server = await serve(
      route("POST /claim", async (request) => {
        const ended = new Promise((resolve) => request.gone.addEventListener("abort", resolve));
        waiting.open();
        await ended;
        return { status: 200, body: "granted", undelivered: () => undelivered.open() };
      }),
    );
    const client = new RawClient(server);
    client.send("POST /claim HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}");
    await waiting.opened;
    client.socket.end();
    await undelivered.opened;
  });

  it("is detected at the reply by a handler that never checked", async () => {
    const undelivered = latch();
    const { server, client, answer } = await waitingRequest("POST /claim");
    client.socket.destroy();
    while (server.connections() > 0) await turn();
    answer.open({ status: 200, body: "granted", undelivered: () => undelivered.open() });
    await undelivered.opened;
  });

  it("while its response is still being written has the response given back", async () => {
    const writing = latch();
    const undelivered = latch();
    const server = await serve(
      route("POST /claim", () => {
        setImmediate(() => writing.open());
        // More than the two socket buffers hold, so that the system cannot have accepted all of it.
        return { status: 200, body: "x".repeat(32 * 1_048_576), undelivered: () => undelivered.open() };
      }),
    );
    const client = new RawClient(server);
    client.socket.pause();
    client.send("POST /claim HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}");
    await writing.opened;
    client.socket.destroy();
    await undelivered.opened;
  });

  it("with several open requests on one connection aborts each of them", async () => {
    const gone: string[] = [];
    const both = latch();
    const server = await serve(
      route("GET /:name", (request) => {
        const { name = "" } = request.params;
        request.gone.addEventListener("abort", () => {
          gone.push(name);
          if (gone.length === 2) both.open();
        });
        if (name === "b") client.socket.destroy();
        return new Promise(() => undefined);
      }),
    );
    const client = new RawClient(server);
    client.send("GET /a HTTP/1.1\r\nhost: localhost\r\n\r\nGET /b HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await both.opened;
    expect(gone).toEqual(["a", "b"]);
  });

  it("does not give back delivered work, and does not abort `gone` after the response", async () => {
    const events: string[] = [];
    const server = await serve(
      route("GET /x", (request) => {
        request.gone.addEventListener("abort", () => events.push("gone"));
        return { status: 200, body: "granted", undelivered: () => events.push("undelivered") };
      }),
    );
    const client = new RawClient(server);
    client.send("GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await client.until("granted");
    client.socket.destroy();
    while (server.connections() > 0) await turn();
    expect(events).toEqual([]);
  });

  it("in the middle of its body never reaches the handler", async () => {
    let handled = 0;
    const server = await serve(route("POST /x", () => ({ status: ++handled && 200 })));
    const client = new RawClient(server);
    client.send("POST /x HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\nabc");
    while (!server.metrics.text().includes("longshore_http_in_flight 1")) await turn();
    client.socket.end();
    await client.closed();
    while (server.connections() > 0) await turn();
    expect([handled, server.metrics.text().includes("longshore_http_in_flight 0")]).toEqual([0, true]);
  });

  it("does no harm when `undelivered` throws", async () => {
    const server = await serve(
      route("GET /x", (request) => {
        const ended = new Promise<HttpReply>((resolve) => {
          request.gone.addEventListener("abort", () => {
            resolve({
              status: 200,
              undelivered: () => {
                throw new Error("cannot give back");
              },
            });
          });
        });
        client.socket.destroy();
        return ended;
      }),
    );
    const client = new RawClient(server);
    client.send("GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n");
    while (!server.log.join().includes("cannot give back")) await turn();
  });
});

describe("closing the server", () => {
  it("ends idle connections at once, also those that never sent anything", async () => {
    const server = await serve(route("GET /x", () => ({ status: 200, body: "x" })));
    const silent = new RawClient(server);
    const idle = new RawClient(server);
    idle.send("GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await idle.until("\r\n\r\nx");
    while (server.connections() < 2) await turn();
    await server.close();
    await silent.closed();
    await idle.closed();
    expect(server.connections()).toBe(0);
  });

  it("lets a request in flight finish, closes its connection, and accepts no new one", async () => {
    const { server, client, answer } = await waitingRequest("GET /x");
    const closed = server.close();
    const late = new RawClient(server);
    expect(await late.closed()).toBe("");
    answer.open({ status: 200, body: "in time" });
    await closed;
    expect(await client.closed()).toMatch(/connection: close.*in time$/is);
  });

  it("sends the rest of a response that is larger than the socket's buffer", async () => {
    const { server, client, answer } = await waitingRequest("GET /x");
    const closed = server.close();
    answer.open({ status: 200, body: "y".repeat(3_000_000) });
    await closed;
    expect((await client.closed()).split("\r\n\r\n")[1]).toHaveLength(3_000_000);
  });

  it("disconnects requests that still wait at the deadline, and their responses are given back", async () => {
    const clock = new TestClock();
    const waiting = latch();
    const undelivered = latch();
    const handle = async (request: HttpRequest): Promise<HttpReply> => {
      const ended = new Promise((resolve) => request.gone.addEventListener("abort", resolve));
      waiting.open();
      await ended;
      return { status: 200, undelivered: () => undelivered.open() };
    };
    const server = await startServer({ groups: [groupOf("main", [route("GET /x", handle)])], clock });
    const client = new RawClient(server);
    client.send("GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await waiting.opened;
    const closed = server.close(5_000);
    await clock.advance(4_999);
    expect(server.connections()).toBe(1);
    await clock.advance(1);
    await closed;
    await undelivered.opened;
    expect(clock.pending).toBe(0);
  });

  it("may be requested twice", async () => {
    const server = await serve(route("GET /x", () => ({ status: 200 })));
    const first = server.close();
    expect(server.close()).toBe(first);
    await first;
    await server.close();
  });
});
