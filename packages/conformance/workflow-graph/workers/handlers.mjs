// Handlers as a user writes them, for `longshore work handlers.mjs` and for program.mjs.
import { TerminalError, task } from "longshore";

let flakyCalls = 0;

export const tasks = [
  task("greet", ({ name }) => ({ text: `Hello, ${name}!`, letters: name.length })),
  task("report", ({ upstreamOutputs }, ctx) => ctx.log(upstreamOutputs)),
  task("flaky", (_input, ctx) => {
    flakyCalls += 1;
    ctx.log(`call ${flakyCalls}, attempt ${ctx.attempt}`);
    if (flakyCalls < 3) throw new Error("not yet");
  }),
  task("hopeless", () => {
    throw new TerminalError("this can never work");
  }),
  task("endless", (_input, ctx) => {
    ctx.log("begins");
    return new Promise((_resolve, reject) => {
      ctx.signal.addEventListener("abort", () => {
        console.log(`aborted: ${ctx.signal.reason.code}`);
        reject(ctx.signal.reason);
      });
    });
  }),
];
