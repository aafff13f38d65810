// A worker on a NATS queue: a real NATS server, with the test as the orchestrator.

import { beforeEach, describe, expect, it } from "vitest";
import { type Task, task } from "../../../src/core/task.ts";
import { GrpcCode, GrpcError } from "../../../src/net/grpc/status.ts";
import type { Encodable } from "../../../src/net/protobuf/protobuf.ts";
import { TaskAssignment, TaskErrorCode, TaskStatus } from "../../../src/protocols/stepflow/wire/messages.ts";
import { stepflowFromEnvironment } from "../../../src/protocols/stepflow/worker/from-environment.ts";
import { stepflowNats } from "../../../src/protocols/stepflow/worker/nats/worker.ts";
import type { WorkOptions } from "../../../src/work.ts";
import { natsMissing, TestNats } from "../../support/nats.ts";
import { StepflowOrchestrator } from "../../support/stepflow-orchestrator.ts";
import { startWorker } from "../../support/stepflow-worker.ts";
import { deferred, until } from "../../support/until.ts";

beforeEach((context) => {
  if (natsMissing) context.skip(`needs ${natsMissing}`);
});

const stream = "STEPFLOW_TASKS";
const consumer = "stepflow-default";
const echo = task("echo", (input: unknown) => input);
/** The client itself waits two seconds before it connects again. */
const connection = { reconnectTimeWait: 20 };

async function setup(tasks: readonly Task[] = [echo], work: Partial<WorkOptions> = {}) {
  const [nats, orchestrator] = await Promise.all([TestNats.start(), StepflowOrchestrator.start()]);
  await nats.addStream(stream);
  const start = (options: Parameters<typeof stepflowNats>[1] = {}) =>
    startWorker(tasks, stepflowNats(nats.url, { workerId: "w1", env: {}, connection, ...options }), work);
  const publish = (assignment: Encodable<typeof TaskAssignment>) => nats.publish(stream, TaskAssignment.encode(assignment));
  return { nats, orchestrator, start, publish };
}

async function settled(nats: TestNats): Promise<void> {
  for (;;) {
    const { held, waiting } = await nats.counts(stream, consumer);
    if (held === 0 && waiting === 0) return;
  }
}

