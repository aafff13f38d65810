// Workers that can be copied and pasted, one list per protocol that the server speaks. They are printed by `longshore dev` and run as
// they are by a test.

export interface Snippet {
  readonly language: string;
  /** What to save or where to paste it. */
  readonly how: string;
  readonly code: string;
}

export interface ProtocolSnippets {
  readonly protocol: string;
  readonly snippets: readonly Snippet[];
  /** A command that gives those workers something to do. */
  readonly tryIt: string;
}

export function workerSnippets(url: string): readonly ProtocolSnippets[] {
  return [
    {
      protocol: "workflow-graph",
      snippets: [
        { language: "TypeScript", how: "save as worker.mjs, then: node worker.mjs", code: typescript(url) },
        { language: "Python", how: "paste into a shell", code: python(url) },
        { language: "curl", how: "one job, by hand", code: curl(url) },
      ],
      tryIt: `longshore work --shell --on ${url}`,
    },
  ];
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
    claim = call("/jobs/claim", {"worker_id": "python", "labels": [], "lease_ttl_secs": 60, "wait_secs": 20})
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
  -d '{"worker_id":"me","labels":[],"lease_ttl_secs":60}'
curl -s ${url}/api/jobs/LEASE_ID/complete -H 'content-type: application/json' -d '{"outputs":{}}'`;
}
