// A worker with one task. It works for any workflow-graph server: `longshore dev` is one.

import { task, work } from "longshore";
import { workflowGraph } from "longshore/workflow-graph";

const greet = task("greet", async ({ name }: { name: string }, ctx) => {
  ctx.log(`greeting ${name}`);
  return { text: `Hello, ${name}!` };
});

await work({ tasks: [greet], on: workflowGraph(process.env.LONGSHORE_URL ?? "http://127.0.0.1:4500") });
