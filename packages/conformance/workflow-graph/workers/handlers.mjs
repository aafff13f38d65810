// A worker of ours as a user writes one: a few handlers and the address of a workflow-graph server.
import { TerminalError, task, work } from "longshore";
import { workflowGraph } from "longshore/workflow-graph";

let flakyCalls = 0;

const tasks = [
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

const labels = process.env.WORKER_LABELS ? process.env.WORKER_LABELS.split(",") : [];
await work({ tasks, on: workflowGraph(process.env.SERVER_URL, { labels }) });
