// Commands of operators in the middle of a run, in combinations that random tests found. None of them may lose a step, start a step twice, or
// leave a run that never ends.

import { describe, expect, it } from "vitest";
import { type ConductorWorld, fork, openConductor, operator, simple, switchOn } from "../../../../test/support/conductor-world.ts";
import type { TaskRow } from "../../../engine/board/task.ts";

const once = { retryCount: 0 };
/** A SWITCH with a branch `a` that is taken, and another that is not. */
const chosen = (taken: object[], other: object[] = []) => switchOn("choose", { a: taken, b: other }, [], "a");

async function finish(world: ConductorWorld, id: string, ...lanes: string[]): Promise<void> {
  for (const lane of lanes) await world.work(lane);
  expect((await world.run(id)).status).toBe("COMPLETED");
}

describe("a JOIN that a report has ended", () => {
  const tasks = [...fork("f", [[simple("left")], [simple("right")]], ["left", "right"]), simple("after")];

  it("is not ended again by the tasks that it waited for", async () => {
    const world = await openConductor();
    const id = await world.start(tasks);
    await world.signal(id, "f_join", { by: "hand" });
    const { id: taskId, grant } = (await world.poll("after")) as TaskRow;
    await world.work("left");
    await world.work("right");
    expect(await world.board.complete({ taskId, grant }, "{}")).toBe("ok");
    await finish(world, id);
    expect((await world.record(id, "f_join")).output).toEqual({ by: "hand" });
  });

  it("keeps its run open until the tasks that it waited for have ended, and starts nothing then", async () => {
    const world = await openConductor();
    const id = await world.start(tasks);
    await world.signal(id, "f_join");
    await world.work("after");
    expect((await world.run(id)).status).toBe("RUNNING");
    await finish(world, id, "left", "right");
    expect(await world.poll("after")).toBeUndefined();
  });

  it.each(["COMPLETED", "FAILED"])(
    "while its run was paused is %s afterwards, although all tasks that it waited for have ended",
    async (status) => {
      const world = await openConductor();
      const id = await world.start(tasks);
      await world.tell(id, "pause");
      await world.work("left");
      await world.work("right");
      await world.report(id, "f_join", status);
      await world.tell(id, "resume");
      if (status === "COMPLETED") await finish(world, id, "after");
      else expect(await world.run(id)).toMatchObject({ status: "FAILED", active: 0 });
    },
  );

  it("is not waited for again when a task that it did not wait for is tried again", async () => {
    const world = await openConductor();
    const id = await world.start(tasks);
    await world.signal(id, "f_join");
    await world.work("after");
    await world.cancel(id, null);
    await world.tell(id, "retry");
    await finish(world, id, "left", "right");
    expect((await world.record(id, "after")).retryCount).toBe(0);
  });

  it("stays ended when its run was terminated before the report", async () => {
    const world = await openConductor();
    const id = await world.start(tasks);
    await world.tell(id, "pause");
    await world.signal(id, "f_join");
    await world.cancel(id, null);
    await world.tell(id, "retry");
    await finish(world, id, "after", "left", "right");
    expect(await world.poll("after")).toBeUndefined();
  });
});

describe("what happened while a run was paused", () => {
  it("takes effect when the run is terminated and retried", async () => {
    const world = await openConductor();
    const id = await world.start([chosen([simple("inside")]), simple("after")]);
    await world.tell(id, "pause");
    await world.work("inside");
    await world.cancel(id, null);
    await world.tell(id, "retry");
    await finish(world, id, "after");
  });

  it("takes effect in a retry when another event of the pause ends the run as soon as it is resumed", async () => {
    const world = await openConductor();
    const branch = [chosen([simple("inside")]), simple("after")];
    const id = await world.start(fork("f", [[simple("bad", once)], branch], ["bad", "after"]));
    await world.tell(id, "pause");
    await world.work("bad", { error: "no", terminal: true });
    await world.work("inside");
    await world.tell(id, "resume");
    expect((await world.run(id)).status).toBe("FAILED");
    await world.tell(id, "retry");
    await finish(world, id, "bad", "after");
  });
});

