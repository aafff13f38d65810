// The attacker is the worker's server, or answers in its place. It begins a response and sends a single byte now and then. Each report that
// waited for such a response kept its slot for days, until the worker had no free slot, not even for other servers.

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { openPool, send } from "../../src/net/http/send.ts";

async function dripping() {
  const sockets: ServerResponse[] = [];
  let begun: (response: ServerResponse) => void = () => {};
  const first = new Promise<ServerResponse>((resolve) => {
    begun = resolve;
  });
  const server = createServer((request, response) => {
    request.resume();
    sockets.push(response);
    response.writeHead(200);
    response.write(" ");
    begun(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const pool = await openPool(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, 1);
  onTestFinished(async () => {
    await pool.destroy();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { pool, first };
}

const request = { method: "POST" as const, path: "/", headersTimeout: 10_000, bodyTimeout: 10_000 };

/** Sends the pieces, each after the given number of milliseconds, and returns the result of the request. */
async function answered(pieces: readonly { readonly afterMs: number; readonly bytes: number }[]): Promise<string> {
  const { pool, first } = await dripping();
  let nowMs = 0;
  let took: () => void = () => {};
  const steady = () => {
    took();
    return nowMs;
  };
  const reply = send(pool, request, undefined, { steady }).then(
    ({ text }) => `${text.length} characters`,
    (error: Error) => error.message,
  );
  const response = await first;
  for (const { afterMs, bytes } of pieces) {
    nowMs += afterMs;
    const taken = new Promise<void>((resolve) => {
      took = resolve;
    });
    response.write(Buffer.alloc(bytes, " "));
    await Promise.race([taken, reply]);
  }
  response.end();
  return reply;
}

it("a response that arrives byte by byte is cancelled", async () => {
  const drips = Array.from({ length: 10 }, () => ({ afterMs: 9_000, bytes: 1 }));
  expect(await answered(drips)).toMatch(/fewer than 1024 bytes a second/);
});

it("a large response that arrives slowly but steadily is read", async () => {
  const pieces = Array.from({ length: 10 }, () => ({ afterMs: 9_000, bytes: 20_000 }));
  expect(await answered(pieces)).toBe("200001 characters");
});
