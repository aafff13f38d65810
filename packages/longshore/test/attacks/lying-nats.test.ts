// A server that violates the NATS protocol. One line that the client cannot read delayed the end of a worker by 45 seconds. A server that
// ended every request at once was called ten thousand times a second, and each refused message was a line in the log.

import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { task } from "../../src/core/task.ts";
import { NatsServerConnection } from "../../src/protocols/stepflow/server/nats/connection.ts";
import { loadNats, type NatsClient } from "../../src/protocols/stepflow/wire/nats/client.ts";
import { guarded, guardSocket } from "../../src/protocols/stepflow/wire/nats/guard.ts";
import { stepflowNats } from "../../src/protocols/stepflow/worker/index.ts";
import type { Notice } from "../../src/runner/notices.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { work } from "../../src/work.ts";
import { lyingNats, type Published } from "../support/lying-nats.ts";
import { countTurns } from "../support/turn-count.ts";

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

/** A server that begins with these bytes and sends the piece again and again. Counts what a client has taken until it disconnects. */
async function flooding(first: string, piece: Buffer, bytesMax: number) {
  let sent = 0;
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.write(first);
    const more = () => {
      while (!socket.destroyed && sent < bytesMax) {
        sent += piece.length;
        if (!socket.write(piece)) return void socket.once("drain", more);
      }
      socket.end();
    };
    more();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { port, url: `nats://127.0.0.1:${port}`, sent: () => sent };
}

const greeting = `INFO ${JSON.stringify({ server_id: "s", version: "2.10.0", proto: 1, headers: true, max_payload: 1_048_576 })}\r\n`;
const floodBytes = 67_108_864;

it.each([
  ["what a server says about itself", "INFO "],
  ["an error of a server", `${greeting}-ERR `],
])("%s is read up to a maximum length, and not without an end", async (_what, first) => {
  const flood = await flooding(first, Buffer.alloc(65_536, "x"), floodBytes);
  const { transport } = await loadNats();
  const connected = guarded(() => transport.connect({ servers: [flood.url], reconnect: false, timeout: 60_000 }));
  await expect(connected.then((connection) => connection.closed())).rejects.toThrow("a line of more than 65536 bytes");
  // What the sockets of both sides have room for.
  expect(flood.sent()).toBeLessThan(floodBytes / 4);
});

it("a client gets few lines of a server in one turn, and all of them in their order", async () => {
  const line = "MSG subject 1 5\r\nhello\r\nPING\r\n";
  const piece = Buffer.from(line.repeat(2_000));
  const flood = await flooding("", piece, 2_000_000);
  const socket = connect(flood.port, "127.0.0.1");
  guardSocket(socket);
  const turns = countTurns();
  let text = "";
  socket.on("data", (bytes: Buffer) => {
    const piece = bytes.toString("latin1");
    text += piece;
    for (let at = piece.indexOf("\n"); at >= 0; at = piece.indexOf("\n", at + 1)) turns.add();
  });
  await once(socket, "close");
  expect(text).toBe(line.repeat(text.length / line.length));
  expect(text.length).toBe(flood.sent());
  // Where the end of one turn and the begin of the next may fall between two looks.
  expect(turns.most).toBeLessThanOrEqual(800);
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
