// The attacker begins large bodies on many connections and never ends them, so that all of them are in the server's memory. The attacker
// holds no token, or one worker token. The server must use at most its memory budget, and report this to other callers.

import { connect, type Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { serve } from "../../src/server/server.ts";
import { call } from "../support/http.ts";

const worker = "worker:attacker-0123456789";
const bearer = "authorization: Bearer attacker-0123456789\r\n";

async function started(limits = {}) {
  const server = await serve({ ephemeral: true, port: 0, tokens: [worker, "read:reader-0123456789"], limits });
  onTestFinished(() => server.close(0));
  const held = async () => {
    const { text } = await call(`${server.url}/metrics`, { headers: { authorization: "Bearer reader-0123456789" } });
    return Number(/longshore_http_receiving_bytes (\d+)/.exec(text)?.[1]);
  };
  return { port: server.port as number, url: server.url as string, held };
}

/** Begins a body, and resolves with the first line of the response. */
function begin(port: number, path: string, head: string, body: string): Promise<string> & { readonly socket: Socket } {
  const socket = connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  const answer = new Promise<string>((resolve) => {
    let text = "";
    socket.on("data", (bytes) => {
      text += bytes.toString("latin1");
      if (text.includes("}")) resolve(text);
    });
    socket.on("error", () => resolve("cut"));
    socket.on("close", () => resolve(text));
  });
  socket.write(`POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n${head}\r\n${body}`);
  return Object.assign(answer, { socket });
}

const megabytes = "x".repeat(1_000_000);
const announced = "content-length: 11000000\r\n";
const chunked = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;

it("without a token no large body is read, with or without an announced length", async () => {
  const { port, held } = await started();
  expect(await begin(port, "/api/token", announced, megabytes)).toContain("HTTP/1.1 413 ");
  expect(await begin(port, "/api/token", "transfer-encoding: chunked\r\n", chunked(megabytes))).toContain("HTTP/1.1 413 ");
  // A route that needs a token refuses before it reads.
  expect(await begin(port, "/api/tasks", announced, megabytes)).toContain("HTTP/1.1 401 ");
  expect(await held()).toBe(0);
});

it("endless bodies use at most the budget, and the next request gets an error with the limit", async () => {
  const { port, held } = await started({ receivingBytes: 3_500_000 });
  const begun = Array.from({ length: 3 }, () => begin(port, "/api/tasks", bearer + announced, megabytes));
  for (let seen = 0; seen < 3_000_000; ) seen = await held();
  const refused = await begin(port, "/api/tasks", bearer + announced, megabytes);
  expect(refused).toContain("HTTP/1.1 503 ");
  expect(refused).toMatch(/retry-after: \d/i);
  expect(refused).toContain("3500000 bytes");
  expect(await held()).toBeLessThanOrEqual(3_500_000);
  // When a caller disconnects, its memory is free again.
  for (const { socket } of begun) socket.destroy();
  for (let left = 1; left > 0; ) left = await held();
});
