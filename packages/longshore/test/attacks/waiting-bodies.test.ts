// The attacker holds a worker token and sends long polls with bodies of megabytes, mostly spaces, or sends further bytes after a long poll.
// Thousands of them wait at the same time. A waiting request must keep nothing of its body in memory, and active requests at most the budget.

import { expect, it } from "vitest";
import type { HttpRequest } from "../../src/net/http/http.ts";
import type { HttpLimits } from "../../src/net/listener/limits.ts";
import { callCarried, carriers, groupOf, latch, RawClient, route, startServer } from "../support/http.ts";
import { until } from "../support/until.ts";

const padded = `{"worker_id":"w"${" ".repeat(10_000)}}`;

const small = "POST /poll HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}";

/** A route that waits like a long poll, and one that works on its body until the test ends this. */
async function started(limits: Partial<HttpLimits> = {}) {
  const requests: HttpRequest[] = [];
  const end = latch();
  const poll = route("POST /poll", async (request) => {
    const { length } = request.text;
    requests.push(request);
    expect(request.gone.aborted).toBe(false);
    await end.opened;
    return { status: 200, body: String(length) };
  });
  const work = route("POST /work", async (request) => {
    requests.push(request);
    await end.opened;
    return { status: 200, body: String(request.text.length) };
  });
  const server = await startServer({ groups: [groupOf("main", [poll, work])], limits });
  const held = () => Number(/^longshore_http_receiving_bytes (\d+)$/m.exec(server.metrics.text())?.[1]);
  return { server, requests, end, held };
}

it.each(carriers)("a long poll keeps nothing of its body in memory while it waits, carried %s", async (carried) => {
  const { server, requests, end, held } = await started();
  const answers = Array.from({ length: 3 }, () => callCarried(carried)(`${server.url}/poll`, { method: "POST", body: padded }));
  await until(() => requests.length === 3);
  expect(requests.map(({ text, parsed }) => [text, parsed])).toEqual(Array.from({ length: 3 }, () => ["", undefined]));
  expect(held()).toBe(0);
  end.open();
  expect((await Promise.all(answers)).map(({ text }) => text)).toEqual(Array.from({ length: 3 }, () => String(padded.length)));
});

it.each(carriers)("bodies of active requests count until the response, carried %s", async (carried) => {
  const { server, requests, end, held } = await started({ receivingBytes: 25_000 });
  const post = () => callCarried(carried)(`${server.url}/work`, { method: "POST", body: padded });
  const answers = [post(), post()];
  await until(() => requests.length === 2);
  expect(held()).toBe(2 * padded.length);
  expect((await post()).status).toBe(503);
  end.open();
  expect((await Promise.all(answers)).map(({ text }) => text)).toEqual([String(padded.length), String(padded.length)]);
  expect(held()).toBe(0);
  expect((await post()).status).toBe(200);
});

it("of the bytes after a long poll, at most one more request is read", async () => {
  const { server, requests, end, held } = await started();
  const client = new RawClient(server);
  client.send(small);
  await until(() => requests.length === 1);
  client.send("G".repeat(4_000_000));
  await until(() => held() > 0);
  expect(held()).toBeLessThanOrEqual(2 * 65_536);
  client.socket.destroy();
  end.open();
  await until(() => held() === 0);
});

it("bytes after long polls count against the budget, and a client that sends more is disconnected", async () => {
  const { server, requests, held } = await started({ receivingBytes: 1_000 });
  const client = new RawClient(server);
  client.send(small);
  await until(() => requests.length === 1);
  client.send("G".repeat(4_000_000));
  await client.closed();
  expect(held()).toBe(0);
});
