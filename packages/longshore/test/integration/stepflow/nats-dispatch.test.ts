// Tasks on a real NATS server: what is created on it, what is published, and what happens when it is down.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { LongshoreError } from "../../../src/core/errors.ts";
import { GrpcCode } from "../../../src/net/grpc/status.ts";
import { errorOf } from "../../../src/protocols/stepflow/dialect/result.ts";
import { queueLane } from "../../../src/protocols/stepflow/server/config/queues.ts";
import { componentsOn, keepComponents } from "../../../src/protocols/stepflow/server/config/registered-components.ts";
import { TaskAssignment, TaskStatus } from "../../../src/protocols/stepflow/wire/messages.ts";
import { OrchestratorService } from "../../../src/protocols/stepflow/wire/services.ts";
import { serve } from "../../../src/server/server.ts";
import { channelTo } from "../../support/grpc.ts";
import { natsMissing, TestNats } from "../../support/nats.ts";
import { temporaryFolder } from "../../support/parts.ts";
import { dispatch, NatsConsumer } from "../../support/stepflow-nats.ts";
import { type QueueWorld, queueWorld, type WorldParts } from "../../support/stepflow-queue.ts";
import { until } from "../../support/until.ts";

const queues = [
  { name: "python", backend: "nats" as const },
  { name: "gpu", backend: "nats" as const },
];
const inProgress = { shouldAbort: false, status: TaskStatus.IN_PROGRESS };

/** A server whose queues are known to have a component. */
async function knowing(parts: WorldParts = {}): Promise<QueueWorld> {
  const world = await queueWorld({ queues, ...parts });
  for (const { name } of queues) await keepComponents(world.engine.documents, queueLane(name), [{ id: "echo", path: "/echo" }]);
  return world;
}

async function setup(more: Parameters<typeof dispatch>[2] = {}) {
  const world = await knowing();
  const nats = await TestNats.start();
  return { ...world, world, nats, ...(await dispatch(world, nats.url, more)) };
}

/** The messages in a stream, oldest first. */
async function stored(nats: TestNats, stream: string) {
  // Repeated soon, because a server that has just started does not respond for a while.
  const manager = await jetstreamManager(await nats.connection(), { checkAPI: false, timeout: 300 }).catch(() => null);
  const info = await manager?.streams.info(stream).catch(() => null);
  // The server is unavailable, or the stream does not exist.
  if (manager === null || info === null || info === undefined) return [];
  const { state } = info;
  const found = [];
  for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
    const message = await manager.streams.getMessage(stream, { seq }).catch(() => null);
    if (message !== null) found.push({ id: message.header.get("Nats-Msg-Id"), assignment: TaskAssignment.decode(message.data) });
  }
  return found;
}

/** Waits until a stream exists. Sends nothing to the server. */
async function streamOf(nats: TestNats, stream: string) {
  const manager = await nats.manager();
  for (;;) {
    const info = await manager.streams.info(stream).catch(() => null);
    if (info !== null) return info;
    await turn();
  }
}

/** Waits until the stream has exactly these tasks. */
async function tasksIn(nats: TestNats, stream: string, expected: readonly string[]): Promise<void> {
  for (;;) {
    const ids = (await stored(nats, stream)).flatMap(({ assignment }) => (assignment.execute === undefined ? [] : [assignment.taskId]));
    if (ids.join() === expected.join()) return;
    await turn();
  }
}

