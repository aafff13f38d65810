// HTTP tasks with a real server on a socket. The expected outputs and reasons are those of the real Conductor server for the same requests,
// without the names of its classes.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { LaneFailure, type LaneWork } from "../../../../engine/board/lane-worker.ts";
import { AddressGuard } from "../../../../net/http/address-guard.ts";
import { HttpCalls } from "./http.ts";

const seen: IncomingMessage[] = [];
const server = createServer((request, response) => void answer(request, response));
let base = "";
const calls = new HttpCalls(new AddressGuard(["127.0.0.1"]), (name) => (name === "KEY" ? "s3cret" : null));

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await calls.close();
  server.closeAllConnections();
  server.close();
});

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  seen.push(request);
  let body = "";
  for await (const piece of request) body += piece;
  switch (request.url) {
    case "/echo":
      response.writeHead(201, "Made", { "content-type": "application/json", "set-cookie": "session=1", date: "now" });
      return void response.end(JSON.stringify({ method: request.method, type: request.headers["content-type"], body }));
    case "/gone":
      response.writeHead(404, "Nope");
      return void response.end('{"why":"gone"}');
    case "/text":
      return void response.end("hello");
    case "/none":
      return void response.writeHead(204).end();
    case "/around":
      return void response.writeHead(302, { location: "/around" }).end();
    case "/away":
      return void response.writeHead(302, { location: "http://127.0.0.2:1/inside" }).end();
    case "/back":
      return void response.writeHead(302, { location: "/echo" }).end();
    case "/large":
      return void response.end("x".repeat(2_000_000));
  }
}

function perform(input: unknown): Promise<unknown> {
  const work = { task: { input: JSON.stringify(input) }, signal: new AbortController().signal } as unknown as LaneWork;
  return calls.perform(work);
}

async function refused(input: unknown): Promise<{ error: string; output: unknown }> {
  const failure = await perform(input).then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(failure instanceof LaneFailure)) throw failure ?? new Error("It did not fail.");
  const { error, output } = failure.report;
  return { error, output: output === undefined ? undefined : JSON.parse(output) };
}

it("sends method, headers and body, and returns the response", async () => {
  const input = { uri: `${base}/echo`, method: "POST", body: { a: 1 }, headers: { "X-Mine": "v", n: 5 } };
  expect(await perform(input)).toMatchObject({
    response: {
      statusCode: 201,
      reasonPhrase: "Made",
      headers: { "content-type": ["application/json"], "set-cookie": ["***"] },
      body: { method: "POST", type: "application/json", body: '{"a":1}' },
    },
  });
  expect(seen.at(-1)?.headers).toMatchObject({ accept: "application/json", "x-mine": "v", n: "5" });
});

it("reads the request from http_request, with its own types", async () => {
  const request = { uri: `${base}/echo`, method: "PUT", body: "plain", contentType: "text/plain", accept: ["text/plain", "text/html"] };
  expect(await perform({ http_request: request })).toMatchObject({ response: { body: { type: "text/plain", body: "plain" } } });
  expect(seen.at(-1)?.headers.accept).toBe("text/plain, text/html");
  const form = { uri: `${base}/echo`, method: "POST", body: { a: "1 2", b: true }, contentType: "application/x-www-form-urlencoded" };
  expect(await perform(form)).toMatchObject({ response: { body: { body: "a=1+2&b=true" } } });
});

it("returns a body that is not JSON as text, and none as null", async () => {
  expect(await perform({ uri: `${base}/text`, method: "GET" })).toMatchObject({ response: { body: "hello", reasonPhrase: "OK" } });
  expect(await perform({ uri: `${base}/none`, method: "DELETE" })).toMatchObject({ response: { body: null, statusCode: 204 } });
  expect(await perform({ uri: `${base}/text`, method: "HEAD" })).toMatchObject({ response: { body: null } });
});

it("fails with status, request and body of another status", async () => {
  const why = `404 Nope on GET request for "${base}/gone": "{"why":"gone"}"`;
  expect(await refused({ uri: `${base}/gone`, method: "GET" })).toEqual({
    error: `Failed to invoke HTTP task due to: ${why}`,
    output: { response: why },
  });
});

it("names what is missing or wrong in the request", async () => {
  expect((await refused({ method: "GET" })).error).toBe("Missing HTTP URI.  See documentation for HttpTask for required input parameters");
  expect((await refused({ uri: `${base}/echo`, method: null })).error).toBe("No HTTP method specified");
  expect((await refused({ uri: `${base}/echo`, method: "FETCH" })).error).toContain("Invalid HTTP method: FETCH");
  expect((await refused({ uri: "not a uri", method: "GET" })).error).toContain('I/O error on GET request for "not a uri": Invalid URL');
  expect((await refused({ uri: "file:///etc/passwd", method: "GET" })).error).toContain("file: is not http: or https:");
});

it("fails when nothing listens at the address", async () => {
  const closed = createServer();
  await new Promise<void>((resolve) => closed.listen(0, "127.0.0.1", resolve));
  const uri = `http://127.0.0.1:${(closed.address() as AddressInfo).port}/`;
  await new Promise((resolve) => closed.close(resolve));
  const { error } = await refused({ uri, method: "GET" });
  expect(error).toBe(`Failed to invoke HTTP task due to: I/O error on GET request for "${uri}": Connection refused`);
});

it("fails when the server does not answer in time", async () => {
  const { error } = await refused({ uri: `${base}/never`, method: "GET", connectionTimeOut: 10, readTimeOut: 10 });
  expect(error).toBe(`Failed to invoke HTTP task due to: I/O error on GET request for "${base}/never": Read timed out`);
});

it("refuses a body above the limit", async () => {
  expect((await refused({ uri: `${base}/large`, method: "GET" })).error).toMatch(/I\/O error on GET request.*1048576/);
});

it("follows redirects up to a limit, and checks the address of each", async () => {
  expect(await perform({ uri: `${base}/back`, method: "GET" })).toMatchObject({ response: { statusCode: 201 } });
  expect((await refused({ uri: `${base}/around`, method: "GET" })).error).toContain("302 Found on GET request");
  expect((await refused({ uri: `${base}/away`, method: "GET" })).error).toContain("The address of 127.0.0.2 is not public");
});

it("refuses every address that is not public, in any notation", async () => {
  const before = seen.length;
  const port = new URL(base).port;
  for (const host of ["127.0.0.3", "[::1]", "169.254.169.254", "0x7f000002", "2130706434"])
    expect((await refused({ uri: `http://${host}:${port}/text`, method: "GET" })).error).toContain("is not public");
  expect(seen.length).toBe(before);
});

it("fills in secrets of the definition and shows them in no error", async () => {
  const input = {
    uri: `${base}/gone?key=\${workflow.secrets.KEY}`,
    method: "GET",
    headers: { authorization: "Bearer ${workflow.secrets.KEY}" },
  };
  const { error } = await refused({ ...input, uri: `${base}/gone`, method: "GET" });
  expect(seen.at(-1)?.headers.authorization).toBe("Bearer s3cret");
  expect(error).not.toContain("s3cret");
  expect((await refused({ ...input, readTimeOut: 10, connectionTimeOut: 10 })).error).not.toContain("s3cret");
  expect(seen.at(-1)?.url).toBe("/gone?key=s3cret");
});
