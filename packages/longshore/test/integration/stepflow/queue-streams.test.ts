// PullTasks streams: which worker gets which tasks, and what happens to them when a stream ends.

import { describe, expect, it } from "vitest";
import { uuidOf } from "../../../src/core/ids.ts";
import { BadRequest, ErrorInfo, findDetail, GrpcCode, type GrpcError } from "../../../src/net/grpc/status.ts";
import { TaskStatus } from "../../../src/protocols/stepflow/wire/messages.ts";
import { TasksService } from "../../../src/protocols/stepflow/wire/services.ts";
import { type PullingWorker, queueWorld } from "../../support/stepflow-queue.ts";

const inProgress = { shouldAbort: false, status: TaskStatus.IN_PROGRESS };

async function refusal(worker: PullingWorker): Promise<GrpcError> {
  return worker.nextOfAny().then(
    () => expect.unreachable(),
    (error: GrpcError) => error,
  );
}

describe("a stream is refused", () => {
  it("[S-QUEUE-07] without the name of a queue", async () => {
    const { pull } = await queueWorld();
    const error = await refusal(pull(""));
    expect(error.code).toBe(GrpcCode.INVALID_ARGUMENT);
    expect(findDetail(error, BadRequest)?.fieldViolations).toEqual([
      { field: "queue_name", description: "is empty, expected the name of a queue" },
    ]);
  });

  it("[S-QUEUE-13] for a queue that no plugin and no route names", async () => {
    const { pull } = await queueWorld();
    const error = await refusal(pull("nobody"));
    expect(error).toMatchObject({ code: GrpcCode.NOT_FOUND, message: "queue 'nobody' not found" });
    expect(findDetail(error, ErrorInfo)).toEqual({
      reason: "RESOURCE_NOT_FOUND",
      domain: "stepflow.io",
      metadata: { resource_type: "queue", resource_id: "nobody" },
    });
  });

  it("for a queue whose tasks go to NATS", async () => {
    const { pull } = await queueWorld({ queues: [{ name: "gpu", backend: "nats" }] });
    expect(await refusal(pull("gpu"))).toMatchObject({ code: GrpcCode.FAILED_PRECONDITION, message: expect.stringContaining("NATS") });
  });

  it("for a worker name that is too long", async () => {
    const { pull } = await queueWorld();
    expect(await refusal(pull("python", "w".repeat(513)))).toMatchObject({ code: GrpcCode.INVALID_ARGUMENT });
  });
});

describe("a stream", () => {
  it("[S-QUEUE-01, S-QUEUE-04, S-QUEUE-07] gets tasks as soon as they are queued, also long after it was opened", async () => {
    const { clock, post, pull, complete, task } = await queueWorld();
    const ann = pull();
    await ann.register({ componentId: "echo", path: "/echo" });
    await clock.advance(600_000);
    await post("t", { given: "late" });
    const { taskId, execute } = await ann.next();
    expect(execute).toMatchObject({ componentId: "echo", input: "late" });
    await complete({ taskId, response: { output: "done" } });
    expect(await task("t")).toMatchObject({ state: "done", output: '"done"' });
  });

  it("has at most one task that its worker has not claimed", async () => {
    const { post, pull, heartbeat, task, becomes } = await queueWorld();
    const ann = pull();
    await ann.register({ componentId: "echo" });
    for (const id of ["a", "b", "c"]) await post(id);
    expect((await ann.next()).taskId).toBe("a-1");
    expect([(await task("b")).state, (await task("c")).state]).toEqual(["queued", "queued"]);
    await heartbeat("a-1");
    expect((await ann.next()).taskId).toBe("b-1");
    await becomes("b", "offered");
    expect((await task("c")).state).toBe("queued");
  });

  it("that ends gives back its unclaimed task at once to its place in the queue", async () => {
    const { post, pull, task } = await queueWorld();
    const ann = pull("python", "ann");
    await ann.register({ componentId: "echo" });
    await post("t");
    await post("later");
    await ann.next();
    const bob = pull("python", "bob");
    await ann.vanish();
    expect((await bob.next()).taskId).toBe("t-3");
    expect(await task("t")).toMatchObject({ state: "offered", attempt: 0, lost: 0, failures: 0 });
  });

  it("that ends on a large task again and again does not block the others: the task is refused with its size", async () => {
    const { post, pull, becomes, task } = await queueWorld();
    await post("large", { given: "x".repeat(5 * 1024 * 1024) });
    await post("small");
    for (let times = 1; times <= 3; times++) {
      const worker = pull("python", `w${times}`);
      await worker.register({ componentId: "echo" });
      expect((await worker.next()).taskId).toMatch(/^large-/);
      worker.leave();
      await becomes("large", times < 3 ? "queued" : "failed");
    }
    const { error, output } = await task("large");
    expect(error).toMatch(/^the assignment has 52\d{5} bytes, and 3 streams of workers ended on it: gRPC takes 4194304 bytes/);
    expect(JSON.parse(output ?? "")).toMatchObject({ error: { code: "INVALID_INPUT" } });
    expect((await pull("python", "w4").next()).taskId).toMatch(/^small-/);
  });

  it("that ends does not affect tasks that its worker has claimed", async () => {
    const { post, pull, heartbeat, complete, task } = await queueWorld();
    const ann = pull();
    await ann.register({ componentId: "echo" });
    await post("t");
    const { taskId } = await ann.next();
    await heartbeat(taskId);
    ann.leave();
    await expect(ann.next()).rejects.toMatchObject({ code: GrpcCode.CANCELLED });
    const bob = pull("python", "bob");
    await post("other");
    expect((await bob.next()).taskId).toBe("other-1");
    expect(await heartbeat(taskId)).toEqual(inProgress);
    await complete({ taskId, response: { output: 1 } });
    expect((await task("t")).state).toBe("done");
  });

  it("ends as unavailable when the server closes, so that its worker reconnects", async () => {
    const { post, pull, grpc, becomes } = await queueWorld();
    const ann = pull();
    await ann.register({ componentId: "echo" });
    await post("t");
    await ann.next();
    grpc.grpc.drain();
    await expect(ann.next()).rejects.toMatchObject({ code: GrpcCode.UNAVAILABLE });
    expect(await becomes("t", "queued")).toMatchObject({ grant: 2, lost: 0 });
  });

  it("of a registered worker shows in the list of workers what it holds", async () => {
    const { post, pull, heartbeat, engine } = await queueWorld();
    const ann = pull("python", "ann-1");
    await ann.register({ componentId: "echo" });
    await post("t");
    await heartbeat((await ann.next()).taskId, "ann-1");
    expect(engine.workers.get("ann-1")).toMatchObject({ protocol: "stepflow", status: "busy", tasks: [{ taskId: "t" }] });
  });
});

