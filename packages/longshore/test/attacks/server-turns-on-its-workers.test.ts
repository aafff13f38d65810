// The attacker is the worker's server, or any program that calls a Stepflow HTTP worker, which requires no token. It responds with
// megabytes that become millions of values, sends arbitrary responses to heartbeats, grants leases of zero length, and begins requests that
// it never ends. This must not block a worker that also has other servers. It must not use up its memory.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createHttp2, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import { type AddressInfo, connect } from "node:net";
import { expect, it, onTestFinished, vi } from "vitest";
import { ByteBudget } from "../../src/core/byte-budget.ts";
import { systemClock } from "../../src/core/clock.ts";
import { task } from "../../src/core/task.ts";
import { type GrpcChannel, openChannel } from "../../src/net/grpc/client.ts";
import { frameOf } from "../../src/net/grpc/frame.ts";
import { receivedValuesMax } from "../../src/net/http/received-body.ts";
import { surplusMax } from "../../src/protocols/conductor/worker/client.ts";
import { conductor } from "../../src/protocols/conductor/worker/index.ts";
import { TaskAssignment } from "../../src/protocols/stepflow/wire/messages.ts";
import { OrchestratorService, TasksService } from "../../src/protocols/stepflow/wire/services.ts";
import { stepflowGrpc } from "../../src/protocols/stepflow/worker/grpc/worker.ts";
import { listen } from "../../src/protocols/stepflow/worker/http/listener.ts";
import { settingsOf } from "../../src/protocols/stepflow/worker/http/options.ts";
import { WorkerService } from "../../src/protocols/stepflow/worker/http/service.ts";
import { discoveriesMax, QueueWorker, type QueueWorkerOptions } from "../../src/protocols/stepflow/worker/queue-worker.ts";
import type { ClaimResponse } from "../../src/protocols/workflow-graph/wire/shapes.ts";
import { LeasedJob, type LeaseSurroundings } from "../../src/protocols/workflow-graph/worker/lease.ts";
import { settingsOf as wgSettings } from "../../src/protocols/workflow-graph/worker/options.ts";
import { workflowGraph } from "../../src/protocols/workflow-graph/worker/worker.ts";
import type { Transport } from "../../src/transport.ts";
import { work } from "../../src/work.ts";

/** Three bytes for each value. */
const bomb = `[${"{},".repeat(receivedValuesMax)}{}]`;

