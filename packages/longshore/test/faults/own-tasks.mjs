// The tasks of our own workers in fault tests: each execution leaves a line, and takes a while.
import { appendFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { task } from "longshore";
import { stepflowTask } from "longshore/stepflow";

const WORK_MS_MAX = 400;

export const work = task("work", async (_input, context) => {
  const { runId, stepId, attempt } = stepflowTask(context);
  appendFileSync(process.env.MARKS_FILE, `${runId} ${stepId} ${attempt}\n`);
  await pause(Math.random() * WORK_MS_MAX);
  return { token: `done at attempt ${attempt}` };
});