describe("a busy worker", () => {
  const busy = async () => {
    const world = await queueWorld();
    const ann = world.pull("python", "ann");
    await ann.register({ componentId: "echo" });
    for (const id of ["a", "b"]) {
      await world.post(id);
      await world.heartbeat((await ann.next()).taskId, "ann");
    }
    // It has no free slot for the third task, and does not claim it.
    await world.post("c");
    await ann.next();
    return { ...world, ann };
  };

  /** Both send heartbeats, so that time can pass. */
  const pass = async ({ clock, heartbeat }: Awaited<ReturnType<typeof busy>>, seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      await clock.advance(1_000);
      for (const taskId of ["a-1", "b-1"]) await heartbeat(taskId, "ann").catch(() => {});
    }
  };

  it("soon loses tasks to others that it does not claim", async () => {
    const world = await busy();
    const bob = world.pull("python", "bob");
    await pass(world, 1);
    expect((await bob.next()).taskId).toBe("c-3");
    expect(await world.task("c")).toMatchObject({ attempt: 0, lost: 0 });
  });

  it("gets no more tasks until one of its tasks has ended, and then at once", async () => {
    const world = await busy();
    await pass(world, 30);
    expect(await world.task("c")).toMatchObject({ state: "queued", grant: 2 });
    expect(world.ann.received).toEqual([]);
    await world.complete({ taskId: "a-1", response: { output: 1 } });
    expect((await world.ann.next()).taskId).toBe("c-3");
    expect(await world.heartbeat("c-3", "ann")).toEqual(inProgress);
  });

  it("gets another task after a minute, because it may have more capacity than assumed", async () => {
    const world = await busy();
    await pass(world, 62);
    expect((await world.ann.next()).taskId).toBe("c-3");
  });
});

