// The caller restarts a run right after its end, before its parent run was notified of this end. Pending messages between the two runs belong
// to the earlier life and must not end the new one.

import { expect, it, onTestFinished, vi } from "vitest";
import { LocalRuns } from "../../src/engine/run/local-runs.ts";
import type { Message } from "../../src/engine/run/run.ts";
import { type ConductorServer, startConductor } from "../support/conductor-rest.ts";
import { fork, operator, simple } from "../support/conductor-world.ts";
import { deferred, untilElsewhere as until } from "../support/until.ts";

/** Enough that the command arrives in this gap in some of them. The tests at the end put it there each time. */
const tries = 5;

const sub = (name: string, child: string) => operator("SUB_WORKFLOW", name, { subWorkflowParam: { name: child } });

/** Two children in a fork, each with one task; both tasks are held by a worker. */
async function startFamily(c: ConductorServer) {
  await c.taskDef({ name: "left_task", retryCount: 0 }, { name: "right_task", retryCount: 0 });
  await c.workflow({ name: "left_child", tasks: [simple("left_task")] });
  await c.workflow({ name: "right_child", tasks: [simple("right_task")] });
  const parent = await c.begin([...fork("f", [[sub("left", "left_child")], [sub("right", "right_child")]], ["left", "right"])]);
  const held = { left: await c.take("left_task"), right: await c.take("right_task") };
  return { parent, left: await c.child(parent, "left"), right: await c.child(parent, "right"), held };
}

/** Reports the failure of a task and does not wait for what follows from it. */
async function failTask(c: ConductorServer, task: { taskId: string; workflowInstanceId: string }): Promise<void> {
  await c.ask("POST", "/tasks", c.resultOf(task, { status: "FAILED", reason: "not this time" }));
}

/** Completes every open task, until there is none. */
async function workOff(c: ConductorServer): Promise<void> {
  await c.settle();
  for (let found = true; found; ) {
    found = false;
    for (const type of ["left_task", "right_task"]) {
      const task = await c.poll(type);
      if (task === undefined) continue;
      await c.update(task);
      found = true;
    }
  }
}

/** The caller's request right after the failure of the left child. The response must be 2xx. */
const orders: { [name: string]: (c: ConductorServer, family: { parent: string; left: string }) => Promise<unknown> } = {
  "rerun of the child": (c, { left }) => c.ask("POST", `/workflow/${left}/rerun`, {}),
  "restart of the child": (c, { left }) => c.ask("POST", `/workflow/${left}/restart`),
  "retry of the child": (c, { left }) => c.ask("POST", `/workflow/${left}/retry`),
  "retry of the parent that resumes its children": (c, { parent }) => untilEnded(c, parent, "?resumeSubworkflowTasks=true"),
  "retry of the parent with new children": (c, { parent }) => untilEnded(c, parent, ""),
};

/** The parent cannot be retried before it has ended, so this repeats the request until it succeeds. */
async function untilEnded(c: ConductorServer, parent: string, query: string): Promise<void> {
  for (let asked = 0; asked < 1_000; asked++) {
    const { status } = await c.send("POST", `/workflow/${parent}/retry${query}`);
    if (status === 204) return;
    expect(status).toBe(404);
  }
  throw new Error("The parent has not ended.");
}

for (const [name, order] of Object.entries(orders)) {
  it(`a ${name} directly after its failure lets both runs end`, async () => {
    const c = await startConductor();
    const ends: string[] = [];
    for (let attempt = 0; attempt < tries; attempt++) {
      const family = await startFamily(c);
      await failTask(c, family.held.left);
      await order(c, family);
      expect(await c.status(family.parent)).toBe("RUNNING");
      await workOff(c);
      await c.update(family.held.right);
      ends.push(`${await c.status(family.parent)} ${await c.status(await c.child(family.parent, "left"))}`);
    }
    expect(ends).toEqual(ends.map(() => "COMPLETED COMPLETED"));
  });
}

/** Keeps the first message of this kind, and all behind it, until `release`. `reached` resolves when that message is next. */
function keepBack(kind: Message["kind"]): { reached: Promise<void>; release: () => void } {
  const reached = deferred<void>();
  const released = deferred<void>();
  const { deliver } = LocalRuns.prototype;
  const spy = vi.spyOn(LocalRuns.prototype, "deliver").mockImplementation(async function (this: LocalRuns, stored, child) {
    if (stored.message.kind === kind) {
      reached.resolve();
      await released.promise;
    }
    return deliver.call(this, stored, child);
  });
  onTestFinished(() => {
    released.resolve();
    spy.mockRestore();
  });
  return { reached: reached.promise, release: released.resolve };
}

for (const order of ["rerun", "restart", "retry"]) {
  const startAgain = (c: ConductorServer, child: string) =>
    c.ask("POST", `/workflow/${child}/${order}`, order === "rerun" ? {} : undefined);

  it(`a ${order} of the child before its parent has learned of its end makes this end void`, async () => {
    const c = await startConductor();
    const family = await startFamily(c);
    const news = keepBack("settle-task");
    await failTask(c, family.held.left);
    await news.reached;
    await startAgain(c, family.left);
    news.release();
    await c.settle();
    expect([await c.status(family.parent), await c.status(family.left)]).toEqual(["RUNNING", "RUNNING"]);
    await workOff(c);
    await c.update(family.held.right);
    expect(await c.status(family.parent)).toBe("COMPLETED");
  });

  it(`a ${order} of the child before the cancellation of its parent reaches it begins a life that this does not end`, async () => {
    const c = await startConductor();
    const family = await startFamily(c);
    const news = keepBack("cancel-child");
    // Both answers come after the cancellation of the children, which is kept back.
    const cancelled = c.ask("DELETE", `/workflow/${family.parent}`);
    await news.reached;
    await failTask(c, family.held.left);
    const again = startAgain(c, family.left);
    await until(async () => (await c.status(family.parent)) === "RUNNING");
    news.release();
    await Promise.all([cancelled, again]);
    await c.settle();
    expect([await c.status(family.parent), await c.status(family.left)]).toEqual(["RUNNING", "RUNNING"]);
    await workOff(c);
    expect(await c.status(family.parent)).toBe("COMPLETED");
  });
}
