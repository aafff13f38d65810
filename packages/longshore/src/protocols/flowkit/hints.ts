// What `longshore dev` prints about FlowKit workers.

import { type HintOptions, type ProtocolHints, tokenFirst } from "../hints.ts";

export function hints({ url, asksToken, flags }: HintOptions): ProtocolHints {
  // Where workers connect, when that is not the server itself.
  const brokers = typeof flags.flowkitBrokers === "string" ? flags.flowkitBrokers : undefined;
  return {
    protocol: "flowkit",
    snippets: [
      {
        language: "TypeScript",
        how: `${tokenFirst(asksToken)}save as flowkit-worker.mjs, then \`node flowkit-worker.mjs\``,
        code: flowkitWorker(url, asksToken, brokers),
        tryIt: tryFlowkit(url, asksToken),
      },
    ],
    // FlowKit workers are identified only by their role, not by labels.
    workerFor({ name, labels }) {
      if (labels.length > 0) return null;
      const kafka = brokers === undefined ? "" : `KAFKA_BOOTSTRAP_SERVERS=${brokers} and `;
      return `a FlowKit worker of the role ${name} with ${kafka}FLOWKIT_URL=${url}`;
    },
  };
}

function flowkitWorker(url: string, asksToken: boolean, brokers: string | undefined): string {
  const options = [
    ...(brokers === undefined ? [] : [`brokers: "${brokers}"`]),
    ...(asksToken ? ["token: process.env.LONGSHORE_TOKEN"] : []),
  ].join(", ");
  return `import { work } from "longshore";
import { flowkit, streamTask } from "longshore/flowkit";

const count = streamTask("count", {
  *iterBatches() {
    for (let at = 1; at <= 3; at++) yield { payload: { at } };
  },
  processBatch: ({ payload }) => payload,
});
const double = streamTask("double", async function* (batches) {
  for await (const { payload } of batches) yield { twice: payload.meta.at * 2 };
});

await work({ tasks: [count, double], on: flowkit("${url}"${options === "" ? "" : `, { ${options} }`}) });`;
}

function tryFlowkit(url: string, asksToken: boolean): string {
  const token = asksToken ? ' -H "authorization: Bearer $LONGSHORE_TOKEN"' : "";
  const input = '{"input_adapter": "pull.from_artifacts", "input_args": {"from_node": "count"}}';
  return `task=$(curl -s '${url}/flowkit/v1/tasks'${token} -H 'content-type: application/json' -d '{"graph": {"nodes": [
  {"node_id": "count", "type": "count"},
  {"node_id": "double", "type": "double", "depends_on": ["count"], "io": {"start_when": "first_batch", "input_inline": ${input}}}
]}}' | cut -d '"' -f 4)
curl -s "${url}/flowkit/v1/tasks/$task/artifacts?node=double"${token}`;
}
