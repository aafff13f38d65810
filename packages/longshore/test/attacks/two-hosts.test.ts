// The attacker puts two Host headers or two tokens into one request, or a Host header from which two names can be read. A proxy would check
// one of them, and the server the other. The server must accept neither.

import { request as httpRequest } from "node:http";
import { expect, it, onTestFinished } from "vitest";
import { createAuth, parseToken } from "../../src/net/listener/auth.ts";
import { serveWorker } from "../../src/runner/http.ts";
import { groupOf, RawClient, route, startServer } from "../support/http.ts";

const token = "one-secret-0123456789";

async function statusOf(server: Awaited<ReturnType<typeof startServer>>, ...lines: string[]): Promise<string> {
  const client = new RawClient(server);
  client.send(["GET /here HTTP/1.1", ...lines, "connection: close", "", ""].join("\r\n"));
  return (await client.closed()).slice("HTTP/1.1 ".length).slice(0, 3);
}

it("two Host headers, in any order, are a bad request", async () => {
  const server = await startServer({ groups: [groupOf("main", [route("GET /here", () => ({ status: 200 }))])] });
  expect(await statusOf(server, "host: localhost")).toBe("200");
  expect(await statusOf(server, "host: localhost", "host: evil.example")).toBe("400");
  expect(await statusOf(server, "host: evil.example", "host: localhost")).toBe("400");
  expect(await statusOf(server, "host: localhost", "host: localhost")).toBe("400");
});

it("a Host header from which two names can be read is a bad request", async () => {
  const server = await startServer({ groups: [groupOf("main", [route("GET /here", () => ({ status: 200 }))])] });
  for (const host of ["localhost:1@evil", "localhost:1@evil.example", "localhost:evil", "localhost,evil.example"])
    expect([host, await statusOf(server, `host: ${host}`)]).toEqual([host, "400"]);
});

it("two tokens count as no token", async () => {
  const server = await startServer({
    groups: [groupOf("main", [route("GET /here", () => ({ status: 200 }))])],
    auth: createAuth([parseToken(`operator:${token}`, "1")]),
  });
  const shown = `authorization: Bearer ${token}`;
  expect(await statusOf(server, "host: localhost", shown)).toBe("200");
  expect(await statusOf(server, "host: localhost", shown, "authorization: Bearer another")).toBe("401");
});

it("a worker also refuses two Host headers", async () => {
  const worker = await serveWorker({ port: 0 }, { metrics: () => "a_metric 1\n", workers: () => ({}) });
  onTestFinished(() => worker.close());
  const status = await new Promise((resolve, reject) => {
    const headers = ["host", "localhost", "host", "rebound.example"];
    const asked = httpRequest(`${worker.url}/metrics`, { headers }, (answer) => resolve(answer.resume().statusCode));
    asked.once("error", reject).end();
  });
  expect(status).toBe(403);
});
