// The attacker holds a worker token. Conductor's workers store definitions of their tasks when they start. A task definition can name secrets
// that its tasks receive, or have expressions in its default input. So a worker could once read every secret of the server.

import { expect, it, onTestFinished } from "vitest";
import { startGraphServer } from "../support/workflow-graph.ts";

const secrets = { worker: "worker-secret-0123456789", operator: "operator-secret-0123456789" };

async function production() {
  process.env.CONDUCTOR_SECRET_KEY = "hunter2";
  onTestFinished(() => {
    delete process.env.CONDUCTOR_SECRET_KEY;
  });
  const tokens = Object.entries(secrets).map(([scope, secret]) => `${scope}:${secret}:${scope}`);
  const { send } = await startGraphServer({ tokens, logger: { level: "silent" } });
  const as = async (who: keyof typeof secrets, method: string, path: string, body?: unknown) => {
    const headers = { authorization: `Bearer ${secrets[who]}`, "content-type": "application/json" };
    const { status, text } = await send(method, `/api${path}`, { headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    return { status, text };
  };
  const run = async () => {
    const workflow = { name: "w", version: 1, tasks: [{ name: "t", taskReferenceName: "t", type: "SIMPLE" }] };
    await as("operator", "PUT", "/metadata/workflow", [workflow]);
    expect((await as("operator", "POST", "/workflow", { name: "w" })).status).toBe(200);
    return (await as("worker", "GET", "/tasks/poll/t")).text;
  };
  return { as, run };
}

const greedy = [
  { name: "t", runtimeMetadata: ["KEY"] },
  { name: "t", inputTemplate: { key: "${workflow.secrets.KEY}" } },
  { name: "t", inputTemplate: { all: ["${workflow.input}"] } },
];

it.each(greedy)("a worker cannot get %j by a definition that it stores", async (definition) => {
  const { as, run } = await production();
  for (const [method, path, body] of [
    ["POST", "/metadata/taskdefs", [{ name: "harmless" }, definition]],
    ["PUT", "/metadata/taskdefs", definition],
    ["PUT", "/metadata/taskdefs/t", definition],
  ] as const) {
    expect([method, path, (await as("worker", method, path, body)).status]).toEqual([method, path, 403]);
  }
  expect((await as("worker", "GET", "/metadata/taskdefs/harmless")).status).toBe(404);
  expect(await run()).not.toContain("hunter2");
});

it("a worker can store other definitions, and can repeat a definition that an operator stored", async () => {
  const { as, run } = await production();
  expect((await as("worker", "POST", "/metadata/taskdefs", [{ name: "t", inputTemplate: { n: 1 }, retryCount: 1 }])).status).toBe(200);
  const asking = { name: "t", runtimeMetadata: ["KEY"] };
  expect((await as("operator", "PUT", "/metadata/taskdefs", asking)).status).toBe(200);
  expect((await as("worker", "PUT", "/metadata/taskdefs", { ...asking, retryCount: 5 })).status).toBe(200);
  expect((await as("worker", "PUT", "/metadata/taskdefs", { ...asking, runtimeMetadata: ["KEY", "OTHER"] })).status).toBe(403);
  expect(await run()).toContain("hunter2");
});
