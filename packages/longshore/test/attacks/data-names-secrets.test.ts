// The attacker starts a run with a chosen input, or holds a worker token and reports an output. In some workflows, data decide what is read
// (an expression inside an expression) or what is run (the definition of a sub-workflow). In both ways, data could once name secrets. Only
// definitions that operators write may do this.

import { expect, it, onTestFinished } from "vitest";
import { startGraphServer } from "../support/workflow-graph.ts";

const secrets = { worker: "worker-secret-0123456789", operator: "operator-secret-0123456789" };

async function production(tasks: readonly object[], input: object) {
  for (const name of ["KEY", "EU_KEY"]) process.env[`CONDUCTOR_SECRET_${name}`] = `hunter2 ${name}`;
  onTestFinished(() => {
    for (const name of ["KEY", "EU_KEY"]) delete process.env[`CONDUCTOR_SECRET_${name}`];
  });
  const tokens = Object.entries(secrets).map(([scope, secret]) => `${scope}:${secret}:${scope}`);
  const { send } = await startGraphServer({ tokens, logger: { level: "silent" } });
  const as = async (who: keyof typeof secrets, method: string, path: string, body?: unknown) => {
    const headers = { authorization: `Bearer ${secrets[who]}`, "content-type": "application/json" };
    return send(method, `/api${path}`, { headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  };
  expect((await as("operator", "PUT", "/metadata/workflow", [{ name: "w", version: 1, tasks }])).status).toBe(200);
  const { text: run } = await as("operator", "POST", "/workflow", { name: "w", input });
  return { as, run };
}

it.each([
  ["${${workflow.input.path}}", { path: "workflow.secrets.KEY" }],
  ["${${workflow.input.path}}", { path: " workflow.secrets.KEY" }],
  ["${workflow.${workflow.input.path}}", { path: "secrets.KEY" }],
  ["${${workflow.input.path}.KEY}", { path: "workflow.secrets" }],
  ["before ${workf${workflow.input.path}} after", { path: "low.secrets.KEY" }],
])("data does not turn %s into a secret", async (written, input) => {
  const { as } = await production([{ name: "t", taskReferenceName: "t", type: "SIMPLE", inputParameters: { written } }], input);
  const polled = await as("worker", "GET", "/tasks/poll/t");
  expect(polled.status).toBe(200);
  expect(polled.text).not.toContain("hunter2");
});

it("a definition that uses a secret may let data choose which one", async () => {
  const inputParameters = { key: "${workflow.secrets.${workflow.input.region}_KEY}" };
  const { as } = await production([{ name: "t", taskReferenceName: "t", type: "SIMPLE", inputParameters }], { region: "EU" });
  expect((await as("worker", "GET", "/tasks/poll/t")).text).toContain("hunter2 EU_KEY");
});

const loot = (taskDefinition: object) => ({ name: "loot", taskReferenceName: "loot", type: "SIMPLE", taskDefinition });
const evil = (tasks: readonly object[]) => ({ name: "evil", version: 1, schemaVersion: 2, tasks });
const greedy = evil([loot({ name: "loot", runtimeMetadata: ["KEY"] })]);
const nested = { name: "s", taskReferenceName: "s", type: "SUB_WORKFLOW", subWorkflowParam: { name: "evil", workflowDefinition: greedy } };
const dynamic = [
  { name: "plan", taskReferenceName: "plan", type: "SIMPLE" },
  {
    name: "do",
    taskReferenceName: "do",
    type: "SUB_WORKFLOW",
    subWorkflowParam: { name: "x", workflowDefinition: "${plan.output.definition}" },
  },
];

it.each([
  ["by itself", greedy],
  ["deeper inside", evil([nested])],
])("a definition that a worker reports is handed no secrets %s", async (_, definition) => {
  const { as, run } = await production(dynamic, {});
  const { taskId } = JSON.parse((await as("worker", "GET", "/tasks/poll/plan")).text) as { taskId: string };
  const report = { taskId, workflowInstanceId: run, status: "COMPLETED", outputData: { definition } };
  expect((await as("worker", "POST", "/tasks", report)).status).toBe(200);
  expect((await as("worker", "GET", "/tasks/poll/batch/loot?count=1&timeout=0")).text).not.toContain("hunter2");
  const ended = JSON.parse((await as("operator", "GET", `/workflow/${run}`)).text) as { status: string; reasonForIncompletion: string };
  expect(ended.status).toBe("FAILED");
  expect(ended.reasonForIncompletion).toContain("runtimeMetadata");
});

it("a definition that a worker reports runs when it needs no secret", async () => {
  const { as, run } = await production(dynamic, {});
  const { taskId } = JSON.parse((await as("worker", "GET", "/tasks/poll/plan")).text) as { taskId: string };
  const definition = evil([loot({ name: "loot", runtimeMetadata: [] })]);
  await as("worker", "POST", "/tasks", { taskId, workflowInstanceId: run, status: "COMPLETED", outputData: { definition } });
  expect((await as("worker", "GET", "/tasks/poll/loot")).status).toBe(200);
});