describe("a task that an operator skips", () => {
  it("is done when it has begun before the command arrives", async () => {
    const world = await openConductor();
    const id = await world.start([simple("one"), simple("two")]);
    await world.work("one");
    await world.tell(id, "skip", "two");
    await finish(world, id, "two");
    expect((await world.record(id, "two")).status).toBe("COMPLETED");
  });

  it("in a branch that is not taken has no effect when its run is rerun from another branch", async () => {
    const world = await openConductor();
    const id = await world.start([chosen([simple("inside")], [simple("other"), simple("behind")]), simple("after"), simple("last")]);
    await world.work("inside");
    await world.tell(id, "skip", "other");
    await world.work("after");
    await world.work("last");
    await world.tell(id, "rerun", "inside");
    expect(await world.statuses(id)).not.toContain("after:SCHEDULED");
    expect(await world.statuses(id)).not.toContain("behind:SCHEDULED");
    await finish(world, id, "inside", "after", "last");
  });

  it("is done when the run is restarted and reaches it at once", async () => {
    const world = await openConductor();
    const id = await world.start([simple("one"), simple("two")]);
    await world.tell(id, "skip", "two");
    await world.cancel(id, null);
    world.workflow({ name: "w", version: 2, tasks: [operator("NOOP", "first"), simple("two")] });
    await world.runs.tell(id, { kind: "restart", definitionId: await world.keep("w") });
    await world.settle();
    await finish(world, id, "two");
  });
});

describe("a run that continued without a child", () => {
  const child = (more: object) => operator("SUB_WORKFLOW", "child", { subWorkflowParam: { name: "inner" }, ...more });

  async function cancelledChild(world: ConductorWorld, more: object): Promise<string> {
    world.workflow({ name: "inner", tasks: [simple("deep")] });
    const id = await world.start([child(more), simple("after", once)]);
    await world.cancel(`${id}-0-0`, "enough");
    await world.work("after", { error: "no", terminal: true });
    return id;
  }

  it.each([["optional"], ["permissive"]])(
    "does not start it again when it was %s and cancelled, and a later task is rerun",
    async (kind) => {
      const world = await openConductor();
      const id = await cancelledChild(world, { [kind]: true });
      await world.tell(id, "rerun", "after");
      await world.work("after");
      expect((await world.run(id)).endedAt).not.toBeNull();
      expect(await world.poll("deep")).toBeUndefined();
      expect(await world.poll("after")).toBeUndefined();
    },
  );

  it("does not start it again when it was optional and cancelled, and the run is tried again", async () => {
    const world = await openConductor();
    const id = await cancelledChild(world, { optional: true });
    await world.tell(id, "retry");
    await finish(world, id, "after");
    expect(await world.poll("deep")).toBeUndefined();
  });
});

