// Some lanes belong to the server: it runs their tasks itself, calls a worker with them, or a shell runs them. The attacker holds a worker
// token and claims tasks by the names of those lanes, or may start runs and gives these names to tasks of another protocol.

import { describe, expect, it, onTestFinished } from "vitest";
import { task } from "../../src/core/task.ts";
import { defaultConfig } from "../../src/protocols/stepflow/server/config/default.ts";
import { makeRouter } from "../../src/protocols/stepflow/server/config/router.ts";
import { serve } from "../../src/server/index.ts";
import { reservedLanes } from "../../src/server/protocols.ts";
import { work } from "../../src/work.ts";
import { startGraphServer } from "../support/workflow-graph.ts";

const worker = "worker-secret-0123456789";
const kept = ["$command", "$other", "stepflow-builtin", "stepflow-items", "stepflow:default", "stepflow-http:p", "flowkit-fn"];

async function production() {
  const tokens = [`operator:operator-secret-0123456789:operator`, `worker:${worker}:worker`];
  const server = await serve({ ephemeral: true, port: 0, tokens, logger: { level: "silent" } });
  onTestFinished(() => server.close(0));
  const send = async (method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${worker}`, "content-type": "application/json" };
    const answer = await fetch(`${server.url}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    return { status: answer.status, text: await answer.text() };
  };
  return { send };
}

describe.each(kept)("the lane %s", (name) => {
  it("gives nothing to a worker that polls for it as a Conductor task type", async () => {
    const { send } = await production();
    for (const path of [`poll/${encodeURIComponent(name)}`, `poll/batch/${encodeURIComponent(name)}?count=5`]) {
      expect(await send("GET", `/api/tasks/${path}`)).toMatchObject({
        status: 400,
        text: expect.stringContaining("this name is reserved"),
      });
    }
  });

  it("is not reached by a Conductor task of this type", async () => {
    const s = await startGraphServer();
    const simple = { name, taskReferenceName: "a", type: "SIMPLE", inputParameters: {} };
    const definition = { name: "w", version: 1, tasks: [simple], ownerEmail: "a@example.com", schemaVersion: 2 };
    const { status, text: id } = await s.post("/api/workflow", { name: "w", version: 1, workflowDef: definition });
    expect(status).toBe(200);
    const run = JSON.parse((await s.get(`/api/workflow/${id}`)).text) as { status: string; reasonForIncompletion: string };
    expect(run).toMatchObject({ status: "FAILED", reasonForIncompletion: expect.stringContaining("this name is reserved") });
  });

  it("is not reached by a Stepflow component of this name, which the workers of a queue get", () => {
    const routed = makeRouter(defaultConfig(), reservedLanes).route(`/${name}`, null, () => null);
    expect(routed).toMatchObject({ lanes: [{ name: "stepflow:default" }], given: { component: `/${name}` } });
  });

  it("is not reached by a FlowKit node of this type", async () => {
    const s = await startGraphServer();
    const graph = { nodes: [{ node_id: "a", type: name, status: null }], edges: [] };
    expect((await s.post("/flowkit/v1/tasks", { graph })).status).toBe(400);
  });

  it("is not served by a worker in the server's process, which is refused at its start, with the name", async () => {
    const s = await startGraphServer();
    const start = async () => work({ tasks: [task(name, async () => null)], on: s.server, signals: false });
    await expect(start()).rejects.toMatchObject({ code: "LONGSHORE_BAD_CONFIG", message: expect.stringContaining(JSON.stringify(name)) });
  });

  it("is not reached by a task without a run", async () => {
    const s = await startGraphServer();
    await expect(s.server.call(name, null)).rejects.toThrow();
  });
});

it("a task for the workers of a Stepflow queue is given to no worker of another protocol", async () => {
  const s = await startGraphServer();
  const steps = [{ id: "a", component: "/python/greet", input: {} }];
  const flow = { schema: "https://stepflow.org/schemas/v1/flow.json", steps, output: { $step: "a" } };
  const { flowId } = JSON.parse((await s.post("/api/v1/flows", { flow })).text) as { flowId: string };
  expect((await s.post("/api/v1/runs", { flowId, input: [{}] })).status).toBeLessThan(300);
  expect((await s.get("/api/longshore/v1/queues")).text).toContain("stepflow:python");
  expect(await s.claim({ labels: ["handler:stepflow:python"] })).toBeNull();
  expect((await s.get("/api/tasks/poll/stepflow:python")).status).toBe(400);
});
