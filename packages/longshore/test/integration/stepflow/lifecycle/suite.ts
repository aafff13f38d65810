// A task has the same states and rules on every backend of a queue; only the transport differs. So each backend runs this one suite, with
// workers that report over the same services.

import { describe, expect, it } from "vitest";
import { GrpcCode } from "../../../../src/net/grpc/status.ts";
import { errorOf } from "../../../../src/protocols/stepflow/dialect/result.ts";
import { queueLane } from "../../../../src/protocols/stepflow/server/config/queues.ts";
import { keepComponents } from "../../../../src/protocols/stepflow/server/config/registered-components.ts";
import type { Backend } from "../../../../src/protocols/stepflow/server/queue/queues.ts";
import { type TaskAssignment, TaskStatus } from "../../../../src/protocols/stepflow/wire/messages.ts";
import { type QueueWorld, queueWorld } from "../../../support/stepflow-queue.ts";

/** A backend under test, once for each test. */
export interface Carrier {
  /** A worker of a queue, ready to receive. */
  worker(queue: string, workerId: string): Promise<CarriedWorker>;
}

export interface CarriedWorker {
  /** The next task that is delivered to it. */
  next(): Promise<TaskAssignment>;
  /** How many tasks have arrived that the test has not read. */
  waiting(): number;
}

export interface LifecycleOptions {
  readonly backend: Backend;
  open(world: QueueWorld): Promise<Carrier>;
  /** Why tests are left out; undefined runs them. */
  readonly skip?: string;
}

const inProgress = { shouldAbort: false, status: TaskStatus.IN_PROGRESS };
const policy = (parts: { failures?: number; lost?: number }) =>
  JSON.stringify({ failures: 0, lost: 0, backoff: { kind: "fixed", delayMs: 0 }, ...parts });
/** The term of a hold. */
const termMs = 5_000;

