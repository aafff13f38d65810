// A client sends hundreds of requests with its first bytes, and the first of them stays open. So many responses wait for it that Node stops
// reading the connection. When the server read on nevertheless, an assertion of Node ended the process.

import { expect, it } from "vitest";
import { groupOf, latch, RawClient, route, startServer } from "../support/http.ts";

const requests = 400;
const replyText = "x".repeat(1_000);

it("requests that come with the first bytes of a connection wait until their responses have room", async () => {
  const release = latch<string>();
  const open = route("GET /open", async () => ({ status: 200, body: await release.opened }));
  const quick = route("GET /quick", () => ({ status: 200, body: replyText }));
  const last = route("GET /last", () => ({ status: 200, body: "the end" }));
  const server = await startServer({ groups: [groupOf("main", [open, quick, last])] });
  const client = new RawClient(server);
  // A header that the server leaves to node:http.
  const ask = (path: string) => `GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: keep-alive, x\r\n\r\n`;
  client.send(ask("/open") + ask("/quick").repeat(requests) + ask("/last"));
  await new RawClient(server).send("GET /last HTTP/1.1\r\nhost: localhost\r\n\r\n").until("the end");
  release.open("done");
  const text = await client.until("the end");
  expect(text.split("HTTP/1.1 200 OK\r\n").length - 1).toBe(requests + 2);
});
