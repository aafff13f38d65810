// A run of Stepflow is cancelled, and then, one after the other, the runs that its steps have started. Then the caller
// retries it. What was cancelled belongs to the earlier life, and its end must not count in the new one.

import { expect, it } from "vitest";
import type { TaskRow } from "../../src/engine/board/task.ts";
import { OrchestratorService } from "../../src/protocols/stepflow/wire/services.ts";
import { oneStep, type StepflowServer, startStepflow } from "../support/stepflow-server.ts";

const inner = oneStep("/inner", 1);

async function order(server: StepflowServer, runId: string, what: "cancel" | "retry"): Promise<void> {
  expect((await server.call("POST", `/runs/${runId}/${what}`)).status).toBe(200);
}

/** A worker starts a run for its task, and the task of that run is taken. */
async function startInner(server: StepflowServer, rootRunId: string, flowId: string): Promise<{ runId: string; task: TaskRow }> {
  const request = { runRequest: { flowId, input: [1] }, rootRunId, subflowKey: "the same" };
  const { runId } = await server.channel.unary(OrchestratorService.SubmitRun, request);
  return { runId, task: await server.claim("inner") };
}

const flows: { [component: string]: (inner: string) => ReturnType<typeof oneStep> } = {
  eval: (flowId) => oneStep("/builtin/eval", { flow_id: flowId, input: 1 }),
  map: () => oneStep("/builtin/map", { workflow: { $literal: inner }, items: [1] }),
  iterate: () => oneStep("/builtin/iterate", { flow: { $literal: inner }, initial_input: 1 }),
};

it.each(Object.entries(flows))(
  "a run with a step of %s that is cancelled and retried does the work of that step",
  async (_name, flowOf) => {
    const server = await startStepflow();
    const run = await server.submit(flowOf(await server.store(inner)), [0]);
    await server.claim("inner");
    await order(server, run, "cancel");
    await order(server, run, "retry");
    await server.complete(await server.claim("inner"), { result: "of the new life" });
    await server.ended(run);
    const { body } = await server.call("GET", `/runs/${run}/items`);
    expect(JSON.stringify(body)).toContain("of the new life");
  },
);

it("a worker that asks again in a retried run, with the same key, gets a new run", async () => {
  const server = await startStepflow();
  const flowId = await server.store(inner);
  const run = await server.submit(oneStep("/outer", 1), [0]);
  await server.claim("outer");
  const before = await startInner(server, run, flowId);
  await order(server, run, "cancel");
  await order(server, run, "retry");
  await server.claim("outer");
  const after = await startInner(server, run, flowId);
  expect(after.runId).not.toBe(before.runId);
});
