// The attacker holds a worker token, completes the tasks of a run with large outputs, and then fails the last task with a report of a few
// bytes. The output of the run depends on its newest step. So all steps were read with their outputs, in one transaction. With thirty
// outputs of 8 MB, every other request waited for half a second of processor time. The test counts characters that are read, not time.

import { expect, it, onTestFinished } from "vitest";
import { openEnginePort } from "../support/engine-port.ts";
import { temporaryFolder } from "../support/parts.ts";
import { countingRows } from "./counting-rows.ts";

const large = "x".repeat(200_000);
const many = 12;
const simple = (name: string, at: number) => ({ name, taskReferenceName: `${name}${at}`, type: "SIMPLE", inputParameters: {} });
const branches = [...Array.from({ length: many }, (_, at) => [simple("part", at)]), [simple("last", 0)]];
const fork = {
  ...{ name: "fork", schemaVersion: 2 },
  tasks: [
    { name: "f", taskReferenceName: "f", type: "FORK_JOIN", forkTasks: branches },
    { name: "j", taskReferenceName: "j", type: "JOIN", joinOn: branches.map(([task]) => task?.taskReferenceName) },
  ],
};

async function started() {
  const counted = countingRows();
  const server = await openEnginePort({ directory: temporaryFolder(), open: counted.open });
  onTestFinished(server.close);
  const send = async (method: string, path: string, body?: unknown) => {
    const answer = await server.send(method, path, body);
    expect(answer.status).toBeLessThan(205);
    return answer.text;
  };
  const report = async (type: string, status: string, outputData: object) => {
    const { taskId, workflowInstanceId } = JSON.parse(await send("GET", `/tasks/poll/${type}?workerid=w`));
    await send("POST", "/tasks", { taskId, workflowInstanceId, status, outputData });
  };
  await send("POST", "/metadata/workflow", fork);
  return { counted, send, report, run: await send("POST", "/workflow/fork", {}) };
}

it("a run that fails reads only the output of its newest step, and shows it", async () => {
  const { counted, send, report, run } = await started();
  for (let at = 0; at < many; at++) await report("part", "COMPLETED", { large });
  counted.chars = 0;
  await report("last", "FAILED_WITH_TERMINAL_ERROR", { why: "no" });
  expect(counted.chars).toBeLessThan(3 * large.length);
  const shown = JSON.parse(await send("GET", `/workflow/${run}?includeTasks=false`));
  expect([shown.status, shown.output]).toEqual(["FAILED", {}]);
  counted.chars = 0;
  await send("POST", `/workflow/${run}/retry`);
  expect(counted.chars).toBeLessThan(3 * large.length);
});

it("a run that is shown without its tasks reads none of their outputs", async () => {
  const { counted, send, report, run } = await started();
  for (let at = 0; at < many; at++) await report("part", "COMPLETED", { large });
  counted.chars = 0;
  expect(JSON.parse(await send("GET", `/workflow/${run}?includeTasks=false`))).toMatchObject({ status: "RUNNING", tasks: [] });
  expect(counted.chars).toBeLessThan(large.length);
  await report("last", "FAILED_WITH_TERMINAL_ERROR", { large });
  counted.chars = 0;
  const shown = JSON.parse(await send("GET", `/workflow/${run}?includeTasks=false`));
  expect(shown).toMatchObject({ status: "FAILED", failedReferenceTaskNames: ["last0"], failedTaskNames: ["last"] });
  expect(JSON.parse(await send("GET", "/workflow/search"))).toMatchObject({ results: [{ failedReferenceTaskNames: "last0" }] });
  expect(counted.chars).toBeLessThan(large.length);
});