describe("a worker on a NATS queue", () => {
  it("[S-QUEUE-05, S-QUEUE-09] creates the durable consumer of its pool, and acknowledges a task when it is claimed", async () => {
    const s = await setup();
    const acks = await s.nats.acks(stream);
    const answer = deferred<{ status: number }>();
    s.orchestrator.answers.beat = () => answer.promise;
    await s.publish(s.orchestrator.task("t1", { componentId: "echo", input: { n: 1 } }));
    await s.start();
    await until(() => s.orchestrator.beats.length === 1);
    expect(await s.nats.counts(stream, consumer)).toEqual({ held: 1, waiting: 0 });
    expect(acks).toEqual([]);
    answer.resolve({ status: TaskStatus.IN_PROGRESS });
    expect((await s.orchestrator.result("t1")).response?.output).toEqual({ n: 1 });
    await settled(s.nats);
    expect(acks).toEqual(["+ACK"]);
    const { config } = await (await s.nats.manager()).consumers.info(stream, consumer);
    expect(config).toMatchObject({
      durable_name: consumer,
      deliver_policy: "all",
      ack_policy: "explicit",
      ack_wait: 30_000_000_000,
      max_deliver: -1,
      max_ack_pending: 1_000,
      filter_subject: `${stream}.tasks`,
    });
  });

  it("responds to discovery that arrives in the stream", async () => {
    const s = await setup();
    await s.start();
    await s.publish(s.orchestrator.discovery("discovery-0"));
    expect((await s.orchestrator.result("discovery-0")).listComponents?.components).toEqual([{ componentId: "echo", path: "/echo" }]);
    await settled(s.nats);
  });

  it("[S-QUEUE-21] of one pool serves several orchestrators, and each result reaches its own", async () => {
    const s = await setup();
    const other = await StepflowOrchestrator.start();
    await s.start();
    await s.publish(s.orchestrator.task("t1", { componentId: "echo", input: 1 }));
    await s.publish(other.task("t2", { componentId: "echo", input: 2 }));
    expect((await s.orchestrator.result("t1")).response?.output).toBe(1);
    expect((await other.result("t2")).response?.output).toBe(2);
    expect([s.orchestrator.results.length, other.results.length]).toEqual([1, 1]);
  });

  it("[S-QUEUE-05] shares its consumer with other workers, and each task goes to one of them", async () => {
    const s = await setup();
    await s.start({ workerId: "w1" });
    await s.start({ workerId: "w2" });
    for (let n = 0; n < 100; n++) await s.publish(s.orchestrator.task(`t${n}`, { componentId: "echo" }));
    await until(() => s.orchestrator.results.length === 100);
    await settled(s.nats);
    expect(new Set(s.orchestrator.results.map(({ taskId }) => taskId)).size).toBe(100);
    expect(new Set(s.orchestrator.beats.map(({ taskId }) => taskId)).size).toBe(100);
  });

  it("[S-QUEUE-14, S-QUEUE-22] is started from the environment of both guides", async () => {
    const s = await setup();
    await s.nats.addStream("GPU");
    const on = stepflowFromEnvironment({
      STEPFLOW_TRANSPORT: "nats",
      STEPFLOW_NATS_URL: s.nats.url,
      STEPFLOW_NATS_STREAM: "GPU",
      STEPFLOW_NATS_CONSUMER: "pool",
      STEPFLOW_BLOB_URL: s.orchestrator.url,
      STEPFLOW_MAX_CONCURRENT: "3",
    });
    const { worker } = await startWorker([echo], on as NonNullable<typeof on>);
    expect(worker.status().slots.total).toBe(3);
    await s.nats.publish("GPU", TaskAssignment.encode(s.orchestrator.task("t1", { componentId: "echo", input: 1 })));
    expect((await s.orchestrator.result("t1")).response?.output).toBe(1);
    expect(await s.nats.counts("GPU", "pool")).toEqual({ held: 0, waiting: 0 });
  });

  it("receives no more messages than it has slots", async () => {
    const answer = deferred<{ status: number }>();
    const s = await setup([echo], { slots: 3 });
    s.orchestrator.answers.beat = () => answer.promise;
    for (let n = 0; n < 20; n++) await s.publish(s.orchestrator.task(`t${n}`, { componentId: "echo" }));
    await s.start();
    await until(() => s.orchestrator.beats.length === 3);
    expect(await s.nats.counts(stream, consumer)).toEqual({ held: 3, waiting: 17 });
    answer.resolve({ status: TaskStatus.IN_PROGRESS });
    await until(() => s.orchestrator.results.length === 20);
    await settled(s.nats);
  });
});

