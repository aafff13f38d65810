// The attacker is between Longshore and its NATS server, or answers instead of it. The address of the server begins with `tls://`, but the
// attacker greets as a server without TLS. The login was then sent as plain text.

import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { task } from "../../src/core/task.ts";
import { NatsServerConnection } from "../../src/protocols/stepflow/server/nats/connection.ts";
import { loadNats } from "../../src/protocols/stepflow/wire/nats/client.ts";
import { stepflowNats } from "../../src/protocols/stepflow/worker/index.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { work } from "../../src/work.ts";

const secret = "s3cret-of-the-queue";
const greeting = `INFO ${JSON.stringify({ server_id: "s", version: "2.10.0", proto: 1, headers: true, max_payload: 1_048_576 })}\r\n`;

/** A listener that greets like NATS without TLS. `over` resolves to what its first client has sent until it disconnected. */
async function listener() {
  let end: (said: string) => void = () => {};
  const over = new Promise<string>((resolve) => {
    end = resolve;
  });
  const server = createServer((socket) => {
    let said = "";
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      said += bytes.toString("latin1");
      // What a client says first is its login: a server that has seen it needs no more.
      if (said.includes("CONNECT")) socket.destroy();
    });
    socket.on("close", () => end(said));
    socket.write(greeting);
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { url: (scheme: string) => `${scheme}://ada:${secret}@127.0.0.1:${port}`, over };
}

/** A Longshore server whose queue has this address. Resolves with the first error of its connection. */
async function connectServer(url: string): Promise<unknown> {
  const gone = new AbortController();
  const failed = new Promise<unknown>((resolve) => {
    const trouble = { failing: (_what: string, error: unknown) => resolve(error), working: () => {} };
    const clock = new TestClock();
    void loadNats().then((client) =>
      new NatsServerConnection({ client, url, consumer: "c", streams: [], clock, trouble }).run(gone.signal),
    );
  });
  onTestFinished(() => gone.abort());
  return failed;
}

it("a server sends its login to no NATS server without TLS when its address requires TLS", async () => {
  const { url, over } = await listener();
  expect(String(await connectServer(url("tls")))).toContain("tls");
  expect(await over).not.toContain(secret);
});

it("a worker also sends no login", async () => {
  const { url, over } = await listener();
  const on = stepflowNats(url("tls"), { stream: "S", consumer: "c", orchestratorUrl: "http://127.0.0.1:1", env: {} });
  const started = work({ tasks: [task("echo", (input) => input)], on, clock: new TestClock(), signals: false, logger: () => {} });
  expect(await over).not.toContain(secret);
  await (await started.catch(() => undefined))?.stop();
});

it("it is enough that one of several addresses requires TLS", async () => {
  const { url, over } = await listener();
  // The client tries the addresses in any order, so both lead to the attacker.
  expect(String(await connectServer(`${url("nats")},${url("tls")}`))).toContain("tls");
  expect(await over).not.toContain(secret);
});
