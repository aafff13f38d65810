// Not an attack, but many workers that connect again: thousands of connections while the server is busy. The operating system must keep them
// until the server accepts them. Otherwise clients try again a second later, and then after growing pauses.

import { Worker } from "node:worker_threads";
import { expect, it, onTestFinished } from "vitest";
import { groupOf, route, startServer } from "../support/http.ts";

/** Far more than Node's default backlog of 511, and fewer than the files that a process may open. */
const connections = 2_000;

it("a burst of connections is kept while the event loop is busy", async () => {
  const server = await startServer({ groups: [groupOf("main", [route("GET /hello", () => ({ status: 200, body: "hello" }))])] });
  const counted = new Int32Array(new SharedArrayBuffer(4));
  const dialer = new Worker(
    `const { workerData } = require("node:worker_threads");
     const { connect } = require("node:net");
     for (let at = 0; at < workerData.connections; at++) {
       connect(workerData.port, "127.0.0.1", () => { Atomics.add(workerData.counted, 0, 1); Atomics.notify(workerData.counted, 0); })
         .on("error", () => {});
     }`,
    { eval: true, workerData: { port: server.port, connections, counted } },
  );
  onTestFinished(() => void dialer.terminate());
  await new Promise((resolve) => dialer.once("online", resolve));
  // This thread does nothing else until the other connections exist, like a busy server. The wait ends after a time if they never come.
  for (let quiet = 0; quiet < 25; ) {
    const seen = Atomics.load(counted, 0);
    if (seen === connections) break;
    if (Atomics.wait(counted, 0, seen, 200) === "timed-out") quiet++;
  }
  expect(Atomics.load(counted, 0)).toBe(connections);
});