/** A refusal may come at once. Without a turn of the event loop, nothing else would ever happen. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

describe.skipIf(natsMissing !== undefined)(`tasks on NATS${natsMissing === undefined ? "" : ` (needs ${natsMissing})`}`, () => {
  it("[S9-43, S-QUEUE-09] streams and their consumers are created at the start, as in the reference", async () => {
    const { nats } = await setup();
    const { config } = await streamOf(nats, "python");
    expect(config).toMatchObject({
      subjects: ["python.tasks"],
      retention: "workqueue",
      storage: "file",
      discard: "old",
      duplicate_window: 120_000_000_000,
    });
    await streamOf(nats, "gpu");
    const manager = await nats.manager();
    for (;;) {
      const consumer = await manager.consumers.info("python", "stepflow-default").catch(() => null);
      if (consumer === null) {
        await turn();
        continue;
      }
      expect(consumer.config).toMatchObject({
        filter_subject: "python.tasks",
        ack_policy: "explicit",
        ack_wait: 30_000_000_000,
        max_deliver: -1,
        max_ack_pending: 1_000,
        deliver_policy: "all",
      });
      break;
    }
  });

  it("[S9-43] any consumer can read published messages, each stream has its own tasks, and every message has an id", async () => {
    const { post, nats, grpc } = await setup();
    await post("t", { given: { n: 42 } });
    await post("other", { queue: "gpu" });
    await tasksIn(nats, "python", ["t-1"]);
    await tasksIn(nats, "gpu", ["other-1"]);
    const found = (await stored(nats, "python")).find(({ assignment }) => assignment.execute !== undefined);
    expect(found).toEqual({
      id: "t-1",
      assignment: {
        taskId: "t-1",
        execute: { componentId: "echo", input: { n: 42 }, attempt: 1, observability: { stepId: "s1" }, pathParams: {} },
        context: { orchestratorServiceUrl: grpc.target, rootRunId: "" },
        heartbeatIntervalSecs: 1,
      },
    });
  });

  it("a stream has a limited number of unclaimed tasks, and the rest waits on the board, where priorities apply", async () => {
    const { post, nats, heartbeat, task, becomes } = await setup();
    const ids = Array.from({ length: 40 }, (_, at) => `t${String(at).padStart(2, "0")}`);
    for (const id of ids) await post(id);
    await tasksIn(
      nats,
      "python",
      ids.slice(0, 32).map((id) => `${id}-1`),
    );
    await post("urgent", { priority: -1 });
    expect((await task("t32")).state).toBe("queued");
    const worker = await NatsConsumer.open(nats, "python");
    const { taskId } = await worker.next();
    await heartbeat(taskId);
    await becomes("urgent", "offered");
    expect((await task("t32")).state).toBe("queued");
  });

  it("an expired message is removed from the stream, and the task is published again", async () => {
    const { clock, post, nats, heartbeat } = await setup();
    await post("t");
    await tasksIn(nats, "python", ["t-1"]);
    await clock.advance(10_000);
    await tasksIn(nats, "python", ["t-3"]);
    await expect(heartbeat("t-1")).rejects.toMatchObject({ code: GrpcCode.NOT_FOUND });
    expect(await heartbeat("t-3")).toEqual(inProgress);
  });

  it("[S-QUEUE-05] a task of a worker that dies before its first heartbeat goes to another worker", async () => {
    const { clock, post, nats, heartbeat, complete, task } = await setup();
    const dying = await NatsConsumer.open(nats, "python");
    await post("t");
    expect((await dying.next()).taskId).toBe("t-1");
    await dying.leave();
    const other = await NatsConsumer.open(nats, "python");
    await clock.advance(10_000);
    const { taskId } = await other.next();
    expect(taskId).toBe("t-3");
    await heartbeat(taskId, "bob");
    await complete({ taskId, response: { output: 1 } });
    expect(await task("t")).toMatchObject({ state: "done", attempt: 0, lost: 0 });
  });

  it("[S-QUEUE-09] nothing is lost when the NATS server restarts, with or without its store", async () => {
    // Network faults take real time, and the board's clock does not move.
    const { clock, post, nats, heartbeat, complete, task, troubles } = await setup({ clock: systemClock });
    await post("before");
    await tasksIn(nats, "python", ["before-1"]);
    await nats.down("SIGKILL");
    await post("meanwhile");
    expect(await task("meanwhile")).toMatchObject({ lost: 0, failures: 0 });
    await nats.up();
    await tasksIn(nats, "python", ["before-1", "meanwhile-1"]);
    // The store is cleared, so the streams and their messages no longer exist.
    await (await nats.manager()).streams.delete("python");
    await post("after");
    await tasksIn(nats, "python", ["after-1"]);
    await clock.advance(10_000);
    const worker = await NatsConsumer.open(nats, "python");
    const left = new Set(["before", "meanwhile", "after"]);
    while (left.size > 0) {
      const { taskId } = await worker.next();
      if (!(await heartbeat(taskId).catch(() => null))) continue;
      await complete({ taskId, response: { output: 1 } });
      left.delete(taskId.slice(0, taskId.lastIndexOf("-")));
    }
    for (const id of ["before", "meanwhile", "after"]) expect(await task(id)).toMatchObject({ state: "done", attempt: 0 });
    await until(() => [...troubles.values()].every((failing) => !failing));
    expect(troubles.size).toBeGreaterThan(0);
  });

  it("the server waits for a NATS server that has not started, and reports this", async () => {
    const world = await knowing();
    const nats = await TestNats.start();
    await nats.down();
    const { troubles } = await dispatch(world, nats.url);
    await world.post("t");
    await until(() => troubles.size > 0);
    expect([...troubles.keys()]).toEqual([`the connection to NATS at ${nats.url}`]);
    await nats.up();
    await world.clock.advance(500);
    const worker = await (async () => {
      for (;;) {
        await world.clock.advance(500);
        if ((await world.task("t")).state === "offered") return NatsConsumer.open(nats, "python");
      }
    })();
    expect((await worker.next()).taskId).toMatch(/^t-/);
  });

  it("[S-QUEUE-21] several servers publish to one stream, and each result reaches its own", async () => {
    const nats = await TestNats.start();
    const worlds = [await knowing(), await knowing()];
    for (const world of worlds) await dispatch(world, nats.url);
    await worlds[0]?.post("a");
    await worlds[1]?.post("b");
    const worker = await NatsConsumer.open(nats, "python");
    for (let at = 0; at < 2; at++) {
      const { taskId, context } = await worker.next();
      const channel = channelTo(context?.orchestratorServiceUrl ?? "");
      expect(await channel.unary(OrchestratorService.TaskHeartbeat, { taskId, workerId: "ann" })).toEqual(inProgress);
      await channel.unary(OrchestratorService.CompleteTask, { taskId, response: { output: taskId } });
    }
    expect(await worlds[0]?.task("a")).toMatchObject({ state: "done", output: '"a-1"' });
    expect(await worlds[1]?.task("b")).toMatchObject({ state: "done", output: '"b-1"' });
  });

  it("[S-QUEUE-09] tasks that are in a stream during a restart can be claimed after it", async () => {
    const nats = await TestNats.start();
    let world = await knowing({ directory: temporaryFolder() });
    const { dispatcher } = await dispatch(world, nats.url);
    await world.post("t");
    await tasksIn(nats, "python", ["t-1"]);
    await dispatcher.stop();
    world = await world.restart();
    await dispatch(world, nats.url);
    const worker = await NatsConsumer.open(nats, "python");
    const { taskId } = await worker.next();
    expect(taskId).toBe("t-1");
    expect(await world.heartbeat(taskId)).toEqual(inProgress);
    expect(await world.task("t")).toMatchObject({ state: "held", attempt: 0, lost: 0 });
  });

  it("a task that is larger than the NATS server accepts fails at once, and its error names the remedy", async () => {
    const { post, becomes, nats, task } = await setup();
    await streamOf(nats, "python");
    await post("t", { given: "x".repeat(1_100_000) });
    await becomes("t", "failed");
    expect(errorOf(await task("t"))).toMatchObject({ code: "INVALID_INPUT", message: expect.stringContaining("max_payload") });
  });
});

describe.skipIf(natsMissing !== undefined)("discovery on NATS", () => {
  const unknowing = async () => {
    const world = await queueWorld({ queues });
    const nats = await TestNats.start();
    await dispatch(world, nats.url);
    return { ...world, nats };
  };

  it("[S-QUEUE-19] is requested before the first task, so that a fresh start works automatically", async () => {
    const { post, nats, complete, heartbeat, engine, task } = await unknowing();
    await post("t");
    const worker = await NatsConsumer.open(nats, "python");
    const question = await worker.nextOfAny();
    expect(question).toMatchObject({ taskId: expect.stringMatching(/^discovery-/), listComponents: {} });
    expect((await task("t")).state).toBe("queued");
    await complete({ taskId: question.taskId, listComponents: { components: [{ componentId: "echo-1", path: "/echo" }] } });
    expect(await componentsOn(engine.documents, "stepflow:python")).toEqual([{ id: "echo-1", path: "/echo" }]);
    const { taskId, execute } = await worker.next();
    expect(execute?.componentId).toBe("echo-1");
    expect(await heartbeat(taskId)).toEqual(inProgress);
  });

  it("is requested again while there is no worker, and leaves at most one request in the stream", async () => {
    const { clock, nats, post, task } = await unknowing();
    await post("t");
    await streamOf(nats, "python");
    const ids = new Set<string>();
    for (let at = 0; at < 5; at++) {
      let found = await stored(nats, "python");
      while (found.length !== 1) {
        await turn();
        found = await stored(nats, "python");
      }
      ids.add(found[0]?.assignment.taskId ?? "");
      await clock.advance(10_000);
    }
    expect(ids.size).toBeGreaterThan(1);
    expect((await task("t")).state).toBe("queued");
  });

  it("does not delay workers that never respond to it", async () => {
    const { clock, nats, post } = await unknowing();
    await post("t");
    const worker = await NatsConsumer.open(nats, "python");
    let asked = 0;
    for (let found = await worker.nextOfAny(); found.execute === undefined; found = await worker.nextOfAny()) {
      asked++;
      await (await nats.connection()).flush();
      await clock.advance(10_000);
    }
    expect(asked).toBeGreaterThanOrEqual(2);
  });
});

describe("a server with a plugin on NATS", () => {
  it.each([
    ["nats://nats.invalid:4222", {}, 1],
    ["nats://nats.invalid:4222", { orchestratorUrl: "10.0.0.7:4500" }, 0],
    ["nats://127.0.0.1:1", {}, 0],
  ])("at %s and %j warns of an address that workers elsewhere could not use", async (url, options, warnings) => {
    const config = join(temporaryFolder(), "stepflow-config.yml");
    writeFileSync(config, `plugins: { far: { type: nats, url: "${url}", stream: S } }\nroutes: { "/": [{ plugin: far }] }\n`);
    const lines: string[] = [];
    const server = await serve({
      ephemeral: true,
      port: 0,
      stepflow: { config, ...options },
      logger: { write: (line) => lines.push(line) },
    });
    await server.close();
    const told = lines.filter((line) => line.includes("STEPFLOW_ORCHESTRATOR_URL"));
    expect(told).toHaveLength(warnings);
    for (const line of told) expect(line).toContain("plugin far report to 127.0.0.1:");
  });
});

describe("without the NATS client", () => {
  it("a server names the packages to install", async () => {
    const world = await queueWorld({ queues });
    const load = () => Promise.reject(Object.assign(new Error("Cannot find package"), { code: "ERR_MODULE_NOT_FOUND" }));
    const failure = await dispatch(world, "nats://127.0.0.1:1", { load }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(LongshoreError);
    expect(failure).toMatchObject({
      code: "LONGSHORE_BAD_CONFIG",
      message: expect.stringContaining("npm install @nats-io/transport-node"),
    });
  });
});
