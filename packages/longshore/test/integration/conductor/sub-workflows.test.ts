import { expect, it } from "vitest";
import { type ConductorServer, startConductor } from "../../support/conductor-rest.ts";
import { fork, operator, simple } from "../../support/conductor-world.ts";

const sub = (name: string, child: string, more: object = {}, param: object = {}) =>
  operator("SUB_WORKFLOW", name, { subWorkflowParam: { name: child, ...param }, ...more });

it("[C98] ends as its child ends", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "inner", retryCount: 0 });
  await c.workflow({ name: "child", tasks: [simple("inner")], timeoutSeconds: 60, timeoutPolicy: "TIME_OUT_WF" });
  const begin = () => c.begin([sub("s", "child"), simple("after", { inputParameters: { x: "${s.output.x}" } })]);

  const good = await begin();
  const goodChild = await c.child(good, "s");
  expect(await c.run(goodChild)).toMatchObject({ parentWorkflowId: good, parentWorkflowTaskId: (await c.record(good, "s")).taskId });
  await c.work("inner", { output: { x: 1 } });
  expect(await c.record(good, "s")).toMatchObject({ status: "COMPLETED", outputData: { x: 1, subWorkflowId: goodChild } });
  expect((await c.work("after")).inputData).toEqual({ x: 1 });

  const bad = await begin();
  await c.work("inner", { status: "FAILED", reason: "no" });
  expect((await c.record(bad, "s")).status).toBe("FAILED");
  expect((await c.record(bad, "s")).reasonForIncompletion).toContain("no");
  expect(await c.status(bad)).toBe("FAILED");

  const ended = await begin();
  await c.order("DELETE", await c.child(ended, "s"), "?reason=by+hand");
  expect((await c.record(ended, "s")).status).toBe("CANCELED");
  expect(await c.run(ended)).toMatchObject({ status: "TERMINATED" });
  expect((await c.run(ended)).reasonForIncompletion).toContain("by hand");

  const late = await begin();
  await c.clock.advance(60_000);
  await c.settle();
  expect(await c.run(await c.child(late, "s"))).toMatchObject({
    status: "TIMED_OUT",
    reasonForIncompletion:
      "Workflow timed out after 60 seconds. Timeout configured as 60 seconds. Timeout policy configured to TIME_OUT_WF",
  });
  expect((await c.record(late, "s")).status).toBe("TIMED_OUT");
  expect(await c.status(late)).toBe("TIMED_OUT");
});

it("[C99] starts the version that it names, else the newest", async () => {
  const c = await startConductor();
  await c.workflow({ name: "child", version: 1, tasks: [simple("one")] });
  await c.workflow({ name: "child", version: 2, tasks: [simple("two")] });
  for (const [param, version] of [
    [{ version: null }, 2],
    [{ version: 0 }, 2],
    [{ version: 1 }, 1],
    [{}, 2],
  ] as const) {
    const id = await c.begin([sub("s", "child", {}, param)]);
    expect((await c.run(await c.child(id, "s"))).workflowVersion).toBe(version);
    await c.work(version === 1 ? "one" : "two");
    expect(await c.status(id)).toBe("COMPLETED");
  }
});

it("[C100] starts a workflow that is defined inline, by an expression, or by a name from an expression", async () => {
  const c = await startConductor();
  const named = { name: "child", version: 1, tasks: [simple("inner")] };
  await c.workflow(named);
  const inline = await c.begin([sub("s", "inline", {}, { workflowDefinition: { ...named, name: "inline" } })]);
  expect((await c.run(await c.child(inline, "s"))).input).toEqual({ _systemMetadata: { dynamic: true } });
  const given = await c.begin([sub("s", "given", {}, { workflowDefinition: "${workflow.input.def}" })], {
    start: { input: { def: named } },
  });
  expect((await c.run(await c.child(given, "s"))).input).toEqual({ _systemMetadata: { dynamic: true } });
  const byName = await c.begin([sub("s", "${workflow.input.which}", { inputParameters: { a: 1 } })], {
    start: { input: { which: "child" } },
  });
  expect((await c.run(await c.child(byName, "s"))).input).toEqual({ a: 1 });
  for (const id of [inline, given, byName]) {
    await c.work("inner");
    expect(await c.status(id)).toBe("COMPLETED");
  }
});

