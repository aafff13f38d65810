// A worker as a user writes it: plain handlers, and the address of a Conductor server.
import { appendFileSync } from "node:fs";
import { TerminalError, task, work } from "longshore";
import { conductor } from "longshore/conductor";

const marks = process.env.MARKS_FILE;

const tasks = [
  task("greet", ({ input }, ctx) => {
    ctx.log(`greeting ${input.name}`);
    return { text: `Hello, ${input.name}!` };
  }),
  task("flaky", (_input, ctx) => {
    if (ctx.attempt < 3) throw new Error(`not yet, attempt ${ctx.attempt}`);
    return { attempt: ctx.attempt };
  }),
  task("failing", () => {
    throw new Error("it went wrong");
  }),
  task("hopeless", () => {
    throw new TerminalError("this can never work");
  }),
  task("deferred", (_input, ctx) => (ctx.deferrals === 0 ? ctx.defer("1s", { half: true }) : { calls: ctx.deferrals + 1 })),
  task("slow", async ({ input }) => {
    await new Promise((resolve) => setTimeout(resolve, input.seconds * 1000));
    return { slept: input.seconds };
  }),
  task("mark", async ({ input }) => {
    appendFileSync(marks, `${input.n}\n`);
    if (input.ms) await new Promise((resolve) => setTimeout(resolve, input.ms));
    return { n: input.n };
  }),
  task("endless", (_input, ctx) => {
    console.log("endless begins");
    return new Promise((_resolve, reject) => {
      ctx.signal.addEventListener("abort", () => {
        console.log(`endless aborted: ${ctx.signal.reason.code}`);
        reject(ctx.signal.reason);
      });
    });
  }),
];

const on = conductor(process.env.SERVER_URL, { cancelPoll: "500ms", outbox: process.env.OUTBOX, updateV2: process.env.UPDATE_V2 !== "no" });
await work({ tasks, on, slots: 20 });
console.log("ready");
