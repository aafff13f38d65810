// What `longshore dev` prints about workers of workflow-graph.

import { functionOfLane } from "../../core/turn.ts";
import { type HintOptions, type ProtocolHints, tokenFirst } from "../hints.ts";
import { commandLane } from "./dialect/compile.ts";
import { handlerLabelPrefix } from "./wire/shapes.ts";

export function hints({ url, asksToken }: HintOptions): ProtocolHints {
  const first = tokenFirst(asksToken);
  return {
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
    ownsLane: (name) => name === commandLane || functionOfLane(name) !== undefined,
    workerFor({ name, labels }) {
      const isHandler = (label: string) => label.startsWith(handlerLabelPrefix);
      const needed = labels.filter((label) => !isHandler(label));
      const flag = needed.length === 0 ? "" : ` --labels ${needed.join(",")}`;
      const code = functionOfLane(name);
      if (code !== undefined) return `npx longshore work FILE${flag} --on ${url}, where FILE exports the workflow ${code}`;
      const handler = name === commandLane ? labels.find(isHandler)?.slice(handlerLabelPrefix.length) : name;
      if (handler === undefined) return `npx longshore work --shell${flag} --on ${url}`;
      return `npx longshore work FILE${flag} --on ${url}, where FILE exports a task named ${handler}`;
    },
  };
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