/** Root, mid and leaf; the leaf's task has failed. */
async function threeLevels(c: ConductorServer): Promise<{ root: string; mid: string; leaf: string }> {
  await c.taskDef({ name: "work", retryCount: 0 });
  await c.workflow({ name: "leaf", tasks: [simple("before"), simple("work")] });
  await c.workflow({ name: "mid", tasks: [sub("to_leaf", "leaf"), simple("mid_after")] });
  const root = await c.begin([sub("to_mid", "mid"), simple("root_after")], { name: "root" });
  const mid = await c.child(root, "to_mid");
  const leaf = await c.child(mid, "to_leaf");
  await c.work("before");
  await c.work("work", { status: "FAILED", reason: "first time" });
  for (const id of [root, mid, leaf]) expect(await c.status(id)).toBe("FAILED");
  return { root, mid, leaf };
}

/** Completes all open tasks until there is none. */
async function workOff(c: ConductorServer, types: readonly string[]): Promise<string[]> {
  const done: string[] = [];
  for (let found = true; found; ) {
    found = false;
    for (const type of types) {
      const task = await c.poll(type);
      if (task === undefined) continue;
      await c.update(task);
      done.push(type);
      found = true;
    }
  }
  return done;
}

const types = ["before", "work", "mid_after", "root_after"];

for (const level of ["root", "mid", "leaf"] as const) {
  it(`[C101] retries a failure three levels deep from the ${level}, and keeps children only when a resume is requested`, async () => {
    const c = await startConductor();
    for (const resume of [false, true]) {
      const ids = await threeLevels(c);
      expect((await c.order("POST", ids[level], `/retry?resumeSubworkflowTasks=${resume}`)).status).toBe(204);
      for (const id of [ids.root, ...(level === "root" ? [] : [ids.mid])]) expect(await c.status(id)).toBe("RUNNING");
      const kept = resume || level === "leaf";
      expect(await workOff(c, types)).toEqual(kept ? ["work", "mid_after", "root_after"] : types);
      expect(await c.status(ids.root)).toBe("COMPLETED");
      expect((await c.child(ids.root, "to_mid")) === ids.mid).toBe(kept || level === "mid");
      expect((await c.child(await c.child(ids.root, "to_mid"), "to_leaf")) === ids.leaf).toBe(kept);
    }
  });

  it(`[C101] restarts and reruns a run at the ${level}, and those above it wait again`, async () => {
    const c = await startConductor();
    const ids = await threeLevels(c);
    expect((await c.order("POST", ids[level], "/restart")).status).toBe(204);
    expect(await c.status(ids.root)).toBe("RUNNING");
    expect(await c.status(ids[level])).toBe("RUNNING");
    expect(await workOff(c, types)).toEqual(types);
    expect(await c.status(ids.root)).toBe("COMPLETED");
    expect((await c.child(ids.root, "to_mid")) === ids.mid).toBe(level !== "root");

    const again = await threeLevels(c);
    expect(await c.order("POST", again[level], "/rerun", {})).toMatchObject({ status: 200, text: again[level] });
    expect(await c.status(again.root)).toBe("RUNNING");
    expect(await workOff(c, types)).toEqual(types);
    expect(await c.status(again.root)).toBe("COMPLETED");

    const task = await threeLevels(c);
    const reRunFromTaskId = (await c.record(task.leaf, "work")).taskId;
    const body = { reRunFromTaskId, taskInput: { given: level } };
    expect((await c.order("POST", task[level], "/rerun", body)).status).toBe(200);
    for (const id of [task.root, task.mid, task.leaf]) expect(await c.status(id)).toBe("RUNNING");
    expect((await c.work("work")).inputData).toEqual({ given: level });
    expect(await workOff(c, types)).toEqual(["mid_after", "root_after"]);
    expect(await c.status(task.root)).toBe("COMPLETED");
    expect(await c.child(task.mid, "to_leaf")).toBe(task.leaf);
  });
}

