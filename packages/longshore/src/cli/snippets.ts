// What `longshore dev` can say about workers, one entry per protocol that the server speaks. The programs are run by a test as they
// are printed.

import { commandLane } from "../dialect/workflow-graph/compile.ts";
import { handlerLabelPrefix } from "../protocol/workflow-graph/wire.ts";

export interface Snippet {
  readonly language: string;
  /** What to save or where to paste it. */
  readonly how: string;
  readonly code: string;
}

export interface ProtocolHints {
  readonly protocol: string;
  readonly snippets: readonly Snippet[];
  /** Commands that give those workers something to do. */
  readonly tryIt: string;
  /** How to start a worker that could take from this lane. */
  workerFor(lane: { readonly name: string; readonly labels: readonly string[] }): string;
}

export function protocolHints(url: string): readonly ProtocolHints[] {
  return [
    {
      protocol: "workflow-graph",
      snippets: [
        { language: "TypeScript", how: "save as worker.mjs, then `node worker.mjs`", code: typescript(url) },
        { language: "Python", how: "paste into a shell", code: python(url) },
        { language: "curl", how: "one job by hand; the second line takes the lease_id that the first prints", code: curl(url) },
      ],
      tryIt: tryIt(url),
      workerFor: ({ name, labels }) => {
        const isHandler = (label: string) => label.startsWith(handlerLabelPrefix);
        const asked = labels.filter((label) => !isHandler(label));
        const flag = asked.length === 0 ? "" : ` --labels ${asked.join(",")}`;
        const handler = name === commandLane ? labels.find(isHandler)?.slice(handlerLabelPrefix.length) : name;
        if (handler === undefined) return `longshore work --shell${flag} --on ${url}`;
        return `longshore work FILE${flag} --on ${url}, where FILE exports a task named ${handler}`;
      },
    },
  ];
}

function tryIt(url: string): string {
  return `cat > hello.yml <<'EOF'
name: hello
on: push
jobs:
  hello: { run: echo hello from a worker }
EOF
npx longshore define hello.yml --on ${url}
npx longshore run hello --follow --on ${url}`;
}

function typescript(url: string): string {
  return `import { task, work } from "longshore";
import { workflowGraph } from "longshore/workflow-graph";

const greet = task("greet", async ({ name }) => ({ text: \`Hello, \${name}!\` }));

await work({ tasks: [greet], on: workflowGraph("${url}") });`;
}

/** Only the standard library, so that it runs wherever Python does. */
function python(url: string): string {
  return `python3 - <<'EOF'
import json, subprocess, urllib.request

def call(path, body):
    request = urllib.request.Request("${url}/api" + path, json.dumps(body).encode(), {"content-type": "application/json"})
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

function curl(url: string): string {
  return `curl -s ${url}/api/jobs/claim -H 'content-type: application/json' \\
  -d '{"worker_id":"me","labels":[],"lease_ttl_secs":600}'
curl -s ${url}/api/jobs/LEASE_ID/complete -H 'content-type: application/json' -d '{"outputs":{}}'`;
}
