// The listener on a real socket: the request as a handler gets it, the reply as a client gets it, and the start.

import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { call, callCarried, carriers, groupOf, latch, RawClient, route, startServer, turn } from "../../../test/support/http.ts";
import { createLogger } from "../../core/logger.ts";
import { createMetrics } from "../../core/metrics.ts";
import type { HttpReply, Route } from "../http/http.ts";
import { listen } from "./listener.ts";

function serve(...routes: Route[]) {
  return startServer({ groups: [groupOf("main", routes)] });
}

const json = { "content-type": "application/json" };

describe.each(carriers)("a request, carried %s", (carried) => {
  const call = callCarried(carried);
  it("reaches its handler with path, parameters, query, headers and text", async () => {
    const server = await serve(
      route("POST /api/jobs/:lease/:part", (request) => {
        const { method, path, params, text, caller } = request;
        const seen = {
          method,
          path,
          params,
          text,
          principal: caller.name,
          q: request.query.getAll("q"),
          type: request.headers["content-type"],
        };
        return { status: 200, headers: json, body: JSON.stringify(seen) };
      }),
    );
    const answer = await call(`${server.url}/api/jobs/a%2Fb%20c/x?q=1&q=%C3%A9`, {
      method: "POST",
      headers: { "content-type": "text/plain" },
      body: "grüße",
    });
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.text)).toEqual({
      method: "POST",
      path: "/api/jobs/a%2Fb%20c/x",
      params: { lease: "a/b c", part: "x" },
      text: "grüße",
      q: ["1", "é"],
      type: "text/plain",
    });
  });

  it("gets a reply that no cache keeps, unless the route permits it", async () => {
    const server = await serve(
      route("GET /data", () => ({ status: 200, headers: json, body: "{}" })),
      route("GET /file", () => ({ status: 200, headers: { "cache-control": "public" }, body: "" })),
    );
    const caching = async (path: string) => (await call(`${server.url}${path}`)).headers["cache-control"];
    expect(await caching("/data")).toBe("no-store");
    expect(await caching("/missing")).toBe("no-store");
    expect(await caching("/file")).toBe("public");
  });

  it("has an empty query, text and stream when the client sent none", async () => {
    const server = await serve(
      route("POST /x", async (request) => {
        let bytes = 0;
        for await (const chunk of request.stream) bytes += (chunk as Buffer).length;
        return { status: 200, body: JSON.stringify([[...request.query], request.text, bytes]) };
      }),
    );
    expect((await call(`${server.url}/x`, { method: "POST" })).text).toBe('[[],"",0]');
  });

  it("has its body joined when it arrives in many pieces, also when characters are divided", async () => {
    const server = await serve(route("POST /x", (request) => ({ status: 200, body: request.text })));
    const client = new RawClient(server);
    const bytes = Buffer.from("aé☃z".repeat(3));
    client.send(`POST /x HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${bytes.length}\r\n\r\n`);
    for (const byte of bytes) {
      client.send(String.fromCharCode(byte));
      await turn();
    }
    await client.until(`\r\n\r\n${bytes.toString("latin1")}`);
  });

  it("may send its body chunked", async () => {
    const server = await serve(route("POST /x", (request) => ({ status: 200, body: `<${request.text}>` })));
    const client = new RawClient(server);
    client.send("POST /x HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
    await client.until("<abcde>");
  });

  it("is refused when its body is not UTF-8, but its text may contain the replacement character", async () => {
    const server = await serve(route("POST /x", (request) => ({ status: 200, body: request.text })));
    const bad = await call(`${server.url}/x`, { method: "POST", body: new Uint8Array([0x22, 0xff, 0x22]) });
    expect(bad.status).toBe(400);
    expect(bad.text).toContain("UTF-8");
    expect((await call(`${server.url}/x`, { method: "POST", body: "\ufffd" })).text).toBe("\ufffd");
  });

  it("may have a body on a route that needs none; the handler does not see it", async () => {
    const server = await serve(route("POST /beat", (request) => ({ status: 200, body: `[${request.text}]` }), { body: "none" }));
    expect((await call(`${server.url}/beat`, { method: "POST", body: "ignored" })).text).toBe("[]");
  });

  it("gets 100 Continue before its body is read, and not when it is refused", async () => {
    const server = await serve(route("POST /x", (request) => ({ status: 200, body: `<${request.text}>` }), { bodyMax: 10 }));
    const polite = new RawClient(server);
    polite.send("POST /x HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n");
    await polite.until("HTTP/1.1 100 Continue");
    polite.send("ab");
    await polite.until("<ab>");
    const refused = new RawClient(server);
    refused.send("POST /x HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 11\r\n\r\n");
    const answer = await refused.closed();
    expect(answer).toContain("HTTP/1.1 413 ");
    expect(answer).not.toContain("100 Continue");
  });

  it("may follow others on the same connection without waiting, and responses keep their order", async () => {
    const slow = latch<HttpReply>();
    const server = await serve(
      route("GET /slow", () => slow.opened),
      route("GET /fast", () => {
        slow.open({ status: 200, body: "first" });
        return { status: 200, body: "second" };
      }),
    );
    const client = new RawClient(server);
    client.send("GET /slow HTTP/1.1\r\nhost: localhost\r\n\r\nGET /fast HTTP/1.1\r\nhost: localhost\r\n\r\n");
    expect(await client.until("second")).toMatch(/first.*second/s);
  });
});

