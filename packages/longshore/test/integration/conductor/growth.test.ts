// Runs of loops and dynamic forks whose definitions have grown, over retries, reruns, restarts and restarts of the server.

import { join as pathOf } from "node:path";
import { expect, it } from "vitest";
import { graph } from "../../../src/graph.ts";
import { openDatabase } from "../../../src/store/sqlite/driver.ts";
import { type ConductorServer, startConductor } from "../../support/conductor-rest.ts";
import { operator, simple } from "../../support/conductor-world.ts";

const items = [1, 2, 3, 4, 5, 6];
const loop = operator("DO_WHILE", "loop", {
  items: "${workflow.input.items}",
  loopOver: [simple("work", { inputParameters: { item: "${loop.output.loopItem}", before: "${work.output.n}" } })],
});
const after = simple("after", { inputParameters: { loop: "${loop.output}" } });

const forked = ["a", "b", "c"].map((name) => simple(name));
const fork = [
  operator("FORK_JOIN_DYNAMIC", "fork", {
    ...{ dynamicForkTasksParam: "tasks", dynamicForkTasksInputParamName: "inputs" },
    inputParameters: { tasks: "${workflow.input.tasks}", inputs: {} },
  }),
  operator("JOIN", "join", {}),
];
const afterFork = simple("after", { inputParameters: { all: "${join.output}" } });

async function conductor(before?: ConductorServer): Promise<ConductorServer> {
  const c = await startConductor({}, before);
  await c.taskDef(...["work", "after", "a", "b", "c"].map((name) => ({ name, retryCount: 0, retryDelaySeconds: 0 })));
  return c;
}

/** Works off these iterations, and returns their inputs. */
async function iterate(c: ConductorServer, numbers: readonly number[]): Promise<unknown[]> {
  const inputs: unknown[] = [];
  for (const n of numbers) inputs.push((await c.work("work", { output: { n } })).inputData);
  return inputs;
}

const names = (numbers: readonly number[], status: string) => numbers.map((n) => `work__${n}:${status}`);

it("resumes the same child run when its parent is retried after the child's definition has grown", async () => {
  const c = await conductor();
  await c.begin([loop], { name: "child", start: { input: { items: [] } } });
  const parent = graph("parent", (g) => g.run("child", { items }));
  await c.server.define(parent);
  const run = await c.server.start(parent, {});
  await c.settle();
  await iterate(c, [1, 2, 3]);
  const failed = await c.work("work", { status: "FAILED" });
  expect((await run.status()).state).toBe("failed");
  await c.server.run(run.id).retry();
  await c.settle();
  const task = await c.take("work");
  expect(task).toMatchObject({ workflowInstanceId: failed.workflowInstanceId, inputData: { item: 4, before: 3 } });
  await c.update(task, { output: { n: 4 } });
  await iterate(c, [5, 6]);
  expect((await run.status()).state).toBe("succeeded");
});

it("resumes a child run whose definition has grown, when a retry asks for it", async () => {
  const c = await conductor();
  await c.workflow({ name: "child", tasks: [loop] });
  const sub = operator("SUB_WORKFLOW", "sub", {
    subWorkflowParam: { name: "child" },
    inputParameters: { items: "${workflow.input.items}" },
  });
  const id = await c.begin([sub], { start: { input: { items } } });
  const child = await c.child(id, "sub");
  await iterate(c, [1, 2, 3]);
  await c.work("work", { status: "FAILED" });
  expect([await c.status(child), await c.status(id)]).toEqual(["FAILED", "FAILED"]);
  expect((await c.order("POST", id, "/retry?resumeSubworkflowTasks=true")).status).toBe(204);
  expect(await c.child(id, "sub")).toBe(child);
  expect(await iterate(c, [4, 5, 6])).toEqual([4, 5, 6].map((item) => ({ item, before: item - 1 })));
  expect([await c.status(child), await c.status(id)]).toEqual(["COMPLETED", "COMPLETED"]);
});

it("continues a loop after a restart of the server, and repeats no iteration", async () => {
  const first = await conductor();
  const id = await first.begin([loop, after], { start: { input: { items } } });
  await iterate(first, [1, 2, 3]);
  const held = await first.take("work");
  await first.close();
  const c = await conductor(first);
  expect(await c.statuses(id)).toEqual(["loop:IN_PROGRESS", ...names([1, 2, 3], "COMPLETED"), "work__4:IN_PROGRESS"]);
  await c.update(held, { output: { n: 4 } });
  await iterate(c, [5]);
  await c.close();
  const last = await conductor(c);
  expect(await iterate(last, [6])).toEqual([{ item: 6, before: 5 }]);
  expect((await last.work("after")).inputData.loop).toMatchObject({ iteration: 6, 1: { work: { n: 1 } }, 6: { work: { n: 6 } } });
  expect(await last.run(id)).toMatchObject({ status: "COMPLETED" });
  expect(await last.statuses(id)).toEqual(["loop:COMPLETED", ...names(items, "COMPLETED"), "after:COMPLETED"]);
});

it("continues a dynamic fork after a restart of the server, and repeats no task of it", async () => {
  const first = await conductor();
  const id = await first.begin([...fork, afterFork], { start: { input: { tasks: forked } } });
  await first.work("a", { output: { r: "a" } });
  const held = await first.take("b");
  await first.close();
  const c = await conductor(first);
  expect(await c.statuses(id)).toEqual(["fork:COMPLETED", "a:COMPLETED", "b:IN_PROGRESS", "c:SCHEDULED", "join:IN_PROGRESS"]);
  await c.update(held, { output: { r: "b" } });
  expect(await c.poll("a")).toBeUndefined();
  await c.work("c", { output: { r: "c" } });
  expect((await c.work("after")).inputData).toEqual({ all: { a: { r: "a" }, b: { r: "b" }, c: { r: "c" } } });
  expect(await c.statuses(id)).toEqual([..."fork a b c join after".split(" ")].map((name) => `${name}:COMPLETED`));
});

