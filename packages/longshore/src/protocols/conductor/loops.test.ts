// Loops and dynamic forks on a real server: their runs continue with longer definitions. Names, inputs and outputs are those that the real
// Conductor server has for the same definitions.

import { expect, it, vi } from "vitest";
import { type ConductorServer, startConductor } from "../../../test/support/conductor-rest.ts";
import { operator, simple } from "../../../test/support/conductor-world.ts";
import { eventually } from "../../../test/support/workflow-graph.ts";

// The first test loads the whole server, which takes long on a machine with much other work.
vi.setConfig({ testTimeout: 120_000 });

const loop = (loopOver: object[], more: object) => operator("DO_WHILE", "loop", { loopOver, ...more });
const overItems = (loopOver: object[]) => loop(loopOver, { items: "${workflow.input.items}" });

interface Shown {
  status: string;
  output: unknown;
  tasks: { referenceTaskName: string; status: string; inputData: unknown; outputData: unknown; iteration: number; loopOverTask: boolean }[];
}

const read = (c: ConductorServer, id: string) => c.read<Shown>(`/workflow/${id}`);
const named = ({ tasks }: Shown) => tasks.map(({ referenceTaskName, status }) => `${referenceTaskName} ${status}`);

it("runs a body once for each item, however many there are", async () => {
  const c = await startConductor({ ephemeral: true });
  const body = operator("SET_VARIABLE", "set", { inputParameters: { last: "${loop.output.loopItem}", at: "${loop.output.loopIndex}" } });
  const after = operator("SET_VARIABLE", "after", { inputParameters: { set: "${set.output}", loop: "${loop.output.iteration}" } });
  const items = Array.from({ length: 50 }, (_, at) => `item ${at}`);
  const id = await c.begin([overItems([body]), after], { name: "items", start: { input: { items } } });
  await eventually(async () => (await c.status(id)) === "COMPLETED");
  const run = await read(c, id);
  expect(run.tasks).toHaveLength(52);
  expect(run.tasks[0]).toMatchObject({ referenceTaskName: "loop", iteration: 50, loopOverTask: true });
  expect(run.tasks[0]?.outputData).toMatchObject({ iteration: 50, loopIndex: 49, loopItem: "item 49", "7": { set: {} } });
  expect(run.tasks[17]).toMatchObject({ referenceTaskName: "set__17", iteration: 17, inputData: { last: "item 16", at: 16 } });
  expect(run.tasks[51]).toMatchObject({ referenceTaskName: "after", inputData: { set: {}, loop: 50 } });
});

it("ends a loop over an empty list without an iteration", async () => {
  const c = await startConductor({ ephemeral: true });
  const id = await c.begin([overItems([simple("work")])], { name: "none", start: { input: { items: [] } } });
  expect(await read(c, id)).toMatchObject({ status: "COMPLETED", tasks: [{ referenceTaskName: "loop", outputData: { iteration: 0 } }] });
});

it("repeats a body while its condition in JavaScript is true", async () => {
  const c = await startConductor({ ephemeral: true });
  const body = operator("SET_VARIABLE", "set", { inputParameters: { n: "${loop.output.iteration}" } });
  const condition = "if ($.loop['iteration'] < $.times) { true; } else { false; }";
  const id = await c.begin([loop([body], { loopCondition: condition, inputParameters: { times: 3 } })], { name: "condition" });
  await eventually(async () => (await c.status(id)) !== "RUNNING");
  const run = await read(c, id);
  expect(named(run)).toEqual(["loop COMPLETED", "set__1 COMPLETED", "set__2 COMPLETED", "set__3 COMPLETED"]);
});

it("continues a loop after a retry and after a restart of the server", async () => {
  const c = await startConductor();
  await c.send("POST", "/metadata/taskdefs", [{ name: "work", retryCount: 0, retryDelaySeconds: 0, responseTimeoutSeconds: 60 }]);
  const step = { ...simple("work"), name: "work", inputParameters: { before: "${work.output.n}" } };
  const id = await c.begin([overItems([step])], { name: "retried", start: { input: { items: [1, 2, 3, 4, 5, 6] } } });
  for (const n of [1, 2, 3]) await c.send("POST", `/tasks/${id}/work__${n}/COMPLETED`, { n });
  await c.send("POST", `/tasks/${id}/work__4/FAILED`, {});
  expect(await c.status(id)).toBe("FAILED");
  expect((await c.send("POST", `/workflow/${id}/retry`)).status).toBe(204);
  for (const n of [4, 5, 6]) {
    await eventually(async () => named(await read(c, id)).includes(`work__${n} SCHEDULED`));
    await c.send("POST", `/tasks/${id}/work__${n}/COMPLETED`, { n });
  }
  await eventually(async () => (await c.status(id)) === "COMPLETED");
  const run = await read(c, id);
  expect(run.tasks[0]?.outputData).toMatchObject({ iteration: 6, "6": { work: { n: 6 } } });
  expect(run.tasks.at(-1)).toMatchObject({ referenceTaskName: "work__6", inputData: { before: 5 } });
});