describe.each(carriers)("a refusal, carried %s", (carried) => {
  const call = callCarried(carried);
  const ok = (): HttpReply => ({ status: 200, body: "ok" });

  it("is 404 for an unknown path and for a trailing slash", async () => {
    const server = await serve(route("POST /api/claim", ok));
    for (const path of ["/", "/api", "/api/claim/", "/api/claim/x"]) {
      const answer = await call(`${server.url}${path}`, { method: "POST", body: "{}" });
      expect(answer.status).toBe(404);
      expect(JSON.parse(answer.text)).toMatchObject({ kind: "not-found" });
    }
  });

  it("is 405 with the allowed methods for a known path", async () => {
    const server = await serve(route("POST /both", ok), route("GET /both", ok), route("POST /one", ok));
    const both = await call(`${server.url}/both`, { method: "DELETE" });
    expect([both.status, both.headers.allow]).toEqual([405, "POST,GET,HEAD"]);
    expect(JSON.parse(both.text)).toMatchObject({ detail: { field: "method", expected: "POST,GET,HEAD" } });
    const one = await call(`${server.url}/one`);
    expect([one.status, one.headers.allow]).toEqual([405, "POST"]);
  });

  it("uses the error format of the group that owns the path", async () => {
    const server = await startServer({
      groups: [groupOf("own", [route("GET /api/own/v1/runs", ok)]), groupOf("guest", [route("POST /api/jobs/:id/done", ok)])],
    });
    const who = async (path: string) => (JSON.parse((await call(`${server.url}${path}`)).text) as { group: string }).group;
    expect(await who("/api/jobs/7/done")).toBe("guest");
    expect(await who("/api/jobs/7/unknown")).toBe("guest");
    expect(await who("/api/own/v2")).toBe("own");
    expect(await who("/somewhere")).toBe("own");
  });

  it("is 400 for a malformed escape and for a parameter that is too long", async () => {
    const server = await startServer({ groups: [groupOf("main", [route("GET /runs/:run", ok)])], limits: { idChars: 8 } });
    const malformed = await call(`${server.url}/runs/%E0%A4%A`);
    expect([malformed.status, malformed.text.includes("percent-escape")]).toEqual([400, true]);
    const long = await call(`${server.url}/runs/123456789`);
    expect([long.status, long.text.includes("8 characters")]).toEqual([400, true]);
    expect(JSON.parse(long.text)).toMatchObject({ detail: { field: "run", expected: "at most 8 characters" } });
    expect((await call(`${server.url}/runs/%31%32%33%34%35%36%37%38`)).status).toBe(200);
  });

  it("closes the connection when the group's own error function throws, and the server continues", async () => {
    const broken = {
      ...groupOf("broken", [route("GET /ok", ok)]),
      refuse: () => {
        throw new Error("no words");
      },
    };
    const server = await startServer({ groups: [broken] });
    await expect(call(`${server.url}/unknown`)).rejects.toThrow();
    expect(server.log.join()).toContain("A refusal could not be written");
    expect((await call(`${server.url}/ok`)).status).toBe(200);
  });
});

