// The gate, tested over the network: every route of a table, foreign pages, rebound names, and what the log contains.

import { describe, expect, it } from "vitest";
import { callCarried, carriers, groupOf, RawClient, route, startServer } from "../../../test/support/http.ts";
import { walkRouteTable } from "../../../test/support/route-table.ts";
import type { Action } from "../../core/actions.ts";
import type { Route, RouteGroup } from "../http/http.ts";
import { createAuth, parseToken } from "./auth.ts";

const secrets = { worker: "worker-secret-0123456789", operator: "operator-secret-0123456789", read: "read-secret-0123456789" };
const auth = createAuth(Object.entries(secrets).map(([scope, secret]) => parseToken(`${scope}:${secret}:${scope}-token`, scope)));

function table(handled: string[] = []): RouteGroup[] {
  const of = (text: string, action: Action, more: Partial<Route> = {}) => {
    const handle: Route["handle"] = (request) => {
      handled.push(`${request.method} ${request.path} ${request.caller.name}`);
      return { status: 200, body: "ok" };
    };
    return route(text, handle, { action, ...more });
  };
  return [
    groupOf("own", [
      of("GET /health", "server.health"),
      of("GET /metrics", "server.measure"),
      of("GET /runs/:run", "run.read"),
      of("POST /runs", "run.start"),
      of("DELETE /runs/:run", "run.remove", { body: "none" }),
      of("PUT /blobs/:digest", "blob.write", { body: "stream" }),
    ]),
    groupOf("jobs", [of("POST /jobs/claim", "task.claim"), of("POST /jobs/:lease/heartbeat", "task.report", { body: "none" })]),
  ];
}

