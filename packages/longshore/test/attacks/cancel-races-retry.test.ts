// A Stepflow run is cancelled, and then, one after the other, the runs that its steps have started. The caller immediately retries one of
// these runs. The cancelled work belongs to the earlier life: its end must not count in the new life. The rest of the cancellation must not
// end any work of the new life.

import { expect, it, vi } from "vitest";
import type { TaskRow } from "../../src/engine/board/task.ts";
import { ownRunId } from "../../src/protocols/stepflow/server/run-id.ts";
import { OrchestratorService } from "../../src/protocols/stepflow/wire/services.ts";
import { oneStep, type StepflowServer, startStepflow } from "../support/stepflow-server.ts";

const inner = oneStep("/inner", 1);

/** Calls `meanwhile` between the cancellation of this run and that of the runs that it has started. */
function afterCancel(server: StepflowServer, runId: string, meanwhile: () => Promise<void>): void {
  const { runs } = server.engine;
  const cancel = runs.cancel.bind(runs);
  vi.spyOn(runs, "cancel").mockImplementation(async (...order) => {
    const run = await cancel(...order);
    if (order[0] === ownRunId(runId)) await meanwhile();
    return run;
  });
}

/** Calls `meanwhile` once: when the runs to be cancelled are known, and none of them is cancelled yet. */
function afterSearch(server: StepflowServer, meanwhile: () => Promise<void>): void {
  const { reader } = server.engine;
  const search = reader.search.bind(reader);
  const spy = vi.spyOn(reader, "search").mockImplementation(async (query) => {
    spy.mockRestore();
    const found = await search(query);
    return {
      ...found,
      heads: (async function* () {
        yield* found.heads;
        await meanwhile();
      })(),
    };
  });
}

async function order(server: StepflowServer, runId: string, what: "cancel" | "retry"): Promise<void> {
  expect((await server.call("POST", `/runs/${runId}/${what}`)).status).toBe(200);
}

/** A worker starts a run for its task, and the task of that run is claimed. */
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

it("a worker that starts a run again in a retried run, with the same key, gets a new run", async () => {
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

it("a run that is retried during its cancellation keeps the runs of its new life", async () => {
  const server = await startStepflow();
  const flowId = await server.store(inner);
  const run = await server.submit(oneStep("/outer", 1), [0]);
  await server.claim("outer");
  await startInner(server, run, flowId);
  let task: TaskRow | undefined;
  afterCancel(server, run, async () => {
    await order(server, run, "retry");
    await server.claim("outer");
    ({ task } = await startInner(server, run, flowId));
  });
  await order(server, run, "cancel");
  await server.complete(task as TaskRow, "of the new life");
});

it("a run that is retried just before it would be cancelled together with another run continues", async () => {
  const server = await startStepflow();
  const run = await server.submit(oneStep("/outer", 1), [0]);
  await server.claim("outer");
  const { runId } = await startInner(server, run, await server.store(inner));
  let task: TaskRow | undefined;
  afterSearch(server, async () => {
    await order(server, runId, "cancel");
    await order(server, runId, "retry");
    task = await server.claim("inner");
  });
  await order(server, run, "cancel");
  await server.complete(task as TaskRow, "of the new life");
});

/** The step of a run with items stops them when it is notified of the cancellation: here after `release`. */
function slowToStop(server: StepflowServer): () => void {
  const { runs } = server.engine;
  const cancelFound = runs.cancelFound.bind(runs);
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  vi.spyOn(runs, "cancelFound").mockImplementation(async (...order) => {
    if (order.length === 1) await released;
    return cancelFound(...order);
  });
  return release;
}

async function openItems(server: StepflowServer, runId: string): Promise<number> {
  let open = 0;
  for await (const { state } of server.engine.reader.headsUnder(`${ownRunId(runId)}-`)) if (state === "running") open++;
  return open;
}

it("a run with items does not use a run that was cancelled with it as the result of an item", async () => {
  const server = await startStepflow();
  const run = await server.submit(oneStep("/builtin/eval", { flow_id: await server.store(inner), input: 1 }), [0, 0]);
  for (let at = 0; at < 2; at++) await server.claim("inner");
  const release = slowToStop(server);
  await order(server, run, "cancel");
  await expect.poll(() => openItems(server, run)).toBe(0);
  release();
  await order(server, run, "retry");
  for (let at = 0; at < 2; at++) await server.complete(await server.claim("inner"), { result: "of the new life" });
  await server.ended(run);
  const { body } = await server.call("GET", `/runs/${run}/items`);
  expect(JSON.stringify(body).match(/of the new life/g)).toHaveLength(2);
});
