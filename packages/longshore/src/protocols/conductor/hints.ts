// What `longshore dev` prints about Conductor workers.

import { type HintOptions, type ProtocolHints, tokenFirst } from "../hints.ts";

export function hints({ url, asksToken }: HintOptions): ProtocolHints {
  return {
    protocol: "conductor",
    snippets: [
      {
        language: "TypeScript",
        how: `${tokenFirst(asksToken)}save as conductor-worker.mjs, then \`node conductor-worker.mjs\`; workers of Conductor's own SDKs need only CONDUCTOR_SERVER_URL=${url}/api`,
        code: conductorWorker(url, asksToken),
        tryIt: tryConductor(url, asksToken),
      },
    ],
    // Conductor workers have no labels.
    workerFor: ({ name, labels }) => (labels.length > 0 ? null : `a Conductor worker of ${name} with CONDUCTOR_SERVER_URL=${url}/api`),
  };
}

function conductorWorker(url: string, asksToken: boolean): string {
  const options = asksToken ? ', { keyId: "longshore", keySecret: process.env.LONGSHORE_TOKEN }' : "";
  return `import { task, work } from "longshore";
import { conductor } from "longshore/conductor";

const greet = task("greet", async ({ name }) => ({ text: \`Hello, \${name}!\` }));

await work({ tasks: [greet], on: conductor("${url}/api"${options}) });`;
}

function tryConductor(url: string, asksToken: boolean): string {
  const token = asksToken ? ' -H "x-authorization: $LONGSHORE_TOKEN"' : "";
  const input = '{"name": "Ada"}';
  return `curl -s '${url}/api/workflow/execute/hello/1'${token} -H 'content-type: application/json' -d '
{"workflowDef": {"name": "hello", "tasks": [{"name": "greet", "taskReferenceName": "greet", "inputParameters": ${input}}]}}'`;
}