async function hostile(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer((request, response) => {
    request.resume();
    request.once("end", () => answer(request, response));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function working(on: Transport) {
  const troubles: string[] = [];
  const greet = task("greet", async () => ({ hello: "there" }));
  const worker = await work({ tasks: [greet], on, signals: false, logger: ({ message }) => void troubles.push(message) });
  onTestFinished(() => worker.stop({ force: true }));
  return { worker, troubles };
}

const job = { job_id: "j", workflow_id: "w", command: "@greet {}" };

it("a response to a claim with millions of values is refused before they are built, and the next one is accepted", async () => {
  let claims = 0;
  const url = await hostile((request, response) => {
    if (!request.url?.endsWith("/claim")) return void response.end();
    claims++;
    response.end(claims === 1 ? bomb : claims === 2 ? JSON.stringify({ job, lease: { lease_id: "l" } }) : "null");
  });
  const { worker, troubles } = await working(workflowGraph(url));
  await vi.waitFor(() => expect(worker.status().counts.done).toBe(1), { timeout: 20_000 });
  expect(troubles.join()).toMatch(/more than 4194304 values/);
});

it("a response to a claim with lists in lists is refused before they are built, and the next one is accepted", async () => {
  const deep = "[".repeat(100_000) + "]".repeat(100_000);
  let claims = 0;
  const url = await hostile((request, response) => {
    if (!request.url?.endsWith("/claim")) return void response.end();
    claims++;
    response.end(claims === 1 ? deep : claims === 2 ? JSON.stringify({ job, lease: { lease_id: "l" } }) : "null");
  });
  const { worker, troubles } = await working(workflowGraph(url));
  await vi.waitFor(() => expect(worker.status().counts.done).toBe(1), { timeout: 20_000 });
  expect(troubles.join()).toMatch(/nested deeper than 1000 levels/);
});

it("a response to a Conductor poll with millions of values is refused before they are built", async () => {
  let polls = 0;
  const url = await hostile((request, response) => {
    if (!request.url?.includes("/poll/")) return void response.end();
    polls++;
    response.setHeader("content-type", "application/json");
    response.end(polls === 1 ? bomb : polls === 2 ? JSON.stringify([{ taskId: "t", workflowInstanceId: "w" }]) : "[]");
  });
  const { worker, troubles } = await working(conductor(url));
  await vi.waitFor(() => expect(worker.status().counts.done).toBe(1), { timeout: 20_000 });
  expect(troubles.join()).toMatch(/more than 4194304 values/);
});

it("a limited number of tasks is kept when a Conductor poll returns far more than requested", async () => {
  let polls = 0;
  const url = await hostile((request, response) => {
    response.setHeader("content-type", "application/json");
    if (!request.url?.includes("/poll/")) return void response.end();
    const many = Array.from({ length: 20_000 }, (_, at) => ({ taskId: `t${at}`, workflowInstanceId: "w" }));
    const task = { taskId: "last", workflowInstanceId: "w" };
    response.end(JSON.stringify(++polls === 1 ? many : polls === 2 ? [task] : []));
  });
  const { worker, troubles } = await working(conductor(url));
  await vi.waitFor(() => expect(polls).toBeGreaterThan(2), { timeout: 20_000 });
  expect(worker.status().counts.done).toBeLessThanOrEqual(worker.status().slots.total + surplusMax + 1);
  expect(troubles.join()).toMatch(/brought 20000; 19\d\d\d of them are left/);
});

it("the response to a report is not read beyond its maximum length", async () => {
  let claims = 0;
  const url = await hostile((request, response) => {
    if (request.url?.endsWith("/claim"))
      return void response.end(++claims === 1 ? JSON.stringify({ job, lease: { lease_id: "l" } }) : "null");
    response.end(request.url?.endsWith("/complete") ? "x".repeat(1_048_576) : "");
  });
  const { troubles } = await working(workflowGraph(url));
  await vi.waitFor(() => expect(troubles.join()).toMatch(/larger than 65536 bytes/), { timeout: 20_000 });
});

it.each([
  { ttl_secs: 30, heartbeat_secs: 0 },
  { ttl_secs: 30, heartbeat_secs: -1 },
  { ttl_secs: "x" },
  { ttl_secs: 1e-9 },
  { ttl_secs: -1 },
])("the lease %j has no worker beat without a pause", (lease) => {
  const settings = wgSettings("http://localhost:1", {});
  const around = { settings, server: { beatsTellCancel: false } } as LeaseSurroundings;
  const { hold } = new LeasedJob({ job, lease: { lease_id: "l", ...lease } } as unknown as ClaimResponse, around);
  expect(hold.everyMs).toBeGreaterThanOrEqual(1_000 / 3);
  expect(hold.termMs).toBe(30_000);
});

async function calledWorker(receiving?: ByteBudget) {
  let port = 0;
  const transport: Transport = {
    name: "called",
    capabilities: { defer: false, progress: false, streams: false, logs: false, blobs: true, cancel: true },
    async start(host) {
      const settings = settingsOf({ announce: false, handshake: false });
      const service = new WorkerService(host, settings);
      const listener = await listen({ settings, service, clock: host.clock, isDraining: () => false, ...(receiving && { receiving }) });
      onTestFinished(() => listener.close());
      port = listener.port;
    },
    async drain() {},
    async stop() {},
  };
  await working(transport);
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const call = async (body: string) => (await fetch(`http://127.0.0.1:${port}/`, { method: "POST", headers, body })).status;
  return { port, call };
}

const list = '{"jsonrpc":"2.0","id":1,"method":"components/list"}';

it("a call with millions of values is refused before they are built", async () => {
  const { call } = await calledWorker();
  expect(await call(`{"jsonrpc":"2.0","id":1,"method":"components/list","params":{"x":${bomb}}}`)).toBe(413);
  expect(await call(list)).toBe(200);
});

it("calls that never end share a limited memory, which is free again when their connections close", async () => {
  const receiving = new ByteBudget(100_000);
  const { port, call } = await calledWorker(receiving);
  const head = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n";
  const begin = () => {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => {});
    socket.write(`${head}content-length: 60000000\r\n\r\n${"x".repeat(90_000)}`);
    onTestFinished(() => void socket.destroy());
    return socket;
  };
  const first = begin();
  await vi.waitFor(() => expect(receiving.held).toBe(90_000));
  const answered = new Promise<string>((resolve) => begin().once("data", (bytes) => resolve(bytes.toString())));
  expect(await answered).toMatch(/^HTTP\/1.1 503 /);
  expect(receiving.held).toBeLessThanOrEqual(100_000);
  first.destroy();
  await vi.waitFor(() => expect(receiving.held).toBe(0));
  expect(await call(list)).toBe(200);
});

it("an orchestrator that requests components endlessly gets a few responses at a time", async () => {
  let calls = 0;
  const channel = { unary: () => new Promise(() => void calls++), close: async () => {} };
  const { signal } = new AbortController();
  const host = { tasks: new Map(), clock: systemClock, draining: signal, forced: signal, failing() {}, working() {} };
  const options = { settings: {}, host, open: () => channel, orchestratorUrl: "localhost:1" };
  const worker = new QueueWorker(options as unknown as QueueWorkerOptions);
  let later = 0;
  const delivery = { taken() {}, later: () => void later++, useless() {}, waiting() {} };
  for (let asked = 0; asked < 1_000; asked++) {
    worker.discover({ taskId: `discovery-${asked}`, listComponents: {} } as TaskAssignment, delivery);
  }
  await vi.waitFor(() => expect(calls).toBe(discoveriesMax));
  expect(later).toBe(1_000 - discoveriesMax);
});

/** A channel to a Stepflow orchestrator that the attacker controls. */
async function hostileOrchestrator(answer: (stream: ServerHttp2Stream, path: string) => void): Promise<GrpcChannel> {
  const server = createHttp2();
  const sessions = new Set<ServerHttp2Session>();
  server.on("session", (session) => sessions.add(session));
  server.on("stream", (stream, headers) => {
    stream.on("error", () => {});
    stream.respond({ ":status": 200, "content-type": "application/grpc" });
    answer(stream, headers[":path"] as string);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const channel = openChannel(`127.0.0.1:${(server.address() as AddressInfo).port}`);
  onTestFinished(async () => {
    await channel.close();
    for (const session of sessions) session.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return channel;
}

it("a unary gRPC call whose response has a second message ends at that message, and not at its deadline", async () => {
  // Two messages, and no end. A flood of messages used 3 GB within the 10 s that a heartbeat may take.
  const channel = await hostileOrchestrator(
    (stream) => void stream.write(Buffer.concat([frameOf(Buffer.alloc(0)), frameOf(Buffer.alloc(0))])),
  );
  const call = channel.unary(OrchestratorService.TaskHeartbeat, { taskId: "t", workerId: "w" });
  await expect(call).rejects.toThrow(/answered with 2 messages or more, expected one/);
});

it("a Stepflow assignment with millions of values is refused before they are built", async () => {
  const assignment = TaskAssignment.encode({
    taskId: "t",
    execute: { componentId: "/greet", input: new Array(receivedValuesMax).fill(null) },
  });
  const channel = await hostileOrchestrator((stream) => void stream.write(frameOf(assignment)));
  const stream = channel.serverStream(TasksService.PullTasks, { queueName: "q", workerId: "w" });
  await expect(stream.next()).rejects.toThrow(/more than 4194304 fields/);
});

it("a Stepflow assignment that cannot be read is skipped, and the next one is run", async () => {
  // An `execute` whose announced length is larger than its bytes.
  const cut = Buffer.from([0x12, 50, 0x0a]);
  const good = TaskAssignment.encode({ taskId: "t", execute: { componentId: "/greet" } });
  const calls: string[] = [];
  const { target } = await hostileOrchestrator((stream, path) => {
    calls.push(path);
    if (path === TasksService.PullTasks.path) stream.write(Buffer.concat([frameOf(cut), frameOf(good)]));
  });
  const { troubles } = await working(stepflowGrpc(target, { queue: "q" }));
  await vi.waitFor(() => expect(calls).toContain(OrchestratorService.TaskHeartbeat.path), { timeout: 20_000 });
  expect(calls.filter((path) => path === TasksService.PullTasks.path)).toHaveLength(1);
  expect(troubles.join()).toMatch(/is left to its queue timeout: .*TaskAssignment.execute/);
});
