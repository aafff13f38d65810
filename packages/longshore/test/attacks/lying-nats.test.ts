// A server that violates the NATS protocol. One line that the client cannot read delayed the end of a worker by 45 seconds. A server that
// ended every request at once was called ten thousand times a second, and each refused message was a line in the log.

import { expect, it } from "vitest";
import { task } from "../../src/core/task.ts";
import { NatsServerConnection } from "../../src/protocols/stepflow/server/nats/connection.ts";
import type { NatsClient } from "../../src/protocols/stepflow/wire/nats/client.ts";
import { stepflowNats } from "../../src/protocols/stepflow/worker/index.ts";
import type { Notice } from "../../src/runner/notices.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { work } from "../../src/work.ts";
import { lyingNats, type Published } from "../support/lying-nats.ts";

const tasks = [task("echo", async (input) => input)];
const consumer = { type: "consumer_info", stream_name: "S", name: "c", config: {}, created: "2026-01-01T00:00:00Z" };

const answerInfo = ({ answer }: Published) => answer(JSON.stringify(consumer));

/** A worker whose requests for tasks, or for their consumer, get these responses. */
async function setup(
  { next = () => {}, info = answerInfo }: { [request in "next" | "info"]?: (message: Published) => void },
  heard: (notice: Notice) => void = () => {},
) {
  const url = await lyingNats((message) => {
    if (message.subject.startsWith("$JS.API.CONSUMER.MSG.NEXT")) next(message);
    else if (message.subject.startsWith("$JS.API.CONSUMER.INFO")) info(message);
  });
  const clock = new TestClock();
  const on = stepflowNats(url, { stream: "S", consumer: "c", orchestratorUrl: "http://127.0.0.1:1", env: {} });
  const worker = await work({ tasks, on, clock, signals: false, logger: heard });
  return { worker, clock };
}

it("a worker ends although its server has sent an unreadable line", async () => {
  let ask = () => {};
  const asked = new Promise<void>((resolve) => {
    ask = resolve;
  });
  const info = ({ raw }: Published) => {
    raw("THIS IS NOT NATS\r\n");
    ask();
  };
  const { worker, clock } = await setup({ info });
  await asked;
  const stopped = worker.stop();
  let over = false;
  void stopped.then(() => {
    over = true;
  });
  while (!over) {
    await clock.advance(100);
    await new Promise(setImmediate);
  }
  await stopped;
});

it("a worker pauses when its server ends a request at once", async () => {
  let requests = 0;
  let pause = () => {};
  const paused = new Promise<void>((resolve) => {
    pause = resolve;
  });
  const next = ({ answer }: Published) => {
    answer("", "408 Request Timeout");
    if (++requests > 100) pause();
  };
  const { worker } = await setup({ next }, ({ message }) => message.includes("408") && pause());
  await paused;
  expect(requests).toBeLessThan(10);
  await worker.stop();
});

it("a server soon checks whether its NATS server still responds", async () => {
  const gone = new AbortController();
  let asked: { pingInterval?: number; maxPingOut?: number } = {};
  const connect = (options: typeof asked) => {
    asked = options;
    gone.abort();
    return Promise.reject(new Error("no server"));
  };
  const client = { transport: { connect } } as unknown as NatsClient;
  const trouble = { failing: () => {}, working: () => {} };
  const options = { client, url: "nats://127.0.0.1:1", consumer: "c", streams: [], clock: new TestClock(), trouble };
  await new NatsServerConnection(options).run(gone.signal);
  expect(asked).toMatchObject({ pingInterval: 15_000, maxPingOut: 2 });
});
