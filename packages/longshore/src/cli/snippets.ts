// What `longshore dev` prints about workers, one entry per protocol that the server speaks. The programs are run by a test as they
// are printed.

import { pluginLane, queueLane } from "../protocols/stepflow/server/config/queues.ts";
import { commandLane } from "../protocols/workflow-graph/dialect/compile.ts";
import { handlerLabelPrefix } from "../protocols/workflow-graph/wire/shapes.ts";

export interface Snippet {
  readonly language: string;
  /** What to save or where to paste it. */
  readonly how: string;
  readonly code: string;
  /** Gives it something to do: a job, and the commands that run it. */
  readonly tryIt: string;
}

export interface ProtocolHints {
  readonly protocol: string;
  readonly snippets: readonly Snippet[];
  /** How to start a worker that could take from this lane; null when none of this protocol can. */
  workerFor(lane: { readonly name: string; readonly labels: readonly string[] }): string | null;
}

const queueLanes = queueLane("");
/** Of workers that the server calls or answers for: a plugin is missing there, not a worker. */
const pluginLanes = (["stepflow", "mock"] as const).map((type) => pluginLane({ name: "", type }));
const isStepflows = (lane: string) => [queueLanes, ...pluginLanes].some((prefix) => lane.startsWith(prefix));

export interface HintOptions {
  /** The programs take their token from the environment: a secret is never printed. */
  readonly asksToken?: boolean;
  /** Where FlowKit's workers connect, when that is not the server itself. */
  readonly brokers?: string | undefined;
}

export function protocolHints(url: string, { asksToken = false, brokers }: HintOptions = {}): readonly ProtocolHints[] {
  const first = asksToken ? "with its token in LONGSHORE_TOKEN, " : "";
  return [
    {
      protocol: "workflow-graph",
      snippets: [
        {
          language: "TypeScript",
          how: `${first}save as worker.mjs, then \`node worker.mjs\``,
          code: typescript(url, asksToken),
          tryIt: tryIt(url, "greeting", `{ run: '@greet {"name":"Ada"}' }`),
        },
        {
          language: "Python",
          how: `${first}paste into a shell; it runs shell commands`,
          code: python(url, asksToken),
          tryIt: tryIt(url, "hello", "{ run: echo hello }"),
        },
      ],
      workerFor: ({ name, labels }) => {
        if (isStepflows(name)) return null;
        const isHandler = (label: string) => label.startsWith(handlerLabelPrefix);
        const asked = labels.filter((label) => !isHandler(label));
        const flag = asked.length === 0 ? "" : ` --labels ${asked.join(",")}`;
        const handler = name === commandLane ? labels.find(isHandler)?.slice(handlerLabelPrefix.length) : name;
        if (handler === undefined) return `npx longshore work --shell${flag} --on ${url}`;
        return `npx longshore work FILE${flag} --on ${url}, where FILE exports a task named ${handler}`;
      },
    },
    {
      protocol: "stepflow",
      snippets: [
        {
          language: "TypeScript",
          how: `${first}save as stepflow-worker.mjs, then \`node stepflow-worker.mjs\`; workers of stepflow-py need only STEPFLOW_TASKS_URL=${addressOf(url)} and STEPFLOW_QUEUE_NAME=python`,
          code: stepflowWorker(url, asksToken),
          tryIt: tryStepflow(url),
        },
      ],
      workerFor: ({ name }) =>
        name.startsWith(queueLanes)
          ? `a Stepflow worker with STEPFLOW_TASKS_URL=${addressOf(url)} and STEPFLOW_QUEUE_NAME=${name.slice(queueLanes.length)}`
          : null,
    },
    {
      protocol: "conductor",
      snippets: [
        {
          language: "TypeScript",
          how: `${first}save as conductor-worker.mjs, then \`node conductor-worker.mjs\`; workers of Conductor's own SDKs need only CONDUCTOR_SERVER_URL=${url}/api`,
          code: conductorWorker(url, asksToken),
          tryIt: tryConductor(url, asksToken),
        },
      ],
      // Its workers have no labels, and no word for a command.
      workerFor: ({ name, labels }) =>
        name === commandLane || isStepflows(name) || labels.length > 0
          ? null
          : `a Conductor worker of ${name} with CONDUCTOR_SERVER_URL=${url}/api`,
    },
    {
      protocol: "flowkit",
      snippets: [
        {
          language: "TypeScript",
          how: `${first}save as flowkit-worker.mjs, then \`node flowkit-worker.mjs\``,
          code: flowkitWorker(url, asksToken, brokers),
          tryIt: tryFlowkit(url, asksToken),
        },
      ],
      // Its workers are known by their role alone.
      workerFor: ({ name, labels }) => {
        if (name === commandLane || isStepflows(name) || labels.length > 0) return null;
        const kafka = brokers === undefined ? "" : `KAFKA_BOOTSTRAP_SERVERS=${brokers} and `;
        return `a FlowKit worker of the role ${name} with ${kafka}FLOWKIT_URL=${url}`;
      },
    },
  ];
}

/** As gRPC's clients write it. */
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

function tryIt(url: string, name: string, job: string): string {
  return `cat > ${name}.yml <<'EOF'
name: ${name}
on: push
jobs:
  ${name}: ${job}
EOF
npx longshore define ${name}.yml --on ${url} && npx longshore run ${name} --follow --on ${url}`;
}

function typescript(url: string, asksToken: boolean): string {
  const options = asksToken ? ", { token: process.env.LONGSHORE_TOKEN }" : "";
  return `import { task, work } from "longshore";
import { workflowGraph } from "longshore/workflow-graph";

const greet = task("greet", async ({ name }) => ({ text: \`Hello, \${name}!\` }));

await work({ tasks: [greet], on: workflowGraph("${url}"${options}) });`;
}

/** Only the standard library, so that it runs wherever Python does. */
function python(url: string, asksToken: boolean): string {
  const token = asksToken ? ', "authorization": "Bearer " + os.environ["LONGSHORE_TOKEN"]' : "";
  return `python3 - <<'EOF'
import json, ${asksToken ? "os, " : ""}subprocess, urllib.request

headers = {"content-type": "application/json"${token}}

def call(path, body):
    request = urllib.request.Request("${url}/api" + path, json.dumps(body).encode(), headers)
    return json.loads(urllib.request.urlopen(request).read() or "null")

while True:
    claim = call("/jobs/claim", {"worker_id": "python", "labels": [], "lease_ttl_secs": 600, "wait_secs": 20})
    if claim is None:
        continue
    lease = "/jobs/" + claim["lease"]["lease_id"]
    done = subprocess.run(claim["job"]["command"], shell=True)
    if done.returncode == 0:
        call(lease + "/complete", {"outputs": {}})
    else:
        call(lease + "/fail", {"error": "exit code %d" % done.returncode, "retryable": True})
EOF`;
}
