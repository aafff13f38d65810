// Unusual heartbeats and results: which are refused, what people see of them, and a full disk.

import { describe, expect, it } from "vitest";
import { BadRequest, findDetail, GrpcCode, type GrpcError } from "../../../src/net/grpc/status.ts";
import { errorOf } from "../../../src/protocols/stepflow/dialect/result.ts";
import { TaskStatus } from "../../../src/protocols/stepflow/wire/messages.ts";
import { temporaryFolder } from "../../support/parts.ts";
import { queueWorld } from "../../support/stepflow-queue.ts";

const inProgress = { shouldAbort: false, status: TaskStatus.IN_PROGRESS };

async function claimed(parts: Parameters<typeof queueWorld>[0] = {}) {
  const world = await queueWorld(parts);
  const ann = world.pull();
  await ann.register({ componentId: "echo" });
  await world.post("t");
  const { taskId } = await ann.next();
  await world.heartbeat(taskId);
  return { ...world, ann, taskId };
}

const fieldOf = async (call: Promise<unknown>) => {
  const error = await call.then(
    () => expect.unreachable(),
    (thrown: GrpcError) => thrown,
  );
  expect(error.code).toBe(GrpcCode.INVALID_ARGUMENT);
  return findDetail(error, BadRequest)?.fieldViolations[0]?.field;
};

describe("a report is refused", () => {
  it("that lacks a required field, with the name of the field", async () => {
    const { heartbeat, complete, taskId } = await claimed();
    expect(await fieldOf(heartbeat("", "ann"))).toBe("task_id");
    expect(await fieldOf(heartbeat(taskId, ""))).toBe("worker_id");
    expect(await fieldOf(heartbeat(taskId, "w".repeat(513)))).toBe("worker_id");
    expect(await fieldOf(complete({ taskId: "" }))).toBe("task_id");
    expect(await fieldOf(complete({ taskId }))).toBe("result");
    expect(await fieldOf(complete({ taskId, response: {} }))).toBe("response.output");
  });

  it("about unknown tasks, or about tasks that were never handed out in this way", async () => {
    const { heartbeat, complete, taskId } = await claimed();
    for (const unknown of ["nobody", "nobody-1", "t-3", "t-2", "t", `${taskId}0`, "discovery-0"]) {
      await expect(heartbeat(unknown)).rejects.toMatchObject({ code: GrpcCode.NOT_FOUND });
      await expect(complete({ taskId: unknown, response: { output: 1 } })).rejects.toMatchObject({ code: GrpcCode.NOT_FOUND });
    }
  });
});

describe("a result", () => {
  it("can be null", async () => {
    const { complete, task, taskId } = await claimed();
    await complete({ taskId, response: { output: null } });
    expect(await task("t")).toMatchObject({ state: "done", output: "null" });
  });

  it.each([
    [0, "UNSPECIFIED"],
    [2, "INVALID_INPUT"],
    [6, "COMPONENT_NOT_FOUND"],
    [10, "WORKER_ERROR"],
    [77, "WORKER_ERROR"],
  ])("with the error code %i is kept as %s", async (code, name) => {
    const { complete, task, taskId } = await claimed();
    await complete({ taskId, error: { code, message: "no" } });
    expect(errorOf(await task("t"))).toEqual({ code: name, message: "no" });
  });

  it("that the worker itself reports as unreachable uses the retries of the transport", async () => {
    const world = await queueWorld();
    const ann = world.pull();
    await ann.register({ componentId: "echo" });
    await world.post("t", { policy: JSON.stringify({ failures: 0, lost: 1, backoff: { kind: "fixed", delayMs: 0 } }) });
    await world.complete({ taskId: (await ann.next()).taskId, error: { code: 5, message: "gone" } });
    expect((await ann.next()).execute.attempt).toBe(2);
    expect(await world.task("t")).toMatchObject({ failures: 0, lost: 1 });
  });
});

describe("progress", () => {
  it("is shown as the task's current part, and its message as a line of its log", async () => {
    const { heartbeat, task, engine, taskId } = await claimed();
    await heartbeat(taskId, "ann", { progress: 0.25, statusMessage: "reading" });
    expect(JSON.parse((await task("t")).output ?? "")).toEqual({ progress: 0.25, message: "reading" });
    const commits = engine.store.commit.commits;
    await heartbeat(taskId, "ann", { progress: 0.25, statusMessage: "reading" });
    expect(engine.store.commit.commits).toBe(commits);
    await heartbeat(taskId, "ann", { progress: 0.5, statusMessage: "reading" });
    await heartbeat(taskId, "ann", { progress: 0.75, statusMessage: "writing" });
    await heartbeat(taskId, "ann");
    expect(JSON.parse((await task("t")).output ?? "")).toEqual({ progress: 0.75, message: "writing" });
    const lines = await engine.logs.read("t", { limit: 10 });
    expect(lines.map(({ data }) => data)).toEqual(["reading\n", "writing\n"]);
  });

  it("may claim the task, and is not shown when another worker has the task", async () => {
    const { pull, post, heartbeat, task } = await queueWorld();
    const ann = pull();
    await ann.register({ componentId: "echo" });
    await post("t");
    const { taskId } = await ann.next();
    expect(await heartbeat(taskId, "ann", { progress: 0 })).toEqual(inProgress);
    expect(await heartbeat(taskId, "bob", { statusMessage: "mine" })).toMatchObject({ status: TaskStatus.ALREADY_CLAIMED });
    expect(await task("t")).toMatchObject({ holder: "ann", output: '{"progress":0}' });
  });
});

describe("while the store cannot be written", () => {
  const full = async () => {
    const world = await claimed({ directory: temporaryFolder() });
    const { db } = world.engine.store;
    const { transaction } = db;
    return {
      ...world,
      fill: () => {
        db.transaction = () => {
          throw Object.assign(new Error("database or disk is full"), { errcode: 13 });
        };
      },
      makeRoom: () => {
        db.transaction = transaction;
      },
    };
  };

  it("claims and results get UNAVAILABLE, and are accepted when there is space again", async () => {
    const { fill, makeRoom, complete, task, taskId, clock, ann, post, heartbeat } = await full();
    await post("next");
    const second = (await ann.next()).taskId;
    fill();
    await expect(complete({ taskId, response: { output: 1 } })).rejects.toMatchObject({ code: GrpcCode.UNAVAILABLE });
    await expect(heartbeat(second)).rejects.toMatchObject({ code: GrpcCode.UNAVAILABLE });
    makeRoom();
    await clock.advance(300);
    await complete({ taskId, response: { output: 1 } });
    expect(await heartbeat(second)).toEqual(inProgress);
    expect((await task("t")).state).toBe("done");
  });

  it("holds are still renewed, with or without progress", async () => {
    const { fill, makeRoom, clock, heartbeat, task, taskId } = await full();
    fill();
    for (let beat = 0; beat < 10; beat++) {
      expect(await heartbeat(taskId, "ann", beat % 2 === 0 ? { progress: beat / 10 } : {})).toEqual(inProgress);
      await clock.advance(2_000);
    }
    makeRoom();
    expect((await task("t")).state).toBe("held");
  });
});