it.each([
  ["shorter", "a part", "6 of 10 bytes"],
  ["longer", "much more than that", "more than the 10 bytes"],
])("a streamed reply %s than its stated length is cut, and no other reply follows on its connection", async (_, body, logged) => {
  const server = await serve(
    route("GET /x", () => ({ status: 200, headers: { "content-length": "10" }, body: Readable.from([body]) }), { openEnded: true }),
    route("GET /next", () => ({ status: 200, body: "the next reply" })),
  );
  const client = new RawClient(server);
  client.send("GET /x HTTP/1.1\r\nhost: localhost\r\n\r\nGET /next HTTP/1.1\r\nhost: localhost\r\n\r\n");
  expect(await client.closed()).not.toMatch(/the next reply|than that/);
  expect(server.log.join()).toContain(logged);
});

describe.each(carriers)("a reply, carried %s", (carried) => {
  const call = callCarried(carried);
  const open = { openEnded: true };

  it("without payload has a length of zero and no content type", async () => {
    const server = await serve(route("POST /x", () => ({ status: 200 })));
    const { status, headers, text } = await call(`${server.url}/x`, { method: "POST", body: "{}" });
    expect([status, headers["content-length"], headers["content-type"], text]).toEqual([200, "0", undefined, ""]);
    expect(headers["transfer-encoding"]).toBeUndefined();
  });

  it("states the length of its bytes, not of its characters", async () => {
    const server = await serve(
      route("GET /text", () => ({ status: 201, headers: json, body: '"é☃"' })),
      route("GET /bytes", () => ({ status: 200, body: new Uint8Array([1, 2, 3]) })),
    );
    const text = await call(`${server.url}/text`);
    expect([text.status, text.headers["content-length"], text.headers["content-type"], text.text]).toEqual([
      201,
      "7",
      "application/json",
      '"é☃"',
    ]);
    expect((await call(`${server.url}/bytes`)).headers["content-length"]).toBe("3");
  });

  it("to HEAD has the head of GET and no body", async () => {
    const server = await serve(
      route("GET /text", () => ({ status: 200, body: "hello" })),
      route("GET /stream", () => ({ status: 200, headers: { "content-length": "5" }, body: Readable.from(["hello"]) }), open),
      route("GET /events", () => ({ status: 200, events: (sink) => sink.send({ data: "x" }) }), open),
    );
    for (const path of ["/text", "/stream"]) {
      const answer = await call(`${server.url}${path}`, { method: "HEAD" });
      expect([answer.status, answer.headers["content-length"], answer.text]).toEqual([200, "5", ""]);
    }
    expect((await call(`${server.url}/events`, { method: "HEAD" })).headers["content-type"]).toBe("text/event-stream");
  });

  it("with status 204 has no length", async () => {
    const server = await serve(route("DELETE /x", () => ({ status: 204 }), { body: "none" }));
    const answer = await call(`${server.url}/x`, { method: "DELETE" });
    expect([answer.status, answer.headers["content-length"], answer.headers["transfer-encoding"]]).toEqual([204, undefined, undefined]);
  });

  it("may be a stream", async () => {
    const server = await serve(route("GET /x", () => ({ status: 200, body: Readable.from(["a", "b", "c"]) }), open));
    const answer = await call(`${server.url}/x`);
    expect([answer.text, answer.headers["transfer-encoding"]]).toEqual(["abc", "chunked"]);
  });

  it("that is a stream and fails in the middle breaks off without a regular end", async () => {
    async function* broken() {
      yield "a part";
      throw new Error("disk gone");
    }
    const server = await serve(route("GET /x", () => ({ status: 200, body: Readable.from(broken()) }), open));
    await expect(call(`${server.url}/x`)).rejects.toThrow();
  });

  it("keeps the connection open for the next request and states for how long", async () => {
    const server = await serve(route("GET /x", () => ({ status: 200, body: "x" })));
    const client = new RawClient(server);
    client.send("GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n");
    const first = await client.until("\r\n\r\nx");
    expect(first).toMatch(/Keep-Alive: timeout=95/i);
    client.received = "";
    client.send("GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await client.until("\r\n\r\nx");
    expect(server.connections()).toBe(1);
  });
});

describe("starting", () => {
  const group = groupOf("main", [route("GET /x", () => ({ status: 200 }))]);
  const parts = () => ({
    groups: [group],
    metrics: createMetrics(),
    logger: createLogger({ write: () => undefined, clock: { now: () => 0 } }),
  });

  it("reports the chosen port and a URL that works", async () => {
    const server = await startServer({ groups: [group] });
    expect(server.port).toBeGreaterThan(0);
    expect(server.url).toBe(`http://127.0.0.1:${server.port}`);
    expect((await call(`${server.url}/x`)).status).toBe(200);
  });

  it("fails with the port and a solution when the port is in use", async () => {
    const server = await startServer({ groups: [group] });
    const failure = await listen({ ...parts(), port: server.port }).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "LONGSHORE_BAD_CONFIG" });
    expect((failure as Error).message).toContain(`Port ${server.port} on 127.0.0.1 is in use`);
    expect((failure as Error).message).toContain("--port");
  });

  it("fails with a solution when the address is not one of this machine", async () => {
    const failure = await listen({ ...parts(), port: 0, host: "192.0.2.1", insecure: true }).catch((error: unknown) => error);
    expect((failure as Error).message).toContain("192.0.2.1");
    expect((failure as Error).message).toContain("--host");
  });

  it("refuses an address beyond loopback without tokens, before it binds it", async () => {
    for (const host of ["0.0.0.0", "::", "192.0.2.1"]) {
      const failure = await listen({ ...parts(), port: 0, host }).catch((error: unknown) => error);
      expect(failure).toMatchObject({ code: "LONGSHORE_BAD_CONFIG" });
      expect((failure as Error).message).toContain("--insecure");
    }
  });
});

