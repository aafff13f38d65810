// The attacker holds an operator token, or a read token for routes that only check, and sends and starts definitions of the maximum size.
// Checking, compiling and starting such a definition takes longer than other requests may wait. So the server must do it in slices, with
// turns of the event loop between them. The test counts the work of a turn and not the time: steps of a slice, rows of a commit.

import { expect, it, onTestFinished, vi } from "vitest";
import { RunTasks } from "../../src/engine/board/run-tasks.ts";
import { startSteps, stepsMax } from "../../src/engine/run/draft.ts";
import { serve } from "../../src/server/server.ts";
import { call } from "../support/http.ts";

const json = { "content-type": "application/json" };
const many = 2_000;
const numbers = Array.from({ length: many }, (_, at) => at);
const simple = (at: number) => ({ name: "t", taskReferenceName: `r${at}`, type: "SIMPLE", inputParameters: { a: "${workflow.input.x}" } });
const fork = {
  ...{ name: "fork", schemaVersion: 2 },
  tasks: [
    { name: "f", taskReferenceName: "f", type: "FORK_JOIN", forkTasks: numbers.map((at) => [simple(at)]) },
    { name: "j", taskReferenceName: "j", type: "JOIN", joinOn: numbers.map((at) => `r${at}`) },
  ],
};

async function started() {
  const server = await serve({ ephemeral: true, port: 0 });
  onTestFinished(() => server.close(0));
  const post = (path: string, body: unknown) => call(`${server.url}${path}`, { method: "POST", headers: json, body: JSON.stringify(body) });
  return { url: server.url as string, post };
}

/** The most tasks that are queued in one turn of the event loop. */
function fullestTurn(): () => number {
  let [count, most] = [0, 0];
  const place = RunTasks.prototype.place;
  const spy = vi.spyOn(RunTasks.prototype, "place").mockImplementation(function (this: RunTasks, ...given) {
    if (count++ === 0) setImmediate(() => (count = 0));
    most = Math.max(most, count);
    return place.apply(this, given);
  });
  onTestFinished(() => spy.mockRestore());
  return () => most;
}

/** The nodes that one decision starts, and the rows for them. */
const placedMax = stepsMax / startSteps + 2;

it("the branches of a large fork are started in slices, and all of them", async () => {
  const { url, post } = await started();
  expect((await post("/api/metadata/workflow", fork)).status).toBe(200);
  const most = fullestTurn();
  const { text: id } = await post("/api/workflow/fork", {});
  await vi.waitFor(async () => {
    const { text } = await call(`${url}/api/workflow/${id}?includeTasks=true`);
    expect(JSON.parse(text).tasks).toHaveLength(many + 2);
  }, 30_000);
  expect(most()).toBeGreaterThan(0);
  expect(most()).toBeLessThanOrEqual(placedMax);
});

it("a large fork that is terminated while it starts has all of its branches after a retry", async () => {
  const { url, post } = await started();
  await post("/api/metadata/workflow", fork);
  const { text: id } = await post("/api/workflow/fork", {});
  await call(`${url}/api/workflow/${id}`, { method: "DELETE" });
  expect((await post(`/api/workflow/${id}/retry`, {})).status).toBe(204);
  await vi.waitFor(async () => {
    const { tasks } = JSON.parse((await call(`${url}/api/workflow/${id}`)).text) as { tasks: { status: string; taskType: string }[] };
    expect(tasks.filter(({ status, taskType }) => status === "SCHEDULED" && taskType === "t")).toHaveLength(many);
  }, 30_000);
});

it("the steps of a wide Stepflow flow are started in slices", async () => {
  const { post } = await started();
  const steps = numbers.map((at) => ({ id: `s${at}`, component: "/builtin/eval", input: { $input: "$" } }));
  const flow = { steps, output: numbers.map((at) => ({ $step: `s${at}` })) };
  const { flowId } = JSON.parse((await post("/api/v1/flows", { flow })).text) as { flowId: string };
  const most = fullestTurn();
  expect((await post("/api/v1/runs", { flowId, input: [{}] })).status).toBe(200);
  await vi.waitFor(() => expect(vi.mocked(RunTasks.prototype.place).mock.calls.length).toBeGreaterThanOrEqual(many), 30_000);
  expect(most()).toBeLessThanOrEqual(placedMax);
});

it("an expression that reads very many values fails its task before others have waited long", async () => {
  const { url, post } = await started();
  const inputParameters = { all: "${workflow.input.list[?(@.a in $.input.list[*].a)]}" };
  const tasks = [{ ...simple(0), inputParameters }];
  await post("/api/metadata/workflow", { name: "scan", schemaVersion: 2, tasks });
  const { text: id } = await post("/api/workflow/scan", { list: numbers.map((a) => ({ a })) });
  const { tasks: ended } = JSON.parse((await call(`${url}/api/workflow/${id}`)).text) as { tasks: { reasonForIncompletion?: string }[] };
  expect(ended[0]?.reasonForIncompletion).toContain("more than 65536 values");
});

it("values that expressions read are counted: branches of a fork that scan a large input are started a few at a time", async () => {
  const { url, post } = await started();
  const inputParameters = { all: "${workflow.input.list[?(@.a > 5)]}" };
  const branches = numbers.slice(0, 100).map((at) => [{ ...simple(at), inputParameters }]);
  const [forking, joining] = fork.tasks;
  const joinOn = branches.map(([task]) => task!.taskReferenceName);
  const tasks = [
    { ...forking, forkTasks: branches },
    { ...joining, joinOn },
  ];
  await post("/api/metadata/workflow", { name: "scans", schemaVersion: 2, tasks });
  const most = fullestTurn();
  const { text: id } = await post("/api/workflow/scans", { list: numbers.map((a) => ({ a })) });
  await vi.waitFor(async () => {
    const { text } = await call(`${url}/api/workflow/${id}`);
    expect(JSON.parse(text).tasks).toHaveLength(branches.length + 2);
  }, 30_000);
  expect(most()).toBeLessThanOrEqual(20);
});
