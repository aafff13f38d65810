// One call of a handler leaves nothing for the next one, except a key that shows whether the work was done before.

import { expect, it } from "vitest";
import { setup } from "../../../../test/support/conductor-worker.ts";
import { deferred, until } from "../../../../test/support/until.ts";
import type { Context } from "../../../core/context.ts";
import { task } from "../../../core/task.ts";
import { conductorTask } from "./index.ts";

it("[C-ARCH-11] calls at the same time or one after the other share no context, output or logs", async () => {
  const bothRun = deferred<void>();
  let running = 0;
  const greet = task("greet", async ({ name }: { name: string }) => {
    const { taskId, addLog, setOutput } = conductorTask();
    if (name !== "Cid") setOutput({ [name]: true });
    if (++running === 2) bothRun.resolve();
    await bothRun.promise;
    if (name !== "Cid") addLog(`greeting ${name}`);
    return { taskId, after: conductorTask().taskId };
  });
  await using s = await setup({
    tasks: [greet],
    wire: { concurrency: 2 },
    before: (stub) => {
      for (const name of ["Ada", "Bob", "Cid"]) stub.enqueue("greet", { inputData: { name } });
    },
  });
  await until(() => s.stub.results.length === 3);
  const told = s.stub.results.map(({ taskId, outputData, logs }) => ({ taskId, outputData, logs: logs?.map(({ log }) => log) }));
  expect(told.toSorted((a, b) => a.taskId.localeCompare(b.taskId))).toEqual([
    { taskId: "task-1", outputData: { Ada: true, taskId: "task-1", after: "task-1" }, logs: ["greeting Ada"] },
    { taskId: "task-2", outputData: { Bob: true, taskId: "task-2", after: "task-2" }, logs: ["greeting Bob"] },
    { taskId: "task-3", outputData: { taskId: "task-3", after: "task-3" }, logs: undefined },
  ]);
});

it("[C-ARCH-11] a task that is handed out again or retried has the same key as the first time, so that the work is done once", async () => {
  const charged = new Map<string, number>();
  const charge = task("charge", ({ amount }: { amount: number }, ctx: Context) => {
    const receipt = charged.get(ctx.idempotencyKey) ?? charged.size + 1;
    charged.set(ctx.idempotencyKey, receipt);
    return { amount, receipt };
  });
  const same = { inputData: { amount: 5 }, workflowInstanceId: "wf", referenceTaskName: "pay" };
  await using s = await setup({
    tasks: [charge],
    before: (stub) => {
      stub.enqueue("charge", { ...same, taskId: "first" });
      stub.enqueue("charge", { ...same, taskId: "first" });
      stub.enqueue("charge", { ...same, taskId: "retry", retryCount: 1 });
      stub.enqueue("charge", { ...same, taskId: "another", workflowInstanceId: "wf-2" });
    },
  });
  await until(() => s.stub.results.length === 4);
  expect([...charged.keys()]).toEqual(["wf/pay", "wf-2/pay"]);
  expect(s.stub.results.map(({ taskId, outputData }) => [taskId, outputData])).toEqual([
    ["first", { amount: 5, receipt: 1 }],
    ["first", { amount: 5, receipt: 1 }],
    ["retry", { amount: 5, receipt: 1 }],
    ["another", { amount: 5, receipt: 2 }],
  ]);
  expect(s.stub.results[0]).toEqual(s.stub.results[1]);
});
