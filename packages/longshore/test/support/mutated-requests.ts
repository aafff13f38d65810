// Requests that are almost valid, and the result of Node's own parser. What our listener reads directly must have exactly the same meaning
// for Node: if the two find different ends of a request, requests can be smuggled.

import { createServer, type IncomingHttpHeaders } from "node:http";
import { Duplex } from "node:stream";
import fc from "fast-check";
import { expect } from "vitest";
import { readDirect } from "../../src/net/listener/direct-request.ts";

export const headMax = 16_384;

interface Seen {
  method: string | undefined;
  url: string | undefined;
  headers: IncomingHttpHeaders;
  body: string;
}

/** The result of node:http for the bytes: every request that it emits. */
async function readByNode(bytes: Buffer): Promise<Seen[]> {
  const seen: Seen[] = [];
  const server = createServer({ maxHeaderSize: headMax }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method, url, headers } = request;
      seen.push({ method, url, headers, body: Buffer.concat(chunks).toString("latin1") });
      response.end();
    });
  });
  server.on("clientError", (_error, socket) => socket.destroy());
  const socket = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
  const closed = new Promise((resolve) => socket.once("close", resolve));
  server.emit("connection", socket);
  socket.push(bytes);
  socket.push(null);
  await closed;
  return seen;
}

const name = fc.oneof(
  { weight: 4, arbitrary: fc.stringMatching(/^[Xx]-[A-Za-z0-9]{1,8}$/) },
  fc.constantFrom("accept", "Cookie", "content-type", "authorization", "te", "connection", "content-length", "Host", "transfer-encoding"),
);
const value = fc.oneof(
  fc.stringMatching(/^[!-~]([ -~]{0,8}[!-~])?$/),
  fc.constantFrom("keep-alive", "close", "3", "chunked"),
  fc.string({ maxLength: 8 }),
);
const target = fc.oneof(fc.webPath(), fc.constantFrom("/x?a=b&c=%20", "//", "/a/../b", "*", "/x y"));
const method = fc.constantFrom("GET", "POST", "POST", "PUT", "DELETE", "HEAD");
const nearly = fc
  .record({
    method,
    target,
    headers: fc.array(fc.tuple(name, fc.constantFrom(": ", ": ", ": ", ":", ":  ", " : "), value), { maxLength: 2 }),
    body: fc.string({ maxLength: 20 }),
    tail: fc.constantFrom("", "", "", "", "GET / HTTP/1.1\r\n\r\n", "\r\n"),
  })
  .map(({ method, target, headers, body, tail }) => {
    const length = Buffer.byteLength(body, "latin1");
    const lines = headers.map(([name, between, value]) => `${name}${between}${value}\r\n`).join("");
    return `${method} ${target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${length}\r\n${lines}\r\n${body}${tail}`;
  });
const edit = fc.record({
  at: fc.nat(),
  cut: fc.nat(3),
  put: fc.constantFrom("", " ", "\t", "\r", "\n", "\r\n", ":", "0", "\0", "\xff", "a"),
});
const mutated = fc.tuple(nearly, fc.oneof(fc.constant([]), fc.array(edit, { maxLength: 2 }))).map(([text, edits]) => {
  let spoilt = text;
  for (const { at, cut, put } of edits) {
    const from = at % (spoilt.length + 1);
    spoilt = spoilt.slice(0, from) + put + spoilt.slice(from + cut);
  }
  return Buffer.from(spoilt, "latin1");
});

/** Lets Node read each request that is read directly; returns how many were. Throws for the first that differs. */
export async function compareWithNode(numRuns: number): Promise<number> {
  let understood = 0;
  await fc.assert(
    fc.asyncProperty(mutated, async (bytes) => {
      const direct = readDirect(bytes, headMax);
      if (direct === undefined) return;
      understood++;
      const { method, url, headers, body } = direct;
      expect(await readByNode(bytes)).toEqual([{ method, url, headers, body: body.toString("latin1") }]);
    }),
    { numRuns },
  );
  return understood;
}
