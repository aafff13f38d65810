// A file of tasks for `longshore work`.
import { task } from "longshore";

export const echo = task("echo", (input) => input);
export const die = task("die", async (_input, ctx) => {
  if (ctx.attempt === 1) process.kill(process.pid, "SIGKILL");
  return { attempt: ctx.attempt };
});
