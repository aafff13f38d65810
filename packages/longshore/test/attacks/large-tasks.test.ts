// The attacker holds a worker token, fails a Conductor task with outputs of megabytes, and reads this task many times at once. Each row of
// megabytes must be read in a separate turn of the event loop. The attempts of the task may be in memory for only one caller at a time.

import { expect, it, vi } from "vitest";
import { LocalReader } from "../../src/engine/run/local-reader.ts";
import { startConductor } from "../support/conductor-rest.ts";
import { simple } from "../support/conductor-world.ts";
import { oneStep, startStepflow } from "../support/stepflow-server.ts";
import { countTurns } from "../support/turn-count.ts";
import { until } from "../support/until.ts";

const readers = 8;
const large = "x".repeat(3_000_000);

it("of many callers that read a task, one at a time reads its attempts", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "large", retryCount: 3, retryDelaySeconds: 0 });
  const run = await c.begin([simple("large")]);
  const { taskId } = await c.take("large");
  await c.ask("POST", "/tasks", { taskId, workflowInstanceId: run, status: "FAILED", outputData: { large } });
  const again = await c.take("large");
  await c.ask("POST", "/tasks", { taskId: again.taskId, workflowInstanceId: run, status: "IN_PROGRESS", outputData: { large } });
  const { attempts, task } = LocalReader.prototype;
  let looked = 0;
  let reading = 0;
  let most = 0;
  vi.spyOn(LocalReader.prototype, "task").mockImplementation(function (this: LocalReader, id) {
    looked++;
    return task.call(this, id);
  });
  vi.spyOn(LocalReader.prototype, "attempts").mockImplementation(async function (this: LocalReader, ...asked) {
    most = Math.max(most, ++reading);
    // Until all the other callers are here or wait in the queue.
    await until(() => most > 1 || looked >= readers);
    const found = await attempts.apply(this, asked);
    reading--;
    return found;
  });
  const shown = await Promise.all(Array.from({ length: readers }, () => c.ask("GET", `/tasks/${again.taskId}`)));
  expect(shown.filter((text) => text.includes(`"taskId":"${again.taskId}"`)).length).toBe(readers);
  expect(most).toBe(1);
});

it.each(["run", "task"] as const)("a %s of megabytes is read in a separate turn", async (what) => {
  const { engine, submit, claim } = await startStepflow();
  await submit(oneStep("/hold", { $input: "$" }), [large]);
  const { id, runId } = await claim("hold");
  const turns = countTurns();
  const read = async () => {
    const row = await (what === "run" ? engine.reader.run(runId as string) : engine.reader.task(id));
    turns.add();
    return row?.input.length ?? 0;
  };
  const sizes = await Promise.all(Array.from({ length: readers }, read));
  expect(Math.min(...sizes)).toBeGreaterThan(large.length);
  expect(turns.most).toBe(1);
});
