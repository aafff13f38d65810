// What `longshore dev` prints about workers with our own library: steps and durable functions.

import { type HintOptions, type ProtocolHints, tokenFirst } from "../hints.ts";

export function hints({ url, asksToken }: HintOptions): ProtocolHints {
  return {
    protocol: "longshore",
    snippets: [
      {
        language: "TypeScript",
        how: `${tokenFirst(asksToken)}save as app.mjs, then \`node app.mjs\`; it brings a task and a durable function`,
        code: program(url, asksToken),
        tryIt: `npx longshore run welcome --input '{"name":"Ada"}' --follow --on ${url}`,
      },
    ],
    // Workers of these programs speak workflow-graph, whose hints know its lanes.
    workerFor: () => null,
  };
}

function program(url: string, asksToken: boolean): string {
  const options = asksToken ? ", { token: process.env.LONGSHORE_TOKEN }" : "";
  return `import { task, work, workflow } from "longshore";
import { connect } from "longshore/client";
import { workflowGraph } from "longshore/workflow-graph";

const greet = task("greet", async ({ name }) => ({ text: \`Hello, \${name}!\` }));

const welcome = workflow("welcome", async (w, { name }) => {
  const first = await w.step(greet, { name });
  await w.sleep("1s");
  const second = await w.step(greet, { name: "again" });
  return [first.text, second.text];
});

await connect("${url}"${options}).define(welcome);
await work({ tasks: [greet], workflows: [welcome], on: workflowGraph("${url}"${options}) });`;
}
