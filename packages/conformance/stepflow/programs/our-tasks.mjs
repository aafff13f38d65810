// A file of tasks, as `longshore work` takes it.
import { task } from "longshore";

export const echo = task("echo", (input) => input);
export const die = task("die", async (_input, ctx) => {
  if (ctx.attempt === 1) process.kill(process.pid, "SIGKILL");
  return { attempt: ctx.attempt };
});
