import { describe, expect, it, onTestFinished } from "vitest";
import { call, groupOf, latch, RawClient, route, startServer } from "../../../test/support/http.ts";
import type { Route } from "../http/http.ts";

function serve(...routes: Route[]) {
  return startServer({ groups: [groupOf("main", routes)] });
}

describe("a streamed body", () => {
  const count: Route["handle"] = async (request) => {
    let size = 0;
    for await (const chunk of request.stream) size += (chunk as Buffer).length;
    return { status: 200, body: String(size) };
  };

  it("is passed to the handler before it is read", async () => {
    const server = await serve(route("PUT /blob", count, { body: "stream", bodyMax: 5_000_000 }));
    expect((await call(`${server.url}/blob`, { method: "PUT", body: new Uint8Array(4_000_000) })).text).toBe("4000000");
  });

  it("fails for the handler when it exceeds its limit, and the response is 413", async () => {
    const server = await serve(route("PUT /blob", count, { body: "stream", bodyMax: 1_000 }));
    const client = new RawClient(server);
    client.send("PUT /blob HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n");
    client.send(`7d0\r\n${"x".repeat(2_000)}\r\n0\r\n\r\n`);
    await client.until("HTTP/1.1 413 ");
    client.send("GET /other HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await client.until("HTTP/1.1 404 ");
  });

  it("fails for the handler when the client disconnects in the middle", async () => {
    const failed = latch<unknown>();
    const server = await serve(
      route(
        "PUT /blob",
        async (request) => {
          try {
            for await (const _ of request.stream) client.socket.destroy();
          } catch (error) {
            failed.open(error);
          }
          return { status: 200 };
        },
        { body: "stream" },
      ),
    );
    const client = new RawClient(server);
    client.send("PUT /blob HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\nabc");
    expect(await failed.opened).toBeInstanceOf(Error);
  });

  it("that breaks off before the handler reads it fails only the read", async () => {
    const failed = latch<unknown>();
    const uncaught = (error: unknown) => failed.open(`uncaught: ${error}`);
    process.on("uncaughtException", uncaught);
    onTestFinished(() => void process.off("uncaughtException", uncaught));
    const server = await serve(
      route(
        "PUT /blob",
        async (request) => {
          const { stream } = request;
          client.socket.destroy();
          await new Promise((resolve) => stream.once("close", resolve));
          const read = async () => {
            for await (const _ of stream);
          };
          await read().catch((error: unknown) => {
            failed.open(error);
            throw error;
          });
          return { status: 200 };
        },
        { body: "stream" },
      ),
    );
    const client = new RawClient(server);
    client.send("PUT /blob HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\nabc");
    expect(await failed.opened).toMatchObject({ code: "LONGSHORE_BAD_INPUT", message: "The body broke off before its end." });
    expect((await call(`${server.url}/other`)).status).toBe(404);
    expect(server.log.join("\n")).not.toContain("A request failed");
  });

  it("that the handler does not read leaves the connection usable", async () => {
    const server = await serve(route("PUT /blob", () => ({ status: 200, body: "no need" }), { body: "stream" }));
    const client = new RawClient(server);
    const body = "x".repeat(300_000);
    client.send(`PUT /blob HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    await client.until("no need");
    client.send("GET /other HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await client.until("HTTP/1.1 404 ");
  });
});

describe("a body above the limit", () => {
  const small = { bodyMax: 1_000 };
  const echo = route("POST /x", (request) => ({ status: 200, body: String(request.text.length) }), small);

  it("gets 413 because of its announced length, with the limit", async () => {
    const server = await serve(echo);
    const client = new RawClient(server);
    client.send("POST /x HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1001\r\n\r\n");
    expect(await client.until("the limit of this route")).toContain("larger than 1000 bytes");
  });

  it("begins exactly one byte above the limit", async () => {
    const server = await serve(echo);
    expect((await call(`${server.url}/x`, { method: "POST", body: "x".repeat(1_000) })).text).toBe("1000");
    expect((await call(`${server.url}/x`, { method: "POST", body: "x".repeat(1_001) })).status).toBe(413);
  });

  it("gets 413 when it arrives chunked, and the connection can be used again", async () => {
    const server = await serve(echo);
    const client = new RawClient(server);
    client.send("POST /x HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n");
    for (let part = 0; part < 4; part++) client.send(`190\r\n${"x".repeat(400)}\r\n`);
    await client.until("HTTP/1.1 413 ");
    client.send("0\r\n\r\nPOST /x HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\n\r\nabc");
    await client.until("HTTP/1.1 200 OK");
  });

  it("is also refused on routes that ignore bodies", async () => {
    const server = await serve(route("POST /beat", () => ({ status: 200 }), { body: "none", ...small }));
    expect((await call(`${server.url}/beat`, { method: "POST", body: "x".repeat(2_000) })).status).toBe(413);
  });

  it("is measured by the server's limit when the route has none", async () => {
    const server = await startServer({ groups: [groupOf("main", [route("POST /x", () => ({ status: 200 }))])], limits: { bodyBytes: 10 } });
    expect((await call(`${server.url}/x`, { method: "POST", body: "x".repeat(11) })).text).toContain("10 bytes");
  });

  it("is disconnected when it continues long after the refusal", async () => {
    const server = await startServer({ groups: [groupOf("main", [echo])], limits: { discardBytes: 100_000 } });
    const client = new RawClient(server);
    client.send("POST /x HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n");
    const chunk = `2710\r\n${"x".repeat(10_000)}\r\n`;
    const flood = () => {
      while (!client.socket.destroyed && client.socket.write(chunk)) {}
    };
    client.socket.on("drain", flood);
    flood();
    expect(await client.closed()).toContain("HTTP/1.1 413 ");
  });

  it("is not caused by a wrong length: bytes after the announced length belong to the next request, which is invalid here", async () => {
    let handled = 0;
    const server = await serve(route("POST /x", () => ({ status: 200, body: `handled ${++handled}` })));
    const client = new RawClient(server);
    client.send("POST /x HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\n\r\nabcdef\r\n\r\n");
    expect(await client.closed()).toMatch(/handled 1/);
    expect(handled).toBe(1);
    expect(server.metrics.text()).toContain('longshore_http_broken_total{status="400"} 1\n');
  });
});
