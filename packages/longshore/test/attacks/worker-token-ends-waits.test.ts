// The attacker holds a worker token, and a run waits for a person's approval, for a time or for a child run. Only an operator may send
// signals. But the id of a waiting step is easily guessed, and also its lease, because it was never handed out. Conductor's API even finds
// the step by its name. In both ways the attacker could approve, skip the time, or replace the result of a child run, which was then
// cancelled.

import { expect, it, onTestFinished } from "vitest";
import { functionLane, type Turn } from "../../src/core/turn.ts";
import { graph } from "../../src/graph.ts";
import { serve } from "../../src/server/index.ts";

async function start() {
  const tokens = ["operator:operator-secret-1234567890", "worker:worker-secret-1234567890"];
  const server = await serve({ ephemeral: true, port: 0, tokens, logger: { level: "silent" } });
  onTestFinished(() => server.close(0));
  const as = (secret: string) => async (method: string, path: string, body?: unknown) => {
    const headers = { authorization: `Bearer ${secret}`, "x-authorization": secret, "content-type": "application/json" };
    const reply = await fetch(`${server.url}${path}`, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    const text = await reply.text();
    return { status: reply.status, body: text.startsWith("{") || text.startsWith("[") ? JSON.parse(text) : text };
  };
  return { operator: as("operator-secret-1234567890"), worker: as("worker-secret-1234567890") };
}

const api = "/api/longshore/v1";

it("a worker's token cannot end a waiting step of a durable function", async () => {
  const { operator, worker } = await start();
  for (const name of ["f", "child"]) await operator("POST", `${api}/definitions`, { source: { name, function: true } });
  const { id } = (await operator("POST", `${api}/runs`, { workflow: "f" })).body as { id: string };
  const labels = [`handler:${functionLane("f")}`];
  const claimed = (await worker("POST", "/api/jobs/claim", { worker_id: "w", labels, ttl_secs: 60, wait_secs: 20 })).body as {
    job: { command: string };
    lease: { lease_id: string };
  };
  expect((JSON.parse(claimed.job.command) as { input: Turn }).input.turn).toBe(1);
  const commands = [
    { node: 1, kind: "signal", name: "approve", after: 0 },
    { node: 2, kind: "sleep", name: "", after: 0, forMs: 86_400_000 },
    { node: 3, kind: "run", name: "child", after: 0 },
  ];
  const report = { output: { by: "w-1", commands } };
  expect((await worker("POST", `/api/jobs/${claimed.lease.lease_id}/complete`, report)).status).toBe(200);
  expect((await worker("POST", `${api}/runs/${id}/signals`, { name: "approve" })).status).toBe(403);
  const names = ["f", "approve", "sleep", "child"];
  for (const node of [1, 2, 3]) {
    for (const [verb, body] of [
      ["complete", { output: "mine" }],
      ["fail", { message: "mine" }],
      ["defer", { delay_ms: 1 }],
      ["heartbeat", undefined],
    ] as const) {
      const { status } = await worker("POST", `/api/jobs/${id}.${node}-0/${verb}`, body);
      expect([node, verb, status >= 400]).toEqual([node, verb, true]);
    }
    for (const status of ["COMPLETED", "FAILED", "CANCELED", "IN_PROGRESS"])
      await worker("POST", `/api/tasks/${id}/${names[node]}/${status}`, { x: 1 });
  }
  const { items } = (await operator("GET", `${api}/runs/${id}/tasks`)).body as { items: { state: string; output: unknown }[] };
  expect(items.slice(1).map(({ state, output }) => [state, output])).toEqual([
    ["awaiting", null],
    ["sleeping", null],
    ["awaiting", null],
  ]);
  expect((await operator("POST", `${api}/runs/${id}/signals`, { name: "approve", value: "yes" })).status).toBe(202);
  const after = (await operator("GET", `${api}/runs/${id}/tasks`)).body as { items: { state: string; output: unknown }[] };
  expect(after.items[1]).toMatchObject({ state: "done", output: "yes" });
});

it("a worker's token cannot end a waiting step of a graph, but Conductor's workers can still report on WAIT and HUMAN", async () => {
  const { operator, worker } = await start();
  const { source } = graph("g", (g) => ({ said: g.signal("approve") }));
  await operator("POST", `${api}/definitions`, { source });
  const { id } = (await operator("POST", `${api}/runs`, { workflow: "g" })).body as { id: string };
  await worker("POST", `/api/jobs/${id}.0-0/complete`, { output: "mine" });
  await worker("POST", `/api/tasks/${id}/approve/COMPLETED`, { x: 1 });
  expect((await operator("GET", `${api}/runs/${id}`)).body).toMatchObject({ state: "running" });

  const human = { name: "c", schemaVersion: 2, tasks: [{ name: "h", taskReferenceName: "h", type: "HUMAN" }] };
  await operator("POST", "/api/metadata/workflow", human);
  const run = (await operator("POST", "/api/workflow/c", {})).body as string;
  expect((await worker("POST", `/api/tasks/${run}/h/COMPLETED`, { ok: true })).status).toBe(200);
  expect((await operator("GET", `/api/workflow/${run}`)).body).toMatchObject({ status: "COMPLETED" });
});
