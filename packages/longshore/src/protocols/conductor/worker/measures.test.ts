// The metrics of a worker about payloads, pauses and full slots, with requests that cause them.

import { expect, it } from "vitest";
import { anyPoll, json } from "../../../../test/support/conductor-stub.ts";
import { setup } from "../../../../test/support/conductor-worker.ts";
import { deferred, until } from "../../../../test/support/until.ts";
import { task } from "../../../core/task.ts";

it("[C-EVT-13, C-MET-15] reports and counts inputs that were fetched from storage, and the length of results", async () => {
  const seen: unknown[] = [];
  const large = { text: "x".repeat(1_000) };
  await using s = await setup({
    tasks: [task("greet", ({ text }: { text: string }) => ({ length: text.length }))],
    work: {
      metrics: true,
      listeners: [
        {
          inputFetched: ({ task: name, worker, ids, attempt, bytes }) => seen.push(["fetched", { name, worker, ids, attempt, bytes }]),
          executionCompleted: ({ outputBytes }) => seen.push(["completed", outputBytes]),
        },
      ],
    },
    before: (stub) => {
      stub.misbehave(/^GET \/api\/tasks\/externalstoragelocation$/, json(200, { uri: `${stub.url}/kept/in.json`, path: "in.json" }));
      stub.misbehave(/^GET \/kept\/in\.json$/, json(200, large));
      stub.enqueue("greet", { externalInputPayloadStoragePath: "in.json" });
      stub.enqueue("greet", { inputData: { text: "with the task" } });
    },
  });
  await until(() => s.stub.results.length === 2 && seen.length === 3);
  const ids = { runId: "wf-1", stepId: "greet_ref", taskId: "task-1", grantId: "task-1/1" };
  expect(seen).toEqual([
    ["fetched", { name: "greet", worker: "w1", ids, attempt: 1, bytes: JSON.stringify(large).length }],
    ["completed", '{"length":1000}'.length],
    ["completed", '{"length":13}'.length],
  ]);
  const metrics = s.worker.metrics();
  expect(metrics).toContain('external_payload_used_total{entityName="greet",operation="READ",payloadType="TASK_INPUT"} 1\n');
  expect(metrics).toContain('task_result_size_bytes_count{taskType="greet"} 2\n');
});

it("[C-MET-14] counts tasks that arrived when every slot was taken, and pauses", async () => {
  const gate = deferred<null>();
  const extra = ["t1", "t2", "t3"].map((taskId) => ({ taskId, workflowInstanceId: "w" }));
  await using s = await setup({
    tasks: [task("greet", () => gate.promise)],
    work: { metrics: true },
    before: (stub) => {
      for (const { taskId } of extra) stub.tasks.set(taskId, { taskId, workflowInstanceId: "w", status: "IN_PROGRESS", pollCount: 1 });
      stub.misbehave(anyPoll, json(200, extra), 1);
    },
  });
  await until(() => s.worker.status().running.length === 1);
  s.transport.pause("greet");
  expect(s.worker.metrics()).toContain('task_execution_queue_full_total{taskType="greet"} 2\n');
  expect(s.worker.metrics()).toContain('task_paused_total{taskType="greet"} 1\n');
  gate.resolve(null);
  await until(() => s.stub.results.length === 3);
});