export function lifecycleSuite(name: string, { backend, open, skip }: LifecycleOptions): void {
  const setup = async () => {
    const queues = [
      { name: "python", backend },
      { name: "gpu", backend },
    ];
    const world = await queueWorld({ queues });
    for (const queue of queues)
      await keepComponents(world.engine.documents, queueLane(queue.name), [
        { id: "echo", path: "/echo" },
        { id: "core", path: "/core/{*path}" },
      ]);
    const carrier = await open(world);
    return { ...world, worker: (queue = "python", workerId = "ann") => carrier.worker(queue, workerId) };
  };

  describe.skipIf(skip !== undefined)(`the life of a task over ${name}${skip === undefined ? "" : ` (${skip})`}`, () => {
    it("[S9-34, S-QUEUE-03] every posted task arrives at the worker, and its output is returned", async () => {
      const { post, worker, heartbeat, complete, task, grpc } = await setup();
      const given = { text: "größer", n: 42, large: 9_007_199_254_740_991, half: 0.5, none: null, list: [true, {}, []] };
      await post("t", { component: "/core/a/b", given });
      const assignment = await (await worker()).next();
      expect(assignment).toEqual({
        taskId: "t-1",
        execute: { componentId: "core", input: given, attempt: 1, observability: { stepId: "s1" }, pathParams: { path: "a/b" } },
        context: { orchestratorServiceUrl: grpc.target, rootRunId: "" },
        heartbeatIntervalSecs: 1,
      });
      expect(await heartbeat("t-1")).toEqual(inProgress);
      await complete({ taskId: "t-1", response: { output: given } });
      expect(JSON.parse((await task("t")).output ?? "")).toEqual(given);
    });

    it("[S9-35, S-QUEUE-13] tasks arrive in order, and only those of the worker's queue, which may be empty", async () => {
      const { clock, post, worker, heartbeat, complete, becomes } = await setup();
      // An empty queue delivers nothing, for any time.
      const gpu = await worker("gpu", "bob");
      await clock.advance(60_000);
      expect(gpu.waiting()).toBe(0);
      for (const id of ["a", "b", "c"]) await post(id);
      await post("other", { queue: "gpu" });
      const python = await worker("python", "ann");
      const order = [];
      for (let at = 0; at < 3; at++) {
        const { taskId } = await python.next();
        order.push(taskId);
        await heartbeat(taskId, "ann");
        await complete({ taskId, response: { output: 1 } });
      }
      expect(order).toEqual(["a-1", "b-1", "c-1"]);
      expect((await gpu.next()).taskId).toBe("other-1");
      await heartbeat("other-1", "bob");
      await becomes("other", "held");
      expect([python.waiting(), gpu.waiting()]).toEqual([0, 0]);
    });

    it("[S9-36] a task that no worker claims within the queue's timeout fails with TIMEOUT", async () => {
      const { clock, post, worker, task } = await setup();
      const python = await worker();
      await post("t", { claimMs: 30_000 });
      await python.next();
      await clock.advance(29_999);
      expect(["queued", "offered"]).toContain((await task("t")).state);
      await clock.advance(1);
      expect(errorOf(await task("t"))).toMatchObject({ code: "TIMEOUT" });
    });

    it("[S9-37, S-QUEUE-19] a task continues with heartbeats, and fails with TIMEOUT without them", async () => {
      const { clock, post, worker, heartbeat, task } = await setup();
      await post("t", { policy: policy({}) });
      const { taskId } = await (await worker()).next();
      for (let beat = 0; beat < 20; beat++) {
        expect(await heartbeat(taskId)).toEqual(inProgress);
        await clock.advance(1_000);
      }
      expect((await task("t")).state).toBe("held");
      await clock.advance(termMs - 1_000);
      expect(errorOf(await task("t"))).toMatchObject({ code: "TIMEOUT" });
    });

    it("[S9-38] the time to execute is counted from the first heartbeat", async () => {
      const { clock, post, worker, heartbeat, task } = await setup();
      await post("t", { endMs: 10_000, policy: policy({}) });
      const { taskId } = await (await worker()).next();
      await clock.advance(900);
      for (let beat = 0; beat < 10; beat++) {
        expect(await heartbeat(taskId)).toEqual(inProgress);
        await clock.advance(999);
      }
      expect(await heartbeat(taskId)).toEqual(inProgress);
      await clock.advance(10);
      expect(errorOf(await task("t"))).toMatchObject({ code: "TIMEOUT" });
      await expect(heartbeat(taskId)).rejects.toMatchObject({ code: GrpcCode.NOT_FOUND });
    });

    it("[S9-39] a second worker gets the answer that the task is claimed", async () => {
      const { post, worker, heartbeat, complete, task } = await setup();
      await post("t");
      const { taskId } = await (await worker()).next();
      expect(await heartbeat(taskId, "ann")).toEqual(inProgress);
      expect(await heartbeat(taskId, "bob")).toEqual({ shouldAbort: true, status: TaskStatus.ALREADY_CLAIMED });
      expect(await heartbeat(taskId, "ann")).toEqual(inProgress);
      await complete({ taskId, response: { output: null } });
      expect(await task("t")).toMatchObject({ state: "done", holder: "ann", output: "null" });
    });

    it("[S9-40] reports on a task that timed out are NOT_FOUND, and change nothing", async () => {
      const { clock, post, worker, heartbeat, complete, task } = await setup();
      await post("t", { policy: policy({ lost: 1 }) });
      const python = await worker();
      const first = (await python.next()).taskId;
      await heartbeat(first);
      await clock.advance(termMs);
      const second = (await python.next()).taskId;
      expect([first, second]).toEqual(["t-1", "t-3"]);
      await expect(heartbeat(first)).rejects.toMatchObject({ code: GrpcCode.NOT_FOUND, message: "task 't-1' not found" });
      await expect(complete({ taskId: first, response: { output: 1 } })).rejects.toMatchObject({ code: GrpcCode.NOT_FOUND });
      expect(await heartbeat(second)).toEqual(inProgress);
      await complete({ taskId: second, response: { output: 2 } });
      expect(await task("t")).toMatchObject({ state: "done", output: "2", lost: 1, attempt: 1 });
    });

    it("[S9-41] a result that races with the end of its time has one outcome", async () => {
      for (const late of [0, 1]) {
        const { clock, post, worker, heartbeat, complete, task } = await setup();
        await post("t", { policy: policy({}) });
        const { taskId } = await (await worker()).next();
        await heartbeat(taskId);
        await clock.advance(termMs - 1);
        const [told] = await Promise.allSettled([complete({ taskId, response: { output: 1 } }), clock.advance(late)]);
        expect((await task("t")).state).toBe(told.status === "fulfilled" ? "done" : "failed");
        await expect(heartbeat(taskId)).rejects.toMatchObject({ code: GrpcCode.NOT_FOUND });
      }
    });

    it("[S9-42] a task that was claimed at the last moment has its full time", async () => {
      const { clock, post, worker, heartbeat, task } = await setup();
      await post("t", { claimMs: 4_000, policy: policy({}) });
      const { taskId } = await (await worker()).next();
      await clock.advance(3_999);
      expect(await heartbeat(taskId)).toEqual(inProgress);
      await clock.advance(termMs - 1);
      expect((await task("t")).state).toBe("held");
    });

    it("[S-QUEUE-19] a task that no worker claims is delivered again with another id, without using an attempt", async () => {
      const { clock, post, worker, heartbeat, task } = await setup();
      await post("t", { policy: policy({}) });
      const python = await worker();
      expect((await python.next()).taskId).toBe("t-1");
      await clock.advance(10_000);
      await expect(heartbeat("t-1")).rejects.toMatchObject({ code: GrpcCode.NOT_FOUND });
      const { taskId, execute } = await python.next();
      expect(taskId).not.toBe("t-1");
      expect(execute?.attempt).toBe(1);
      expect(await heartbeat(taskId)).toEqual(inProgress);
      expect(await task("t")).toMatchObject({ state: "held", attempt: 0, lost: 0, failures: 0 });
    });

    it("[S-QUEUE-19] a failure is retried as the policy requires, with its code, message and data", async () => {
      const { post, worker, complete, task } = await setup();
      await post("t", { policy: policy({ failures: 1 }) });
      const python = await worker();
      const error = { code: 7, message: "no database", data: { exception_type: "ConnectionError" } };
      await complete({ taskId: (await python.next()).taskId, error });
      const again = await python.next();
      expect(again).toMatchObject({ taskId: "t-3", execute: { attempt: 2 } });
      await complete({ taskId: again.taskId, error });
      expect(errorOf(await task("t"))).toEqual({ code: "RESOURCE_UNAVAILABLE", message: "no database", data: error.data });
    });

    it("a task can be finished without any heartbeat, and a report can be repeated", async () => {
      const { post, worker, complete, task } = await setup();
      await post("t");
      const { taskId } = await (await worker()).next();
      await complete({ taskId, response: { output: { ok: true } } });
      await complete({ taskId, response: { output: { ok: false } } });
      expect(await task("t")).toMatchObject({ state: "done", output: '{"ok":true}' });
    });

    it("a cancelled task makes its worker abort, and a queued one is never delivered", async () => {
      const { clock, engine, post, worker, heartbeat, complete, task } = await setup();
      const python = await worker();
      await post("held");
      const { taskId } = await python.next();
      await heartbeat(taskId);
      await engine.board.cancel("held");
      expect(await heartbeat(taskId)).toEqual({ shouldAbort: true, status: TaskStatus.IN_PROGRESS });
      await complete({ taskId, response: { output: 1 } });
      expect((await task("held")).state).toBe("cancelled");
      await post("queued", { delayMs: 1_000 });
      await engine.board.cancel("queued");
      await clock.advance(1_000);
      await post("last");
      expect((await python.next()).taskId).toBe("last-1");
    });
  });
}
