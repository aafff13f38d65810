// The server restarts while streams are open and tasks are in every state.

import { describe, expect, it } from "vitest";
import { GrpcCode } from "../../../src/net/grpc/status.ts";
import { TaskStatus } from "../../../src/protocols/stepflow/wire/messages.ts";
import { temporaryFolder } from "../../support/parts.ts";
import { queueWorld } from "../../support/stepflow-queue.ts";

const inProgress = { shouldAbort: false, status: TaskStatus.IN_PROGRESS };

async function beforeRestart() {
  const world = await queueWorld({ directory: temporaryFolder() });
  const ann = world.pull();
  await ann.register({ componentId: "echo" });
  for (const id of ["held", "offered", "queued"]) await world.post(id);
  expect((await ann.next()).taskId).toBe("held-1");
  await world.heartbeat("held-1");
  expect((await ann.next()).taskId).toBe("offered-1");
  return { ...world, ann };
}

describe("after a restart", () => {
  it("workers continue with the tasks that they hold, and can claim tasks that they received before", async () => {
    const world = await (await beforeRestart()).restart();
    expect(await world.heartbeat("held-1")).toEqual(inProgress);
    expect(await world.heartbeat("held-1", "bob")).toMatchObject({ status: TaskStatus.ALREADY_CLAIMED });
    expect(await world.heartbeat("offered-1")).toEqual(inProgress);
    for (const id of ["held", "offered"]) {
      await world.complete({ taskId: `${id}-1`, response: { output: id } });
      expect(await world.task(id)).toMatchObject({ state: "done", attempt: 0, lost: 0 });
    }
  });

  it("a result that was ready while the server was down is accepted, and the task is done once", async () => {
    const before = await beforeRestart();
    await before.grpc.crash();
    await expect(before.complete({ taskId: "held-1", response: { output: 1 } })).rejects.toMatchObject({ code: GrpcCode.UNAVAILABLE });
    await before.clock.advance(4_000);
    const world = await before.restart();
    await world.complete({ taskId: "held-1", response: { output: 1 } });
    expect(await world.task("held")).toMatchObject({ state: "done", attempt: 0 });
  });

  it("an unclaimed task returns to its place and is delivered with another id", async () => {
    const world = await (await beforeRestart()).restart();
    const bob = world.pull("python", "bob");
    expect((await bob.next()).taskId).toBe("queued-1");
    await world.heartbeat("queued-1", "bob");
    await world.clock.advance(4_000);
    await world.heartbeat("held-1");
    await world.heartbeat("queued-1", "bob");
    await world.clock.advance(1_000);
    expect((await bob.next()).taskId).toBe("offered-3");
    await expect(world.heartbeat("offered-1", "ann")).rejects.toMatchObject({ code: GrpcCode.NOT_FOUND });
  });

  it("the task of a worker that died at the same time is lost and retried", async () => {
    const world = await (await beforeRestart()).restart();
    await world.clock.advance(5_000);
    const bob = world.pull("python", "bob");
    const taken = [];
    for (let at = 0; at < 3; at++) {
      const { taskId, execute } = await bob.next();
      await world.heartbeat(taskId, "bob");
      taken.push(`${taskId} ${execute.attempt}`);
    }
    expect(taken.sort()).toEqual(["held-3 2", "offered-3 1", "queued-1 1"]);
  });
});