describe("a message", () => {
  async function answered(beat: () => { status: number; shouldAbort?: boolean }) {
    const s = await setup();
    const acks = await s.nats.acks(stream);
    s.orchestrator.answers.beat = beat;
    const w = await s.start();
    return { ...s, ...w, acks };
  }

  const refuse = (code: GrpcCode) => () => {
    throw new GrpcError(code, "no");
  };

  it("whose task its orchestrator no longer knows is removed", async () => {
    const s = await answered(refuse(GrpcCode.NOT_FOUND));
    await s.publish(s.orchestrator.task("t1", { componentId: "echo" }));
    await until(() => s.acks.length === 1);
    expect(s.acks).toEqual(["+TERM"]);
    await settled(s.nats);
    expect(s.orchestrator.results).toEqual([]);
  });

  it("whose task another worker has is acknowledged", async () => {
    const s = await answered(() => ({ status: TaskStatus.ALREADY_CLAIMED, shouldAbort: true }));
    await s.publish(s.orchestrator.task("t1", { componentId: "echo" }));
    await until(() => s.acks.length === 1);
    expect(s.acks).toEqual(["+ACK"]);
    expect(s.orchestrator.results).toEqual([]);
  });

  it("whose orchestrator cannot be reached stays in progress during the attempts, and is then given back for later", async () => {
    const s = await answered(refuse(GrpcCode.UNAVAILABLE));
    await s.publish(s.orchestrator.task("t1", { componentId: "echo" }));
    await s.pass(() => s.acks.some((text) => text.startsWith("-NAK")), 500);
    expect(s.acks).toEqual(["+WPI", "+WPI", "+WPI", "+WPI", "+WPI", '-NAK {"delay":5000000000}']);
    expect((await s.nats.counts(stream, consumer)).held).toBe(1);
  });

  it("that is not a task is removed and reported", async () => {
    const s = await answered(() => ({ status: TaskStatus.IN_PROGRESS }));
    await s.nats.publish(stream, Buffer.from("no protobuf at all"));
    await s.publish({ taskId: "", execute: { componentId: "echo" } });
    await s.publish({ taskId: "t1", execute: { componentId: "echo" } });
    await until(() => s.acks.length === 3);
    expect(s.acks).toEqual(["+TERM", "+TERM", "+TERM"]);
    expect(s.notices.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^A message of stream STEPFLOW_TASKS is no task and was removed: /),
      "A message of stream STEPFLOW_TASKS was removed: it has no task_id.",
      "A message of stream STEPFLOW_TASKS was removed: it does not name its orchestrator.",
    ]);
  });

  it("that arrives twice runs once", async () => {
    const gate = deferred<string>();
    const s = await setup([task("gated", () => gate.promise)]);
    const acks = await s.nats.acks(stream);
    await s.start();
    const assignment = s.orchestrator.task("t1", { componentId: "gated" });
    await s.publish(assignment);
    await until(() => acks.length === 1);
    await s.publish(assignment);
    await until(() => acks.length === 2);
    expect(s.orchestrator.beats).toHaveLength(1);
    gate.resolve("once");
    await s.orchestrator.result("t1");
    expect(acks).toEqual(["+ACK", "+ACK"]);
  });

  it("that is delivered again while its task is being claimed is not claimed twice", async () => {
    const s = await setup();
    const manager = await s.nats.manager();
    const terms = { filter_subject: `${stream}.tasks`, ack_policy: "explicit", ack_wait: 50_000_000 } as const;
    await manager.consumers.add(stream, { durable_name: consumer, ...terms });
    const acks = await s.nats.acks(stream);
    const answer = deferred<{ status: number }>();
    s.orchestrator.answers.beat = () => answer.promise;
    await s.start();
    await s.publish(s.orchestrator.task("t1", { componentId: "echo" }));
    await until(() => acks.length >= 2);
    expect(new Set(acks)).toEqual(new Set(["+WPI"]));
    answer.resolve({ status: TaskStatus.IN_PROGRESS });
    await s.orchestrator.result("t1");
    await settled(s.nats);
    expect(s.orchestrator.calls.map(({ method }) => method)).toEqual(["TaskHeartbeat", "CompleteTask"]);
  });

  it("[S-QUEUE-09] that a worker received and never claimed is delivered again", async () => {
    const s = await setup();
    const manager = await s.nats.manager();
    const terms = { filter_subject: `${stream}.tasks`, ack_policy: "explicit", ack_wait: 200_000_000 } as const;
    await manager.consumers.add(stream, { durable_name: consumer, ...terms });
    await s.publish(s.orchestrator.task("t1", { componentId: "echo", input: 5 }));
    // A worker that dies after it has received the message.
    const dead = await s.nats.connection();
    await dead.request(`$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`, JSON.stringify({ batch: 1 }), { noMux: true, timeout: 5_000 });
    expect(await s.nats.counts(stream, consumer)).toEqual({ held: 1, waiting: 0 });
    await s.start();
    expect((await s.orchestrator.result("t1")).response?.output).toBe(5);
    await settled(s.nats);
  });
});