describe("a child that is restarted after its task was done", () => {
  const child = (more: object = {}) => operator("SUB_WORKFLOW", "child", { subWorkflowParam: { name: "inner" }, ...more });

  async function childDone(tasks: object[]): Promise<{ world: ConductorWorld; id: string; childId: string }> {
    const world = await openConductor();
    world.workflow({ name: "inner", tasks: [simple("deep", once)] });
    const id = await world.start(tasks);
    await world.work("deep", { output: { try: 1 } });
    const node = tasks.length === 2 && (tasks[0] as { type: string }).type === "FORK_JOIN" ? 1 : 0;
    return { world, id, childId: `${id}-${node}-0` };
  }

  it("makes its parent wait again, while tasks that have begun after it continue", async () => {
    const { world, id, childId } = await childDone([child(), simple("after"), simple("last")]);
    await world.tell(childId, "restart");
    expect(await world.statuses(id)).toEqual(["child:IN_PROGRESS", "after:SCHEDULED"]);
    await world.work("after");
    await world.work("last");
    expect((await world.run(id)).status).toBe("RUNNING");
    await world.work("deep", { output: { try: 2 } });
    expect((await world.run(id)).status).toBe("COMPLETED");
    expect((await world.record(id, "child")).output).toMatchObject({ subWorkflowId: childId });
    for (const lane of ["after", "last"]) expect(await world.poll(lane)).toBeUndefined();
  });

  it("makes a completed parent wait only for this child", async () => {
    const { world, id, childId } = await childDone([child(), simple("after")]);
    await world.work("after");
    await world.tell(childId, "rerun", "deep");
    expect(await world.run(id)).toMatchObject({ status: "RUNNING", active: 1 });
    expect(await world.statuses(id)).toEqual(["child:IN_PROGRESS", "after:COMPLETED"]);
    await finish(world, id, "deep");
    expect(await world.poll("after")).toBeUndefined();
  });

  it("makes an open JOIN wait for it, also when the JOIN's other tasks end first", async () => {
    const { world, id, childId } = await childDone(fork("f", [[child()], [simple("right")]], ["child", "right"]));
    await world.tell(childId, "restart");
    await world.work("right");
    expect(await world.statuses(id)).toContain("f_join:IN_PROGRESS");
    await finish(world, id, "deep");
  });

  it("fails its parent when it fails this time", async () => {
    const { world, id, childId } = await childDone([child(), simple("after")]);
    await world.tell(childId, "restart");
    await world.work("deep", { error: "no", terminal: true });
    expect((await world.run(id)).status).toBe("FAILED");
    await world.tell(id, "retry");
    await finish(world, id, "deep", "after");
  });

  it("makes a terminated parent retry the tasks that had not ended", async () => {
    const { world, id, childId } = await childDone([child(), simple("after")]);
    await world.cancel(id, null);
    await world.tell(childId, "restart");
    expect(await world.statuses(id)).toEqual(["child:IN_PROGRESS", "after:SCHEDULED"]);
    await world.work("after");
    expect((await world.run(id)).status).toBe("RUNNING");
    await finish(world, id, "deep");
  });

  it("does not change a parent that has failed, or in which it is optional", async () => {
    const failed = await childDone([child(), simple("after", once)]);
    await failed.world.work("after", { error: "no", terminal: true });
    await failed.world.tell(failed.childId, "restart");
    expect((await failed.world.run(failed.id)).status).toBe("FAILED");
    const optional = await childDone([child({ optional: true }), simple("after")]);
    await optional.world.tell(optional.childId, "restart");
    expect(await optional.world.statuses(optional.id)).toEqual(["child:COMPLETED", "after:SCHEDULED"]);
    await finish(optional.world, optional.id, "after");
  });

  it("makes a paused parent wait again, whether or not the parent has processed the child's end", async () => {
    const { world, id, childId } = await childDone([child(), simple("after")]);
    await world.tell(id, "pause");
    await world.tell(childId, "restart");
    await world.work("deep");
    await world.tell(id, "resume");
    await finish(world, id, "after");
    expect(await world.poll("after")).toBeUndefined();
  });
});

