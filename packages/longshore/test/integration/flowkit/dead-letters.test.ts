// How an operator sees dead letters: in our own API and in a terminal.

import { expect, it, onTestFinished } from "vitest";
import { flowkit, streamTask } from "../../../src/protocols/flowkit/worker/index.ts";
import { serve } from "../../../src/server/server.ts";
import { work } from "../../../src/work.ts";
import { longshore } from "../../support/cli.ts";
import { untilElsewhere as until } from "../../support/until.ts";

const read = streamTask("read", {
  *iterBatches() {
    for (const page of [1, 2, 3]) yield { batch_uid: `b${page}`, payload: { page } };
  },
  processBatch({ payload: { page } }) {
    if (page === 2) throw new Error("page 2 is torn");
    return { pages: 1 };
  },
});

it("a batch that became a dead letter is shown with its step, in the API and by longshore runs", async () => {
  const server = await serve({ ephemeral: true, port: 0, logger: { write: () => {} } });
  onTestFinished(() => server.close());
  const worker = await work({ tasks: [read], on: flowkit(server.url as string) });
  onTestFinished(() => worker.stop());
  const retry_policy = { backoff_sec: 0, batch: { max: 1, dead_letter: true } };
  const id = (await server.flowkit?.createTask({ graph: { nodes: [{ node_id: "r", type: "read", retry_policy }] } })) as string;
  await server.result(id);
  const answer = await fetch(`${server.url}/api/longshore/v1/runs/${id}/steps`);
  const letter = { uid: "b2", reason: "unexpected_error", error: "page 2 is torn", tries: 2 };
  expect(await answer.json()).toMatchObject({ items: [{ id: "r", state: "done", deadLetters: { total: 1, first: [letter] } }] });

  const on = ["--on", server.url as string];
  const shown = await longshore(["runs", id, ...on]);
  expect(shown.stdout).toMatch(/\n✓ r +done .*\n {4}dead letter b2: unexpected_error after 2 tries: page 2 is torn\n/);
  const told = JSON.parse((await longshore(["runs", id, "--json", ...on])).stdout);
  expect(told).toMatchObject({ id, state: "succeeded", steps: [{ id: "r", deadLetters: { total: 1 } }] });
  const mistaken = await longshore(["runs", id, "--state", "failed", ...on]);
  expect([mistaken.code, mistaken.stderr]).toEqual([2, `longshore: --state chooses among runs; leave it out to see the run ${id}.\n`]);
});

it("a node that waits for its next attempt shows until when and why, and has no dead letter yet", async () => {
  const server = await serve({ ephemeral: true, port: 0, logger: { write: () => {} } });
  onTestFinished(() => server.close());
  const worker = await work({ tasks: [read], on: flowkit(server.url as string) });
  onTestFinished(() => worker.stop());
  const id = (await server.flowkit?.createTask({ graph: { nodes: [{ node_id: "r", type: "read" }] } })) as string;
  const step = await until(async () => {
    const answer = await fetch(`${server.url}/api/longshore/v1/runs/${id}/steps`);
    const { items } = (await answer.json()) as { items: { attempt: number; state: string }[] };
    return items[0]?.attempt === 2 && items[0];
  });
  const lastError = "unexpected_error: page 2 is torn";
  expect(step).toMatchObject({ state: "queued", lastError, waiting: { reason: "not-due" } });
  expect(step).not.toHaveProperty("deadLetters");
  const shown = await longshore(["runs", id, "--on", server.url as string]);
  expect(shown.stdout).toMatch(/\n↻ r +retries +\(try 2\) {2}it is not due for another \d+ s; unexpected_error: page/);
});

it("dead letters of all runs are in groups, and their steps are tried again", async () => {
  const server = await serve({ ephemeral: true, port: 0, logger: { write: () => {} } });
  onTestFinished(() => server.close());
  let isTorn = true;
  const torn = streamTask("read", {
    *iterBatches() {
      for (const page of [1, 2]) yield { batch_uid: `b${page}`, payload: { page } };
    },
    processBatch({ payload: { page } }) {
      if (page === 2 && isTorn) throw new Error(`page ${page} is torn`);
      return { pages: 1 };
    },
  });
  const worker = await work({ tasks: [torn], on: flowkit(server.url as string) });
  onTestFinished(() => worker.stop());
  const retry_policy = { backoff_sec: 0, batch: { max: 1, dead_letter: true } };
  const runs: string[] = [];
  for (let n = 0; n < 2; n++) {
    const id = (await server.flowkit?.createTask({ graph: { nodes: [{ node_id: "r", type: "read", retry_policy }] } })) as string;
    await server.result(id);
    runs.push(id);
  }
  const call = async (method: string, path: string, body?: object) =>
    (await fetch(`${server.url}/api/longshore/v1${path}`, {
      method,
      ...(body && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    }).then((answer) => answer.json())) as { items: object[]; groups: { steps: object[] }[]; id: string };
  const found = await call("GET", "/dead-letters");
  expect(found.items).toHaveLength(2);
  expect(found.items[0]).toMatchObject({ runId: runs[1], step: "r", uid: "b2", reason: "unexpected_error", runState: "succeeded" });
  expect(found.groups).toMatchObject([{ reason: "unexpected_error", count: 2, steps: [{ run: runs[1] }, { run: runs[0] }] }]);
  isTorn = false;
  const { id } = await call("POST", "/dead-letters/retry", { steps: found.groups[0]?.steps });
  expect(await call("GET", `/bulk/${id}?waitMs=20000`)).toMatchObject({ state: "done", done: 2, action: "rerun-from" });
  for (const run of runs) await server.result(run);
  expect((await call("GET", "/dead-letters")).items).toEqual([]);
});
