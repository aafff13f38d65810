// Tests of workflows with given results (`POST /api/workflow/test`).

import { expect, it } from "vitest";
import { type ConductorServer, type RestRun, startConductor } from "../../support/conductor-rest.ts";
import { operator, simple } from "../../support/conductor-world.ts";

/** A child run starts in a later turn of the clock, so the clock moves until the response is there. */
async function test(c: ConductorServer, request: object): Promise<RestRun> {
  let text: string | undefined;
  const asked = c.ask("POST", "/workflow/test", request).then((answer) => {
    text = answer;
  });
  while (text === undefined) await Promise.race([asked, c.settle()]);
  return JSON.parse(text) as RestRun;
}

it("plays a workflow with the given results, retries and children included", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "one", retryCount: 1, retryDelaySeconds: 60 }, { name: "two" });
  await c.workflow({ name: "child", tasks: [simple("one"), operator("WAIT", "wait")], outputParameters: { n: "${one.output.n}" } });
  const sub = operator("SUB_WORKFLOW", "sub", { subWorkflowParam: { name: "child" } });
  await c.workflow({ name: "parent", tasks: [sub, simple("two", { inputParameters: { n: "${sub.output.n}" } })] });
  const run = await test(c, {
    name: "parent",
    taskRefToMockOutput: { two: [{ output: { done: true } }] },
    subWorkflowTestRequest: {
      sub: { taskRefToMockOutput: { one: [{ status: "FAILED" }, { output: { n: 7 } }], wait: [{ status: "COMPLETED" }] } },
    },
  });
  expect(run).toMatchObject({ status: "COMPLETED", output: { done: true } });
  expect(run.tasks.map(({ referenceTaskName, inputData }) => [referenceTaskName, inputData.n])).toEqual([
    ["sub", undefined],
    ["two", 7],
  ]);
  expect(await c.statuses(run.tasks[0]?.subWorkflowId as string)).toEqual(["one:FAILED", "one:COMPLETED", "wait:COMPLETED"]);
});

it("gives no task of a test to a worker, and leaves a run open that needs more results", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "one" }, { name: "two" });
  await c.workflow({ name: "w", tasks: [simple("one"), simple("two")] });
  const run = await test(c, { name: "w", taskRefToMockOutput: { one: [{ output: {} }], absent: [{}] } });
  expect(run.tasks.map(({ status }) => status)).toEqual(["COMPLETED", "SCHEDULED"]);
  expect(run.status).toBe("RUNNING");
  expect(await c.status(run.workflowId)).toBe("RUNNING");
  expect(await c.poll("two")).toBeUndefined();
  expect((await c.send("GET", "/tasks/poll/batch/two?domain=$conductor.test")).status).toBe(400);
});

it("sends no request for an HTTP task that has a result", async () => {
  const c = await startConductor();
  const call = operator("HTTP", "call", { inputParameters: { uri: "http://127.0.0.1:9/", method: "GET" } });
  await c.workflow({ name: "w", tasks: [call], outputParameters: { body: "${call.output.response.body}" } });
  const run = await test(c, { name: "w", taskRefToMockOutput: { call: [{ output: { response: { body: "mocked" } } }] } });
  expect(run).toMatchObject({ status: "COMPLETED", output: { body: "mocked" } });
});

it("names the place of a mistake in the results", async () => {
  const c = await startConductor();
  await c.workflow({ name: "w", tasks: [simple("one")] });
  const refused = async (request: object) => JSON.parse((await c.send("POST", "/workflow/test", { name: "w", ...request })).text).message;
  expect(await refused({ taskRefToMockOutput: { one: {} } })).toBe(
    "JSON parse error: taskRefToMockOutput.one is an object, expected a list of results",
  );
  expect(await refused({ subWorkflowTestRequest: { sub: { taskRefToMockOutput: { one: [5] } } } })).toBe(
    "JSON parse error: subWorkflowTestRequest.sub.taskRefToMockOutput.one[0] is a number, expected an object",
  );
  expect(await refused({ taskRefToMockOutput: { one: Array.from({ length: 1_001 }, () => ({})) } })).toBe(
    "The request has more than 1000 results of tasks, which is the limit.",
  );
});