it("[C102] does not change a parent that has continued without an optional child", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "inner", retryCount: 0 });
  await c.workflow({ name: "child", tasks: [simple("inner")] });
  const id = await c.begin([sub("s", "child", { optional: true })]);
  const child = await c.child(id, "s");
  await c.work("inner", { status: "FAILED" });
  expect(await c.run(id)).toMatchObject({ status: "COMPLETED" });
  expect((await c.order("POST", child, "/restart")).status).toBe(204);
  expect(await c.status(child)).toBe("RUNNING");
  expect(await c.status(id)).toBe("COMPLETED");
  await c.work("inner");
  expect(await c.status(child)).toBe("COMPLETED");
  expect(await c.statuses(id)).toEqual(["s:COMPLETED_WITH_ERRORS"]);
});

it("[C103] terminates the children of a terminated run, with the same reason", async () => {
  const c = await startConductor();
  await c.workflow({ name: "leaf", tasks: [simple("inner")] });
  await c.workflow({ name: "mid", tasks: [sub("to_leaf", "leaf")] });
  const id = await c.begin([sub("s", "mid")]);
  const mid = await c.child(id, "s");
  const leaf = await c.child(mid, "to_leaf");
  const held = await c.take("inner");
  await c.order("DELETE", id, "?reason=enough");
  for (const run of [mid, leaf]) expect(await c.status(run)).toBe("TERMINATED");
  expect((await c.run(mid)).reasonForIncompletion).toBe("Parent workflow has been terminated with reason: enough");
  expect((await c.run(leaf)).reasonForIncompletion).toMatch(/^Parent workflow has been terminated with reason: /);
  expect((await c.record(leaf, "inner")).status).toBe("CANCELED");
  await c.update(held, { output: { late: true } });
  expect(await c.record(leaf, "inner")).toMatchObject({ status: "CANCELED" });
});

it("[C104] starts cancelled siblings again each time a task inside a child is rerun", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "inner", retryCount: 0 });
  await c.workflow({ name: "child", tasks: [simple("inner")] });
  const tasks = fork("f", [[sub("s", "child")], [simple("idle")], [simple("done")]], ["s", "idle", "done"]);
  const id = await c.begin([...tasks, simple("after")]);
  const child = await c.child(id, "s");
  await c.work("done", { output: { kept: 1 } });
  for (let cycle = 0; cycle < 3; cycle++) {
    await c.work("inner", { status: "FAILED" });
    expect(await c.status(id)).toBe("FAILED");
    const cancelled = await c.record(id, "idle");
    expect(cancelled.status).toBe("CANCELED");
    const reRunFromTaskId = (await c.record(child, "inner")).taskId;
    expect((await c.order("POST", id, "/rerun", { reRunFromTaskId })).status).toBe(200);
    expect(await c.status(id)).toBe("RUNNING");
    expect(await c.child(id, "s")).toBe(child);
    expect(await c.record(id, "done")).toMatchObject({ status: "COMPLETED", outputData: { kept: 1 } });
    // It continues in its place, and its earlier id leads to it.
    expect((await c.run(id)).tasks.map(({ referenceTaskName }: { referenceTaskName: string }) => referenceTaskName)).toEqual([
      ...["f", "s", "idle", "done", "f_join"],
    ]);
    const scheduled = await c.record(id, "idle");
    expect(scheduled).toMatchObject({ status: "SCHEDULED", seq: cancelled.seq, retryCount: cycle + 1 });
    expect(scheduled).not.toHaveProperty("retriedTaskId");
    expect(await c.read(`/tasks/${cancelled.taskId}`)).toMatchObject({ taskId: scheduled.taskId, status: "SCHEDULED" });
    expect((await c.record(id, "f_join")).status).toBe("IN_PROGRESS");
  }
  await c.work("inner");
  await c.work("idle");
  await c.work("after");
  expect(await c.run(id)).toMatchObject({ status: "COMPLETED" });
  expect((await c.record(id, "f_join")).outputData).toMatchObject({ done: { kept: 1 } });
});