describe("a worker that is blocked", () => {
  it("reports a stream that does not exist yet, and waits for it", async () => {
    const [nats, orchestrator] = await Promise.all([TestNats.start(), StepflowOrchestrator.start()]);
    const s = await startWorker([echo], stepflowNats(nats.url, { env: {}, stream: "LATER", connection }));
    await until(() => s.notices.length === 1);
    expect(s.notices[0]?.message).toMatch(
      /consumer stepflow-default of stream LATER fails, trying on: The stream LATER does not exist yet; its orchestrator creates it\. Is LATER the stream of its plugin\?$/,
    );
    await nats.addStream("LATER");
    await nats.publish("LATER", TaskAssignment.encode(orchestrator.task("t1", { componentId: "echo", input: 1 })));
    await s.pass(() => orchestrator.results.length === 1, 500);
    expect(s.notices.map(({ level }) => level)).toEqual(["warn", "info"]);
  });

  it("reports a consumer of another name on the same stream", async () => {
    const s = await setup();
    const manager = await s.nats.manager();
    await manager.consumers.add(stream, { durable_name: "other", ack_policy: "explicit", filter_subject: `${stream}.tasks` });
    const { notices, pass } = await s.start();
    await until(() => notices.length === 1);
    expect(notices[0]?.message).toContain(
      "The stream STEPFLOW_TASKS has a consumer with another name than stepflow-default, and a stream of tasks can have only one. Give all workers of the queue the same consumer (STEPFLOW_NATS_CONSUMER)",
    );
    await manager.consumers.delete(stream, "other");
    await s.publish(s.orchestrator.task("t1", { componentId: "echo" }));
    await pass(() => s.orchestrator.results.length === 1, 500);
  });

  it("reports a server without JetStream", async () => {
    const nats = await TestNats.start({ jetStream: false });
    const { notices } = await startWorker([echo], stepflowNats(nats.url, { env: {}, connection }));
    await until(() => notices.length === 1);
    expect(notices[0]?.message).toMatch(/JetStream is off on this NATS server\. Start it with -js/);
  });

  it("reports an unreachable server once, and waits for it", async () => {
    const s = await setup();
    await s.nats.down();
    const { notices, pass } = await s.start();
    await until(() => notices.length === 1);
    expect(notices[0]?.message).toMatch(
      /^stepflow nats:\/\/127.0.0.1:\d+ stream STEPFLOW_TASKS: connection fails, trying on: Cannot reach nats:/,
    );
    await s.nats.up();
    await s.publish(s.orchestrator.task("t1", { componentId: "echo" }));
    await pass(() => s.orchestrator.results.length === 1);
    expect(notices.map(({ level }) => level)).toEqual(["warn", "info"]);
  });

  it("continues after its server was killed and started again, and loses no task", async () => {
    const s = await setup();
    const { pass } = await s.start();
    for (let n = 0; n < 5; n++) await s.publish(s.orchestrator.task(`t${n}`, { componentId: "echo" }));
    await until(() => s.orchestrator.results.length === 5);
    await s.nats.down("SIGKILL");
    await s.nats.up();
    for (let n = 5; n < 10; n++) await s.publish(s.orchestrator.task(`t${n}`, { componentId: "echo" }));
    await pass(() => new Set(s.orchestrator.results.map(({ taskId }) => taskId)).size === 10);
  });

  it("continues after its consumer was removed", async () => {
    const s = await setup();
    const { pass } = await s.start();
    await s.publish(s.orchestrator.task("t1", { componentId: "echo" }));
    await s.orchestrator.result("t1");
    await (await s.nats.manager()).consumers.delete(stream, consumer);
    await s.publish(s.orchestrator.task("t2", { componentId: "echo" }));
    await pass(() => s.orchestrator.results.length === 2);
  });
});

describe("a worker that stops", () => {
  it("requests no more tasks, lets its tasks end, and leaves the consumer to the other workers", async () => {
    const gate = deferred<string>();
    const s = await setup([task("gated", () => gate.promise)]);
    const w = await s.start();
    await s.publish(s.orchestrator.task("t1", { componentId: "gated" }));
    await until(() => s.orchestrator.beats.length === 1);
    const stopped = w.worker.stop();
    await until(() => w.worker.status().state === "draining");
    gate.resolve("in time");
    expect((await s.orchestrator.result("t1")).response?.output).toBe("in time");
    await stopped;
    await s.publish(s.orchestrator.task("t2", { componentId: "gated" }));
    expect(await s.nats.counts(stream, consumer)).toEqual({ held: 0, waiting: 1 });
  });

  it("reports unfinished work so that it is retried at once", async () => {
    const s = await setup([
      task(
        "gated",
        (_input: unknown, ctx) => new Promise((_, reject) => ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason))),
      ),
    ]);
    const w = await s.start();
    await s.publish(s.orchestrator.task("t1", { componentId: "gated" }));
    await until(() => s.orchestrator.beats.length === 1);
    void w.worker.stop({ force: true });
    expect((await s.orchestrator.result("t1")).error?.code).toBe(TaskErrorCode.UNREACHABLE);
  });
});