it("retries a loop that failed in its third iteration, also behind a restart of the server", async () => {
  const first = await conductor();
  const id = await first.begin([loop, after], { start: { input: { items } } });
  await iterate(first, [1, 2]);
  await first.work("work", { status: "FAILED" });
  expect(await first.status(id)).toBe("FAILED");
  await first.close();
  const c = await conductor(first);
  expect((await c.order("POST", id, "/retry")).status).toBe(204);
  expect(await iterate(c, [3, 4, 5, 6])).toEqual([3, 4, 5, 6].map((item) => ({ item, before: item - 1 })));
  expect((await c.work("after")).inputData.loop).toMatchObject({ iteration: 6, 3: { work: { n: 3 } } });
  expect(await c.status(id)).toBe("COMPLETED");
  const statuses = ["loop:COMPLETED", ...names([1, 2], "COMPLETED"), "work__3:FAILED", ...names([3, 4, 5, 6], "COMPLETED")];
  expect((await c.statuses(id)).toSorted()).toEqual([...statuses, "after:COMPLETED"].toSorted());
});

it("reruns a loop from a task of its fourth iteration, and keeps those before", async () => {
  const c = await conductor();
  const id = await c.begin([loop, after], { start: { input: { items } } });
  await iterate(c, items);
  await c.work("after");
  const reRunFromTaskId = (await c.record(id, "work__4")).taskId;
  expect((await c.order("POST", id, "/rerun", { reRunFromTaskId })).status).toBe(200);
  expect(await c.status(id)).toBe("RUNNING");
  expect(await iterate(c, [40, 50, 60])).toEqual([
    { item: 4, before: 3 },
    { item: 5, before: 40 },
    { item: 6, before: 50 },
  ]);
  const outputs = Object.fromEntries([1, 2, 3, 40, 50, 60].map((n, at) => [at + 1, { work: { n } }]));
  expect((await c.work("after")).inputData.loop).toMatchObject({ iteration: 6, ...outputs });
  expect(await c.status(id)).toBe("COMPLETED");
});

it("restarts a loop and a dynamic fork that have grown from their beginning", async () => {
  const c = await conductor();
  const id = await c.begin([loop, ...fork, afterFork], { start: { input: { items, tasks: forked } } });
  for (const life of [1, 2]) {
    if (life === 2) expect((await c.order("POST", id, "/restart")).status).toBe(204);
    expect(await iterate(c, items)).toHaveLength(6);
    expect(await c.poll("work")).toBeUndefined();
    for (const name of ["a", "b", "c"]) await c.work(name, { output: { life } });
    expect((await c.work("after")).inputData).toEqual({ all: { a: { life }, b: { life }, c: { life } } });
    expect(await c.status(id)).toBe("COMPLETED");
  }
});

it("reruns a dynamic fork from one of its tasks", async () => {
  const c = await conductor();
  const id = await c.begin([...fork, afterFork], { start: { input: { tasks: forked } } });
  for (const name of ["a", "b", "c", "after"]) await c.work(name, { output: { r: name } });
  expect(await c.status(id)).toBe("COMPLETED");
  const reRunFromTaskId = (await c.record(id, "b")).taskId;
  expect((await c.order("POST", id, "/rerun", { reRunFromTaskId })).status).toBe(200);
  await c.work("b", { output: { r: "again" } });
  for (let task = await c.poll("c"); task !== undefined; task = await c.poll("c")) await c.update(task, { output: { r: "c" } });
  expect((await c.work("after")).inputData.all).toMatchObject({ b: { r: "again" } });
  expect(await c.status(id)).toBe("COMPLETED");
});

it("starts a run again with the definition as it was before it grew", async () => {
  const c = await conductor();
  const id = await c.begin([loop, ...fork], { start: { input: { items: [1, 2, 3], tasks: forked } } });
  await iterate(c, [1, 2, 3]);
  for (const name of ["a", "b", "c"]) await c.work(name);
  expect(await c.status(id)).toBe("COMPLETED");
  const { id: again } = await c.server.run(id).rerun();
  await c.settle();
  expect(await iterate(c, [1, 2, 3])).toHaveLength(3);
  for (const name of ["a", "b", "c"]) await c.work(name);
  expect(await c.status(again)).toBe("COMPLETED");
});

it("removes the definitions that a dynamic fork has made with their run", async () => {
  const c = await conductor();
  const id = await c.begin([loop, ...fork], { start: { input: { items: [1, 2, 3], tasks: forked } } });
  await iterate(c, [1, 2, 3]);
  for (const name of ["a", "b", "c"]) await c.work(name);
  expect(await c.status(id)).toBe("COMPLETED");
  const grown = async () => {
    const db = await openDatabase(pathOf(c.data, "longshore.db"), { readOnly: true });
    const rows = db.prepare("SELECT id FROM definition WHERE id LIKE '%+grown-%'").all();
    db.close();
    return rows.map((row) => String(row.id).startsWith(`${id}.`)).sort();
  };
  // The definitions of loops contain no data of a run, and all runs share them.
  expect(await grown()).toEqual([false, true]);
  await c.ask("DELETE", `/workflow/${id}/remove`);
  expect(await grown()).toEqual([false]);
});