describe("metrics", () => {
  it("count requests by group, method, route and status class", async () => {
    const server = await serve(route("GET /runs/:run", (request) => ({ status: request.params.run === "none" ? 404 : 200 })));
    for (const run of ["a", "b", "none"]) await call(`${server.url}/runs/${run}`);
    await call(`${server.url}/unknown`);
    const text = server.metrics.text();
    expect(text).toContain('longshore_http_requests_total{group="main",method="GET",route="/runs/:run",status="2xx"} 2\n');
    expect(text).toContain('longshore_http_requests_total{group="main",method="GET",route="/runs/:run",status="4xx"} 1\n');
    expect(text).toContain('longshore_http_requests_total{group="main",method="",route="",status="4xx"} 1\n');
    expect(text).toContain('longshore_http_refusals_total{kind="not-found"} 1\n');
  });

  it("show the requests in flight", async () => {
    const waiting = latch();
    const answer = latch<HttpReply>();
    const server = await serve(
      route("GET /wait", () => {
        waiting.open();
        return answer.opened;
      }),
    );
    const sent = call(`${server.url}/wait`);
    await waiting.opened;
    expect(server.metrics.text()).toContain("longshore_http_in_flight 1\n");
    expect(server.metrics.text()).toContain("longshore_http_connections 1\n");
    answer.open({ status: 200 });
    await sent;
    expect(server.metrics.text()).toContain("longshore_http_in_flight 0\n");
  });
});