describe("a worker that claims at once", () => {
  /** It has claimed and done eight tasks, one after the other. After this, two more tasks may be sent in advance. */
  const quick = async () => {
    const world = await queueWorld();
    const ann = world.pull("python", "ann");
    await ann.register({ componentId: "echo" });
    for (let n = 0; n < 8; n++) {
      await world.post(`quick-${n}`);
      const { taskId } = await ann.next();
      await world.heartbeat(taskId, "ann");
      await world.complete({ taskId, response: { output: n } });
    }
    return { ...world, ann };
  };

  it("gets a few tasks before it claims them", async () => {
    const { ann, post, becomes, task } = await quick();
    for (const id of ["a", "b", "c", "d"]) await post(id);
    for (const id of ["a", "b", "c"]) await becomes(id, "offered");
    expect([(await ann.next()).taskId, (await ann.next()).taskId, (await ann.next()).taskId].sort()).toEqual(["a-1", "b-1", "c-1"]);
    expect((await task("d")).state).toBe("queued");
  });

  it("returns all of them when its stream ends", async () => {
    const { ann, post, pull, becomes, task } = await quick();
    for (const id of ["a", "b", "c"]) await post(id);
    for (const id of ["a", "b", "c"]) await becomes(id, "offered");
    await ann.vanish();
    const bob = pull("python", "bob");
    expect((await bob.next()).taskId).toBe("a-3");
    expect(await becomes("b", "queued")).toMatchObject({ lost: 0, failures: 0 });
    expect(await task("c")).toMatchObject({ state: "queued", lost: 0 });
  });

  it("and then leaves one unclaimed loses the others to other workers at once", async () => {
    const { ann, post, pull, heartbeat, clock, becomes } = await quick();
    await post("held");
    await heartbeat((await ann.next()).taskId, "ann");
    for (const id of ["a", "b", "c"]) await post(id);
    for (const id of ["a", "b", "c"]) await becomes(id, "offered");
    const bob = pull("python", "bob");
    await clock.advance(1_000);
    const received = [await bob.next()];
    for (let count = 0; count < 2; count++) {
      await heartbeat(received.at(-1)?.taskId ?? "", "bob");
      received.push(await bob.next());
    }
    expect(received.map(({ taskId }) => taskId.slice(0, 1)).sort()).toEqual(["a", "b", "c"]);
  });

  it("never gets more tasks than its known capacity", async () => {
    const { ann, post, heartbeat, complete, clock, becomes, task } = await quick();
    for (const id of ["x", "y"]) {
      await post(id);
      await heartbeat((await ann.next()).taskId, "ann");
    }
    await post("over");
    await ann.next();
    await clock.advance(1_000);
    await becomes("over", "queued");
    // It claims at once when it has a free slot. Without the known capacity, it would get many tasks in advance.
    let done = "x-1";
    for (let n = 0; n < 12; n++) {
      await complete({ taskId: done, response: { output: n } });
      await post(`more-${n}`);
      const { taskId } = await ann.next();
      await heartbeat(taskId, "ann");
      done = taskId;
    }
    for (const id of ["a", "b", "c"]) await post(id);
    await complete({ taskId: done, response: { output: 12 } });
    await becomes("more-11", "offered");
    for (const id of ["a", "b", "c"]) expect((await task(id)).state).toBe("queued");
    await complete({ taskId: "y-1", response: { output: 0 } });
    await becomes("a", "offered");
    for (const id of ["b", "c"]) expect((await task(id)).state).toBe("queued");
  });
});

describe("a worker that holds nothing and does not claim", () => {
  it("gets fewer and fewer offers, and gets them at once again when it has reported on a task", async () => {
    const { clock, post, pull, heartbeat, becomes } = await queueWorld();
    const ann = pull();
    await ann.register({ componentId: "echo" });
    await post("t");
    expect((await ann.next()).taskId).toBe("t-1");
    // Each offer lasts 5 s. The pauses between them last 5 s, then 10 s, then 20 s.
    for (const [restMs, grant] of [
      [5_000, 3],
      [10_000, 5],
    ] as const) {
      await clock.advance(5_000 + restMs - 1);
      expect(await becomes("t", "queued")).toMatchObject({ grant: grant - 1 });
      await clock.advance(1);
      expect(await becomes("t", "offered")).toMatchObject({ grant });
    }
    await clock.advance(15_000);
    expect(await becomes("t", "queued")).toMatchObject({ grant: 6, lost: 0 });
    await expect(heartbeat("t-5")).rejects.toMatchObject({ code: GrpcCode.NOT_FOUND });
    expect((await ann.next()).taskId).toBe("t-3");
    expect((await ann.next()).taskId).toBe("t-5");
    expect((await ann.next()).taskId).toBe("t-7");
    expect(await heartbeat("t-7")).toEqual(inProgress);
  });
});

describe("GetOrchestratorForRun", () => {
  it("[S-QUEUE-20] returns the address for reports, for a run of this server", async () => {
    const { channel, engine, grpc } = await queueWorld();
    const definition = { name: "w", dialect: "code", source: JSON.stringify({ name: "w", steps: [], output: null }) };
    await engine.runs.define(definition);
    const { run } = await engine.runs.start({ workflow: "w", input: "null" });
    const ask = (runId: string) => channel.unary(TasksService.GetOrchestratorForRun, { runId });
    expect(await ask(uuidOf(run.id) as string)).toEqual({ orchestratorServiceUrl: grpc.target });
    await expect(ask("not-a-uuid")).rejects.toMatchObject({ code: GrpcCode.INVALID_ARGUMENT });
    await expect(ask("0193a5b0-9d0f-7c3e-8a51-2f6d0b7c9e11")).rejects.toMatchObject({ code: GrpcCode.NOT_FOUND });
  });
});