function bearer(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}` };
}

describe.each(carriers)("tokens, carried %s", (carried) => {
  const call = callCarried(carried);

  it("are needed on every route that is not open, and must have its scope", async () => {
    const handled: string[] = [];
    const groups = table(handled);
    const server = await startServer({ groups, auth });
    const { calls, findings } = await walkRouteTable(groups, server.url, secrets);
    expect(findings).toEqual([]);
    expect(calls).toBe(7 * 2 + 5 + 2 * 2);
    expect(handled).toEqual([]);
  });

  it("let the test above fail for a route that is open by mistake", async () => {
    const groups = table();
    const server = await startServer({ groups, auth: createAuth([]) });
    const { calls, findings } = await walkRouteTable(groups, server.url, secrets);
    expect(findings).toHaveLength(calls);
  });

  it("allow what their scope covers; an operator's token allows everything", async () => {
    const handled: string[] = [];
    const server = await startServer({ groups: table(handled), auth });
    const visit = (method: string, path: string, token: string) => call(`${server.url}${path}`, { method, headers: bearer(token) });
    expect((await visit("POST", "/jobs/claim", secrets.worker)).status).toBe(200);
    expect((await visit("POST", "/jobs/claim", secrets.operator)).status).toBe(200);
    expect((await visit("GET", "/runs/1", secrets.read)).status).toBe(200);
    expect((await visit("GET", "/runs/1", secrets.operator)).status).toBe(200);
    expect((await call(`${server.url}/health`)).status).toBe(200);
    expect(handled).toEqual([
      "POST /jobs/claim worker-token",
      "POST /jobs/claim operator-token",
      "GET /runs/1 read-token",
      "GET /runs/1 operator-token",
      "GET /health undefined",
    ]);
  });

  it("are refused with a challenge, in the error format of the group", async () => {
    const server = await startServer({ groups: table(), auth });
    const absent = await call(`${server.url}/jobs/claim`, { method: "POST", body: "{}" });
    expect([absent.status, absent.headers["www-authenticate"]]).toEqual([401, "Bearer"]);
    expect(JSON.parse(absent.text)).toMatchObject({ group: "jobs", kind: "unauthorized" });
    const lesser = await call(`${server.url}/runs`, { method: "POST", body: "{}", headers: bearer(secrets.read) });
    expect(lesser.headers["www-authenticate"]).toBe('Bearer error="insufficient_scope", scope="operator"');
    expect(JSON.parse(lesser.text)).toMatchObject({ group: "own", kind: "forbidden" });
  });

  it("are not required on loopback while none is configured", async () => {
    const server = await startServer({ groups: table() });
    expect((await call(`${server.url}/runs`, { method: "POST", body: "{}" })).status).toBe(200);
  });

  it("appear in no log line, for any outcome of the request", async () => {
    const failing = groupOf("failing", [
      route("GET /fails", (request) => {
        throw Object.assign(new Error(`failed for ${request.headers.authorization}`), { headers: request.headers });
      }),
    ]);
    const server = await startServer({ groups: [...table(), failing], auth });
    const unknown = "unknown-secret-0123456789";
    for (const token of [...Object.values(secrets), unknown]) {
      for (const path of ["/runs/1", "/fails", "/jobs/claim", "/nothing", "/health", `/runs/%E0?token=${unknown}`]) {
        await call(`${server.url}${path}`, { headers: bearer(token) });
        await call(`${server.url}${path}`, { method: "POST", headers: { ...bearer(token), origin: "https://evil.example" }, body: token });
      }
      const broken = new RawClient(server);
      broken.send(`GET /x HTTP/1.1\r\nauthorization: Bearer ${token}\r\n: broken\r\n\r\n`);
      await broken.closed();
    }
    expect(server.log.length).toBeGreaterThan(20);
    expect(server.log.join("\n")).toContain("A request failed");
    expect(server.log.join("\n")).toContain("A request was refused");
    for (const token of [...Object.values(secrets), unknown]) expect(server.log.join("\n")).not.toContain(token);
  });

  it("that allow too little are logged by name, separately for each token", async () => {
    const server = await startServer({ groups: table(), auth });
    for (let attempt = 0; attempt < 3; attempt++) {
      for (const token of [secrets.read, secrets.worker, "unknown-secret-0123456789"]) {
        await call(`${server.url}/runs`, { method: "POST", body: "{}", headers: bearer(token) });
      }
    }
    const refused = server.log.filter((line) => line.includes("A request was refused")).map((line) => JSON.parse(line));
    expect(refused.map(({ kind, principal, route }) => [kind, principal, route])).toEqual([
      ["forbidden", "read-token", "/runs"],
      ["forbidden", "worker-token", "/runs"],
      ["unauthorized", undefined, "/runs"],
    ]);
  });

  it("that are refused again and again are logged once a minute, with a count", async () => {
    let now = 0;
    const clock = { now: () => now, at: () => () => undefined };
    const server = await startServer({ groups: table(), auth, clock });
    const refusals = () =>
      server.log.filter((line) => line.includes("A request was refused")).map((line) => JSON.parse(line) as { alsoRefused?: number });
    for (let attempt = 0; attempt < 5; attempt++) await call(`${server.url}/runs/1`);
    expect(refusals()).toHaveLength(1);
    now = 60_000;
    await call(`${server.url}/runs/1`);
    expect(refusals()).toHaveLength(2);
    expect(refusals()[1]?.alsoRefused).toBe(4);
  });
});

describe.each(carriers)("a web page, carried %s", (carried) => {
  const call = callCarried(carried);

  it("cannot call a local server with any method or content type, and its request is not handled", async () => {
    const handled: string[] = [];
    const server = await startServer({ groups: table(handled) });
    const origin = "https://evil.example";
    const attempts = [
      call(`${server.url}/runs/1`, { headers: { origin } }),
      call(`${server.url}/health`, { headers: { origin } }),
      call(`${server.url}/runs`, { method: "POST", headers: { origin, "content-type": "text/plain" }, body: "{}" }),
      call(`${server.url}/runs`, { method: "POST", headers: { origin, "content-type": "application/x-www-form-urlencoded" }, body: "a=b" }),
      call(`${server.url}/jobs/l/heartbeat`, { method: "POST", headers: { origin } }),
      call(`${server.url}/runs/1`, { method: "DELETE", headers: { origin } }),
      call(`${server.url}/runs`, { method: "POST", headers: { origin: "null" }, body: "{}" }),
      call(`${server.url}/runs/1`, { headers: { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" } }),
      call(`${server.url}/nothing`, { headers: { origin } }),
    ];
    for (const answer of await Promise.all(attempts)) {
      expect(answer.status).toBe(403);
      expect(answer.headers["access-control-allow-origin"]).toBeUndefined();
    }
    expect(handled).toEqual([]);
  });

  it("cannot call through a name that was rebound to this address", async () => {
    const handled: string[] = [];
    const server = await startServer({ groups: table(handled) });
    for (const host of ["evil.example", `evil.example:${server.port}`]) {
      expect((await call(`${server.url}/runs/1`, { headers: { host } })).status).toBe(403);
      expect((await call(`${server.url}/runs`, { method: "POST", headers: { host, origin: `http://${host}` }, body: "{}" })).status).toBe(
        403,
      );
    }
    const bare = new RawClient(server);
    bare.send("GET /runs/1 HTTP/1.0\r\n\r\n");
    expect(await bare.closed()).toContain("HTTP/1.1 403 ");
    expect(handled).toEqual([]);
    expect((await call(`${server.url}/runs/1`, { headers: { host: `localhost:${server.port}` } })).status).toBe(200);
  });

  it("may call when this server served it", async () => {
    const server = await startServer({ groups: table() });
    expect((await call(`${server.url}/runs`, { method: "POST", headers: { origin: server.url }, body: "{}" })).status).toBe(200);
  });

  it("[G17] may send a preflight and call when its origin is allowed, and fails when it is foreign", async () => {
    const handled: string[] = [];
    const server = await startServer({ groups: table(handled), origins: ["https://ci.example.org"], auth });
    const ask = (origin: string) =>
      call(`${server.url}/jobs/claim`, {
        method: "OPTIONS",
        headers: { origin, "access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type" },
      });
    const allowed = await ask("https://ci.example.org");
    expect(allowed.status).toBe(204);
    expect(allowed.headers).toMatchObject({
      "access-control-allow-origin": "https://ci.example.org",
      "access-control-allow-methods": "POST",
      "access-control-allow-headers": "authorization,content-type",
      vary: "origin",
    });
    const foreign = await ask("https://evil.example");
    expect(foreign.status).toBe(403);
    expect(foreign.headers["access-control-allow-origin"]).toBeUndefined();
    expect(handled).toEqual([]);

    const headers = { origin: "https://ci.example.org", ...bearer(secrets.worker) };
    const claim = await call(`${server.url}/jobs/claim`, { method: "POST", headers, body: "{}" });
    expect([claim.status, claim.headers["access-control-allow-origin"]]).toEqual([200, "https://ci.example.org"]);
    // The page must also be able to read the reason of a refusal.
    const refused = await call(`${server.url}/jobs/claim`, { method: "POST", headers: { origin: "https://ci.example.org" }, body: "{}" });
    expect([refused.status, refused.headers["access-control-allow-origin"]]).toEqual([401, "https://ci.example.org"]);
  });

  it("gets 404 for a preflight request to an unknown path", async () => {
    const server = await startServer({ groups: table(), origins: ["https://ci.example.org"] });
    const headers = { origin: "https://ci.example.org", "access-control-request-method": "POST" };
    expect((await call(`${server.url}/nothing`, { method: "OPTIONS", headers })).status).toBe(404);
    expect((await call(`${server.url}/runs`, { method: "OPTIONS" })).status).toBe(405);
  });
});
