// A caller of a Stepflow HTTP worker sends many calls on one connection and disconnects. Node reports the end of the connection only to the
// first call. The other calls kept their slots, or their places in the queue for a slot, for minutes.

import { connect } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { task } from "../../src/core/task.ts";
import { setup } from "../support/stepflow-runtime.ts";
import { until } from "../support/until.ts";

/** A handler that runs until it is stopped, and counts how often it began and ended. */
function lasting() {
  const counts = { begun: 0, stopped: 0 };
  const handler = (_: unknown, { signal }: { readonly signal: AbortSignal }) =>
    new Promise<never>((_resolve, reject) => {
      counts.begun++;
      signal.addEventListener("abort", () => {
        counts.stopped++;
        reject(signal.reason);
      });
    });
  return { counts, tasks: [task("lasting", handler), task("echo", async (input) => input)] };
}

function calls(count: number): string {
  const params = { component: "/lasting", input: {}, attempt: 1, observability: {} };
  const body = JSON.stringify({ jsonrpc: "2.0", id: "1", method: "components/execute", params });
  const types = "content-type: application/json\r\naccept: application/json, text/event-stream\r\n";
  return `POST / HTTP/1.1\r\nhost: 127.0.0.1\r\n${types}content-length: ${body.length}\r\n\r\n${body}`.repeat(count);
}

it("frees the slots of all calls on a connection when it ends", async () => {
  const { counts, tasks } = lasting();
  await using s = await setup({ tasks, work: { slots: 3 } });
  const socket = connect(Number(new URL(s.runtime.url).port), "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  // Two more than there are slots.
  socket.write(calls(5));
  await until(() => counts.begun === 3);
  socket.destroy();
  await until(() => counts.stopped === 3);
  expect((await s.runtime.execute("/echo", { a: 1 })).answer.result.output).toEqual({ a: 1 });
  expect(counts.begun).toBe(3);
});

it("ends a connection with more calls than a runtime ever sends", async () => {
  const { counts, tasks } = lasting();
  await using s = await setup({ tasks, work: { slots: 100 } });
  const socket = connect(Number(new URL(s.runtime.url).port), "127.0.0.1");
  const closed = new Promise((resolve) => socket.on("close", resolve).on("error", () => {}));
  socket.write(calls(50));
  await closed;
  expect((await s.runtime.execute("/echo", {})).answer.result.output).toEqual({});
  expect(counts.begun).toBeLessThanOrEqual(16);
});
