// What is read directly must have exactly the same meaning for node:http; everything else is left to node:http. The second half makes
// requests that are almost valid. Node's own parser reads each request that was read directly, and the results are compared.

import { describe, expect, it } from "vitest";
import { compareWithNode, headMax } from "../../../test/support/mutated-requests.ts";
import { directBytesMax, readDirect } from "./direct-request.ts";

const read = (text: string) => readDirect(Buffer.from(text, "latin1"), headMax);
const host = "host: localhost\r\n";

describe("a request that is read directly", () => {
  it("has its method, target, headers in lower case, and body", () => {
    const request = read(
      'POST /api/jobs/claim?x=%20 HTTP/1.1\r\nHost: localhost:4500\r\nContent-Type:application/json\r\nContent-Length: 7\r\n\r\n{"a":1}',
    );
    expect(request).toMatchObject({
      method: "POST",
      url: "/api/jobs/claim?x=%20",
      headers: { host: "localhost:4500", "content-type": "application/json", "content-length": "7" },
    });
    expect(request?.body.toString()).toBe('{"a":1}');
  });

  it("may keep its connection by a header, in any case", () => {
    for (const value of ["keep-alive", "Keep-Alive"]) expect(read(`GET / HTTP/1.1\r\n${host}Connection: ${value}\r\n\r\n`)).toBeDefined();
  });

  it("may have an empty body, with or without a length", () => {
    expect(read(`POST /x HTTP/1.1\r\n${host}\r\n`)?.body.length).toBe(0);
    expect(read(`POST /x HTTP/1.1\r\n${host}content-length: 0\r\n\r\n`)?.body.length).toBe(0);
  });

  it("is no longer than one read of a socket, with a head below the limit", () => {
    const body = (length: number) => `POST /x HTTP/1.1\r\n${host}content-length: ${length}\r\n\r\n${"x".repeat(length)}`;
    const rest = body(10_000).length - 10_000;
    expect(read(body(directBytesMax - rest))).toBeDefined();
    expect(read(body(directBytesMax - rest + 1))).toBeUndefined();
    const large = Buffer.from(`GET /x HTTP/1.1\r\n${host}x-large: ${"y".repeat(500)}\r\n\r\n`);
    expect([readDirect(large, 1_000) === undefined, readDirect(large, 100) === undefined]).toEqual([false, true]);
  });
});

describe("a request that is left to node:http", () => {
  const get = (headers: string, line = "GET /x HTTP/1.1") => `${line}\r\n${headers}\r\n`;
  const cases: Record<string, string> = {
    "is not complete": `POST /x HTTP/1.1\r\n${host}content-length: 3\r\n\r\nab`,
    "has something behind it": `POST /x HTTP/1.1\r\n${host}content-length: 3\r\n\r\nabcd`,
    "is followed by another": get(host) + get(host),
    "follows an empty line": `\r\n${get(host)}`,
    "is of HTTP/1.0": get(host, "GET /x HTTP/1.0"),
    "is the preface of HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "has another method": get(host, "OPTIONS /x HTTP/1.1"),
    "has a method in lower case": get(host, "get /x HTTP/1.1"),
    "asks for the head only": get(host, "HEAD /x HTTP/1.1"),
    "has an absolute target": get(host, "GET http://localhost/x HTTP/1.1"),
    "has a target without a slash": get(host, "GET x HTTP/1.1"),
    "has a fragment": get(host, "GET /x#y HTTP/1.1"),
    "has two spaces in its first line": get(host, "GET  /x HTTP/1.1"),
    "has a letter beyond ASCII in its target": get(host, "GET /\xe9 HTTP/1.1"),
    "has no host": get("accept: */*\r\n"),
    "has no header": "GET /x HTTP/1.1\r\n\r\n",
    "has two hosts": get(`${host}Host: other\r\n`),
    "names a header twice": get(`${host}x: 1\r\nx: 2\r\n`),
    "has a header named as a part of every object": get(`${host}constructor: 1\r\n`),
    "has two lengths": `POST /x HTTP/1.1\r\n${host}content-length: 1\r\ncontent-length: 1\r\n\r\na`,
    "has a list of lengths": `POST /x HTTP/1.1\r\n${host}content-length: 1, 1\r\n\r\na`,
    "has a length with a sign": `POST /x HTTP/1.1\r\n${host}content-length: +1\r\n\r\na`,
    "has a length with a leading zero": `POST /x HTTP/1.1\r\n${host}content-length: 01\r\n\r\na`,
    "has a length in hex": `POST /x HTTP/1.1\r\n${host}content-length: 0x1\r\n\r\na`,
    "is chunked": `POST /x HTTP/1.1\r\n${host}transfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    "is chunked and has a length": `POST /x HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n`,
    "expects something": get(`${host}expect: 100-continue\r\n`),
    upgrades: get(`${host}upgrade: websocket\r\nconnection: upgrade\r\n`),
    "closes its connection": get(`${host}connection: close\r\n`),
    "lists its connection's options": get(`${host}connection: keep-alive, upgrade\r\n`),
    "has a space before a colon": get(`${host}transfer-encoding : chunked\r\n`),
    "has a folded header": get(`${host}x: a\r\n b\r\n`),
    "has an empty value": get(`${host}x:\r\n`),
    "has spaces around a value": get(`${host}x:  a \r\n`),
    "has a tab in a value": get(`${host}x: a\tb\r\n`),
    "has a bare line feed": get(`${host}x: a\nb: c\r\n`),
    "has a bare carriage return": get(`${host}x: a\rb: c\r\n`),
    "has a zero byte": get(`${host}x: a\0b\r\n`),
    "has a header name beyond ASCII": get(`${host}\xe9: 1\r\n`),
  };
  it.each(Object.entries(cases))("%s", (_why, text) => {
    expect(read(text)).toBeUndefined();
  });
});

describe("everything that is read directly", () => {
  it("is one request, and the same one for node:http", async () => {
    // Otherwise the property would prove nothing.
    expect(await compareWithNode(5_000)).toBeGreaterThan(500);
  });

  it("is not read directly when any byte of it is missing", () => {
    const whole = Buffer.from(`POST /x HTTP/1.1\r\n${host}content-length: 13\r\n\r\n{"a":"\\r\\n"}\n`);
    expect(readDirect(whole, headMax)).toBeDefined();
    for (let end = 0; end < whole.length; end++) expect(readDirect(whole.subarray(0, end), headMax)).toBeUndefined();
  });
});