const fork = (more: object) => operator("FORK_JOIN_DYNAMIC", "fork", more);
const join = operator("JOIN", "join", {});

it("starts the tasks that a run brings, and joins them", async () => {
  const c = await startConductor({ ephemeral: true });
  const params = { dynamicForkTasksParam: "tasks", dynamicForkTasksInputParamName: "inputs" };
  const inputParameters = { tasks: "${workflow.input.tasks}", inputs: "${workflow.input.inputs}" };
  const after = operator("SET_VARIABLE", "after", { inputParameters: { all: "${join.output}" } });
  const tasks = [simple("one"), simple("two", { inputParameters: { own: "${workflow.secrets.KEY}" } })];
  const input = { tasks, inputs: { one: { x: 1 }, two: { y: "${workflow.input.tasks}" } } };
  const id = await c.begin([fork({ ...params, inputParameters }), join, after], { name: "dynamic", start: { input } });
  const run = await read(c, id);
  expect(named(run)).toEqual(["fork COMPLETED", "one SCHEDULED", "two SCHEDULED", "join IN_PROGRESS"]);
  // Data never becomes an expression.
  expect(run.tasks[1]?.inputData).toEqual({ x: 1 });
  expect(run.tasks[2]?.inputData).toEqual({ own: "${workflow.secrets.KEY}", y: "${workflow.input.tasks}" });
  await c.send("POST", `/tasks/${id}/one/COMPLETED`, { r: 1 });
  await c.send("POST", `/tasks/${id}/two/COMPLETED`, { r: 2 });
  await eventually(async () => (await c.status(id)) === "COMPLETED");
  expect((await read(c, id)).tasks.at(-1)?.inputData).toEqual({ all: { one: { r: 1 }, two: { r: 2 } } });
});

it("starts the same task for each of a list of inputs, and nothing for an empty list", async () => {
  const c = await startConductor({ ephemeral: true });
  const inputParameters = { forkTaskName: "work", forkTaskInputs: "${workflow.input.list}" };
  const tasks = [fork({ inputParameters }), join];
  const id = await c.begin(tasks, { name: "inputs", start: { input: { list: ["x", { a: 1 }] } } });
  const run = await read(c, id);
  expect(named(run)).toEqual(["fork COMPLETED", "_work_0 SCHEDULED", "_work_1 SCHEDULED", "join IN_PROGRESS"]);
  expect(run.tasks.map(({ inputData }) => inputData).slice(1, 3)).toEqual([
    { input: "x", __index: 0 },
    { a: 1, __index: 1 },
  ]);
  expect(run.tasks[3]?.inputData).toEqual({ joinOn: ["_work_0", "_work_1"] });
  const empty = await c.begin(tasks, { name: "inputs-empty", start: { input: { list: [] } } });
  expect(named(await read(c, empty))).toEqual(["fork COMPLETED", "join COMPLETED"]);
});

it("fails a run whose forked tasks are wrong, with Conductor's reason", async () => {
  const c = await startConductor({ ephemeral: true });
  const params = { dynamicForkTasksParam: "tasks", dynamicForkTasksInputParamName: "inputs" };
  const reasonFor = async (name: string, tasks: unknown, inputs: unknown) => {
    const id = await c.begin([fork({ ...params, inputParameters: { tasks, inputs } }), join], { name });
    const { status, reasonForIncompletion } = await c.read<{ status: string; reasonForIncompletion: string }>(`/workflow/${id}`);
    return `${status}: ${reasonForIncompletion}`;
  };
  expect(await reasonFor("wrong-list", "nope", {})).toBe(
    "FAILED: Input 'tasks' is invalid. Cannot deserialize a list of Workflow Tasks from 'nope'",
  );
  expect(await reasonFor("wrong-map", [simple("a")], "nope")).toBe(
    "FAILED: Input to the dynamically forked tasks is not a map -> expecting a map of K,V  but found nope",
  );
  expect(await reasonFor("taken", [simple("join")], {})).toContain("attempted to create a duplicate task reference name: join");
  expect(await reasonFor("branching", [operator("DO_WHILE", "d", { loopOver: [simple("x")], loopCondition: "true" })], {})).toContain(
    "start a SUB_WORKFLOW that contains it",
  );
});