describe("a fork of children that ends because of one of them", () => {
  const child = (name: string) => operator("SUB_WORKFLOW", name, { subWorkflowParam: { name: "inner" } });
  const failing = { error: "no", terminal: true };

  /** The first task of both children is done; the second of the left one has failed. */
  async function ended(options: { sliceTasks?: number } = {}): Promise<{ world: ConductorWorld; id: string }> {
    const world = await openConductor(options);
    world.workflow({ name: "inner", tasks: [simple("one"), simple("two", once)] });
    const id = await world.start([
      ...fork("f", [[child("left")], [child("right")], [simple("side", once)]], ["left", "right", "side"]),
      simple("last"),
    ]);
    await world.work("one");
    await world.work("one");
    expect((await world.work("two", failing)).runId).toBe(`${id}-1-0`);
    expect(await world.statuses(id)).toEqual(["f:COMPLETED", "left:FAILED", "right:CANCELED", "side:CANCELED", "f_join:CANCELED"]);
    return { world, id };
  }

  it.each([["retry"], ["rerun"]] as const)("continues the other child where it was when the failed one gets a %s", async (order) => {
    const { world, id } = await ended();
    await world.tell(`${id}-1-0`, order, order === "rerun" ? "two" : "");
    const statuses = ["f:COMPLETED", "left:IN_PROGRESS", "right:IN_PROGRESS", "side:SCHEDULED", "f_join:IN_PROGRESS"];
    expect(await world.statuses(id)).toEqual(statuses);
    expect(await world.poll("one")).toBeUndefined();
    expect((await world.record(id, "right")).output).toMatchObject({ subWorkflowId: `${id}-2-0` });
    expect(world.allRuns().map((run) => run.id)).toEqual([id, `${id}-1-0`, `${id}-2-0`]);
    await finish(world, id, "two", "two", "side", "last");
  });

  it("begins what was cancelled again, in its place, when one of its tasks is rerun", async () => {
    const { world, id } = await ended({ sliceTasks: 1 });
    await world.tell(id, "rerun", "left");
    expect((await world.records(id)).map(({ ref, status, retryCount }) => `${ref}:${status}:${retryCount}`)).toEqual([
      "f:COMPLETED:0",
      "left:IN_PROGRESS:0",
      "right:IN_PROGRESS:0",
      "side:SCHEDULED:0",
      "f_join:IN_PROGRESS:0",
    ]);
    expect((await world.record(id, "right")).output).toMatchObject({ subWorkflowId: `${id}-2-1` });
    await finish(world, id, "one", "one", "two", "two", "side", "last");
  });
});

describe("a run that TERMINATE has ended", () => {
  const end = operator("TERMINATE", "end", { inputParameters: { terminationStatus: "FAILED" } });

  it("ends in the same way when it is retried", async () => {
    const world = await openConductor();
    const id = await world.start([...fork("f", [[simple("left")], [simple("right"), end]], ["left", "end"]), simple("after")]);
    await world.work("right");
    await world.tell(id, "retry");
    expect(await world.run(id)).toMatchObject({ status: "FAILED", active: 0 });
    for (const lane of ["left", "after"]) expect(await world.poll(lane)).toBeUndefined();
  });

  it("reaches it again when an earlier task is rerun, unless a SWITCH chooses otherwise", async () => {
    const world = await openConductor();
    const id = await world.start([simple("one"), switchOn("choose", { stop: [end] }, [], "${one.output.next}"), simple("after")]);
    await world.work("one", { output: { next: "stop" } });
    await world.tell(id, "rerun", "one");
    await world.work("one", { output: { next: "stop" } });
    expect((await world.run(id)).status).toBe("FAILED");
    await world.tell(id, "rerun", "one");
    await world.work("one", { output: { next: "go on" } });
    await finish(world, id, "after");
  });
});

describe("a rerun", () => {
  it("from inside a fork does not change the next fork when a failure in a branch was permitted", async () => {
    const world = await openConductor();
    const permitted = simple("inside", { permissive: true, ...once });
    const tasks = [
      chosen([permitted], [simple("other"), simple("more")]),
      ...fork("f", [[simple("left")], [simple("right")]], ["left", "right"]),
    ];
    const id = await world.start(tasks);
    await world.work("inside", { error: "no", terminal: true });
    await world.work("left");
    await world.work("right");
    await world.tell(id, "rerun", "left");
    expect(await world.poll("right")).toBeUndefined();
    await world.work("left");
    expect((await world.run(id)).endedAt).not.toBeNull();
  });

  it("from a JOIN makes it wait again, also in a run whose records are made void in slices", async () => {
    const world = await openConductor({ sliceTasks: 1 });
    const beside = [simple("bad", { permissive: true, ...once }), simple("more")];
    const id = await world.start(fork("f", [beside, [simple("left")]], ["left"]));
    await world.work("bad", { error: "no", terminal: true });
    await world.cancel(id, null);
    await world.tell(id, "rerun", "f_join");
    expect(await world.statuses(id)).toContain("f_join:IN_PROGRESS");
    await finish(world, id, "left", "bad", "more");
  });
});
