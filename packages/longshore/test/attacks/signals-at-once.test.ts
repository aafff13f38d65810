// Clients of Conductor signal a run at the same time. Each signal is acknowledged with 200, so each must end a task that waits, while there
// is one. All of them found the same task, one ended it, and the others were lost.

import { expect, it } from "vitest";
import { startConductor } from "../support/conductor-rest.ts";
import { fork, operator } from "../support/conductor-world.ts";

const wait = (name: string) => operator("WAIT", name);
const names = ["a", "b", "c", "d"];
const shapes: [what: string, tasks: object[]][] = [
  [
    "beside each other",
    fork(
      "fork",
      names.map((name) => [wait(name)]),
      names,
    ),
  ],
  ["one after the other", names.map(wait)],
];

it.each(shapes)("signals that come together each end one of the tasks that wait %s", async (_what, tasks) => {
  const c = await startConductor();
  const run = await c.begin(tasks);
  const path = `/tasks/${run}/COMPLETED/signal`;
  await Promise.all(names.map((_, by) => c.ask("POST", by % 2 === 0 ? path : `${path}/sync?timeoutMillis=0`, { by })));
  const { status, tasks: records } = await c.run(run);
  expect(status).toBe("COMPLETED");
  const outputs = names.map((name) => records.find((each) => each.referenceTaskName === name)?.outputData);
  expect(new Set(outputs.map((output) => JSON.stringify(output))).size).toBe(names.length);
});
