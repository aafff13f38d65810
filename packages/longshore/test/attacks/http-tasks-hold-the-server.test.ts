// The author of a definition calls servers of his own with HTTP tasks. Such a server announced its response without an end, and the task kept its
// place without a limit; it sent a million characters of JSON that were read in one turn of the event loop; it asked to keep each connection open for ten minutes; or its name server did not answer, while lookups held the threads
// that also read files.

import { createServer } from "node:http";
import { type AddressInfo, createServer as createSocketServer } from "node:net";
import { expect, it, onTestFinished, vi } from "vitest";
import type { LaneWork } from "../../src/engine/board/lane-worker.ts";
import { AddressGuard } from "../../src/net/http/address-guard.ts";
import { HttpCalls } from "../../src/protocols/conductor/server/system/http.ts";

function httpCalls(): (uri: string) => Promise<unknown> {
  const calls = new HttpCalls(new AddressGuard(["127.0.0.1"]), () => null);
  onTestFinished(() => calls.close());
  return (uri) => {
    const input = JSON.stringify({ uri, method: "GET", readTimeOut: 60_000 });
    return calls.perform({ task: { input }, signal: new AbortController().signal } as unknown as LaneWork);
  };
}

it.each([102, 103])("a response that is announced with status %i without an end fails the task", async (status) => {
  const server = createSocketServer((socket) => {
    socket.on("error", () => {});
    // Each request and each further turn announces the response again.
    const announce = () => socket.destroyed || socket.write(`HTTP/1.1 ${status} Soon\r\n\r\n`, () => setImmediate(announce));
    socket.once("data", announce);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const call = httpCalls();
  await expect(call(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)).rejects.toThrow("announced a response 8 times");
});

it.each(["000", "001", "099"])("a response with the status %s fails the task with a text about the response", async (status) => {
  const server = createSocketServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.end(`HTTP/1.1 ${status} None\r\ncontent-length: 0\r\n\r\n`));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const call = httpCalls();
  await expect(call(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)).rejects.toThrow(/: The response is not HTTP\.$/);
});

it("connections to many servers are not all kept", async () => {
  const asked: (string | undefined)[] = [];
  const uris = Array.from({ length: 140 }, async () => {
    const server = createServer({ keepAliveTimeout: 600_000 }, (request, response) => {
      asked.push(request.headers.connection);
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  });
  const call = httpCalls();
  for (const uri of await Promise.all(uris)) await call(uri);
  expect(asked.filter((connection) => connection === "keep-alive")).toHaveLength(128);
  expect(asked.slice(128)).toEqual(Array(12).fill("close"));
});

it("a large response is read in several turns of the event loop, and many small ones are not read in one", async () => {
  const bodies: { readonly [path: string]: string } = {
    "/large": `[${"[],".repeat(349_000)}0]`,
    "/broken": `[${"[],".repeat(349_000)}`,
    "/text": JSON.stringify("x".repeat(1_000_000)),
    "/small": `[${"[],".repeat(16_000)}0]`,
  };
  const server = createServer((request, response) => response.end(bodies[request.url ?? ""]));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const call = httpCalls();
  const bodyOf = async (path: string) => {
    const output = await call(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`);
    return (output as { response: { body: unknown } }).response.body;
  };
  const { parse } = JSON;
  const inTurn = { chars: 0, most: 0 };
  const reading = vi.spyOn(JSON, "parse").mockImplementation((text, reviver) => {
    // A text has no parts, and is copied in less than a millisecond.
    if (!text.startsWith('"')) inTurn.chars += text.length;
    inTurn.most = Math.max(inTurn.most, inTurn.chars);
    setImmediate(() => {
      inTurn.chars = 0;
    });
    return parse(text, reviver);
  });
  onTestFinished(() => reading.mockRestore());
  expect(await bodyOf("/large")).toHaveLength(349_001);
  expect(await bodyOf("/broken")).toBe(bodies["/broken"]);
  expect(await bodyOf("/text")).toHaveLength(1_000_000);
  for (const body of await Promise.all(Array.from({ length: 30 }, () => bodyOf("/small")))) expect(body).toHaveLength(16_001);
  // A slice is 128,000 characters. The first one may be read in a turn before its immediates run, and the second one in these.
  expect(inTurn.most).toBeLessThanOrEqual(2 * 128_000);
});

it("a server cannot choose a slow way to make the keys of TLS", async () => {
  let hello = Buffer.alloc(0);
  const server = createSocketServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", (bytes) => {
      hello = bytes;
      socket.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  await expect(httpCalls()(`https://127.0.0.1:${(server.address() as AddressInfo).port}/`)).rejects.toThrow("I/O error");
  // A record, a message, a version, 32 random bytes and an id of 32 bytes are before the list of ciphers.
  const listAt = 5 + 4 + 2 + 32 + 33;
  const ciphers = Array.from({ length: hello.readUInt16BE(listAt) / 2 }, (_, at) => hello.readUInt16BE(listAt + 2 + 2 * at));
  const finiteFields = [0x33, 0x39, 0x67, 0x6b, 0x9e, 0x9f, 0xccaa];
  expect(ciphers.filter((cipher) => finiteFields.includes(cipher))).toEqual([]);
  const groupsAt = hello.indexOf(Buffer.from([0x00, 0x0a, 0x00]), listAt + 2 + 2 * ciphers.length);
  const groups = Array.from({ length: hello.readUInt16BE(groupsAt + 4) / 2 }, (_, at) => hello.readUInt16BE(groupsAt + 6 + 2 * at));
  expect(groups).toContain(0x1d);
  expect(groups.filter((group) => group >= 0x100 && group <= 0x104)).toEqual([]);
});

it("at most two names are looked up at once", async () => {
  const begun: string[] = [];
  const answers: (() => void)[] = [];
  const guard = new AddressGuard([], (name) => {
    begun.push(name);
    return new Promise((resolve) => answers.push(() => resolve([{ address: "93.184.216.34", family: 4 }])));
  });
  const found = Array.from({ length: 6 }, (_, at) => guard.addressOf(`host${at}.example`));
  expect(begun).toHaveLength(2);
  for (let at = 0; at < 6; at++) {
    answers[at]?.();
    await found[at];
    expect(begun).toHaveLength(Math.min(at + 3, 6));
  }
});
