// What `longshore dev` prints about workers of Stepflow.

import { type HintOptions, type ProtocolHints, tokenFirst } from "../hints.ts";
import { pluginLane, queueLane } from "./server/config/queues.ts";

const queueLanes = queueLane("");
/** Lanes of plugins that the server calls or mocks. When such a lane has no worker, the configuration has no such plugin. */
const pluginLanes = (["stepflow", "mock"] as const).map((type) => pluginLane({ name: "", type }));

export function hints({ url, asksToken }: HintOptions): ProtocolHints {
  return {
    protocol: "stepflow",
    snippets: [
      {
        language: "TypeScript",
        how: `${tokenFirst(asksToken)}save as stepflow-worker.mjs, then \`node stepflow-worker.mjs\`; workers of stepflow-py need only STEPFLOW_TASKS_URL=${addressOf(url)} and STEPFLOW_QUEUE_NAME=python`,
        code: stepflowWorker(url, asksToken),
        tryIt: tryStepflow(url),
      },
    ],
    ownsLane: (name) => [queueLanes, ...pluginLanes].some((prefix) => name.startsWith(prefix)),
    workerFor: ({ name }) =>
      name.startsWith(queueLanes)
        ? `a Stepflow worker with STEPFLOW_TASKS_URL=${addressOf(url)} and STEPFLOW_QUEUE_NAME=${name.slice(queueLanes.length)}`
        : null,
  };
}

/** The address as gRPC clients write it: without `http://`. */
function addressOf(url: string): string {
  return url.replace(/^http:\/\//, "");
}

function stepflowWorker(url: string, asksToken: boolean): string {
  const token = asksToken ? ", token: process.env.LONGSHORE_TOKEN" : "";
  return `import { task, work } from "longshore";
import { stepflowGrpc } from "longshore/stepflow";

const greet = task("greet", async ({ name }) => ({ text: \`Hello, \${name}!\` }));

await work({ tasks: [greet], on: stepflowGrpc("${addressOf(url)}", { queue: "python"${token} }) });`;
}

function tryStepflow(url: string): string {
  return `cat > hello-flow.yml <<'EOF'
name: hello-flow
description: Greets a person.
steps:
  - { id: greet, component: /python/greet, input: { name: { $input: name } } }
output: { $step: greet }
EOF
npx longshore define hello-flow.yml --on ${url} && npx longshore run hello-flow --input '{"name":"Ada"}' --follow --on ${url}`;
}