it("[C123] has one child for each attempt of a step, for any number of reads", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "inner", retryCount: 0 }, { name: "s", retryCount: 2, retryDelaySeconds: 0 });
  await c.workflow({ name: "child", tasks: [simple("inner")] });
  const id = await c.begin([sub("s", "child")]);
  const child = await c.child(id, "s");
  for (let look = 0; look < 20; look++) {
    await c.order("PUT", `decide/${id}`, "");
    expect(await c.child(id, "s")).toBe(child);
  }
  const again = await rerunFields(c);
  for (let look = 0; look < 5; look++) await again.order("PUT", `decide/${id}`, "");
  expect(await again.child(id, "s")).toBe(child);
  expect(await again.read<string[]>("/workflow/running/child?version=1")).toEqual([child]);
  await again.work("inner", { status: "FAILED" });
  const second = await again.child(id, "s");
  expect(second).not.toBe(child);
  expect(await again.status(second)).toBe("RUNNING");
  expect(await again.read<string[]>("/workflow/running/child?version=1")).toEqual([second]);
  await again.work("inner");
  expect(await again.status(id)).toBe("COMPLETED");
});

async function rerunFields(c: ConductorServer): Promise<ConductorServer> {
  await c.close();
  return startConductor({}, c);
}

it("completes with errors when an optional child is terminated, in the run and in a join", async () => {
  const c = await startConductor();
  await c.workflow({ name: "child", tasks: [simple("inner")] });
  const id = await c.begin([...fork("f", [[sub("s", "child", { optional: true })], [simple("a")]], ["s", "a"]), simple("after")]);
  await c.order("DELETE", await c.child(id, "s"), "?reason=enough");
  await c.work("a");
  expect((await c.record(id, "s")).status).toBe("COMPLETED_WITH_ERRORS");
  expect((await c.record(id, "f_join")).status).toBe("COMPLETED_WITH_ERRORS");
  await c.work("after");
  expect(await c.status(id)).toBe("COMPLETED");
});

it("ends a run that continued after a permitted failure when a later step or child is rerun", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "risky", retryCount: 0 }, { name: "inner", retryCount: 0 }, { name: "after", retryCount: 0 });
  await c.workflow({ name: "child", tasks: [simple("inner")] });
  const id = await c.begin([simple("risky", { permissive: true }), sub("s", "child"), simple("after")]);
  await c.work("risky", { status: "FAILED", reason: "too risky" });
  const child = await c.child(id, "s");
  await c.work("inner", { status: "FAILED" });
  expect(await c.status(id)).toBe("FAILED");
  await c.order("POST", child, "/rerun", {});
  expect(await c.statuses(id)).toEqual(["risky:FAILED", "s:IN_PROGRESS"]);
  await c.work("inner");
  await c.work("after", { status: "FAILED" });
  const reRunFromTaskId = (await c.record(id, "after")).taskId;
  await c.order("POST", id, "/rerun", { reRunFromTaskId });
  expect(await c.statuses(id)).toEqual(["risky:FAILED", "s:COMPLETED", "after:SCHEDULED"]);
  await c.work("after");
  expect(await c.run(id)).toMatchObject({ status: "FAILED", reasonForIncompletion: expect.stringContaining("too risky") });
  expect(await c.child(id, "s")).toBe(child);
});

it("cancels the child of an attempt that a client fails, when another attempt follows", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "s", retryCount: 1, retryDelaySeconds: 0 });
  await c.workflow({ name: "child", tasks: [simple("inner")] });
  const parent = await c.begin([sub("s", "child")]);
  const first = await c.child(parent, "s");
  const { taskId } = await c.record(parent, "s");
  const report = { taskId, workflowInstanceId: parent, status: "FAILED", reasonForIncompletion: "by hand" };
  await c.ask("POST", "/tasks", report);
  await c.settle();
  expect(await c.record(parent, "s")).toMatchObject({ retryCount: 1 });
  const second = await c.child(parent, "s");
  expect(second).not.toBe(first);
  expect(await c.status(first)).toBe("TERMINATED");
  await c.work("inner", { output: { x: 1 } });
  expect(await c.status(second)).toBe("COMPLETED");
  expect(await c.status(parent)).toBe("COMPLETED");
});
