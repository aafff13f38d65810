// The two most frequent requests on node:http with arrays in memory, without store, leases and scheduler. This is the cost of Node's own
// HTTP. Our server reads such requests without node:http, so its own share may be lower. It has in addition the costs of durability and
// rules.
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";

interface Job {
  readonly id: string;
  status: string;
}

interface Workflow {
  readonly id: string;
  readonly jobs: Job[];
}

const workflows = new Map<string, Workflow>();
const ready: { readonly workflow: Workflow; readonly job: Job }[] = [];
const leases = new Map<string, Job>();
let head = 0;

function claim(workerId: string): unknown {
  const next = ready[head];
  if (!next) return null;
  head++;
  next.job.status = "running";
  const leaseId = randomUUID();
  leases.set(leaseId, next.job);
  const ids = { job_id: next.job.id, workflow_id: next.workflow.id };
  const job = { ...ids, command: "true", required_labels: [], retry_policy: { max_retries: 0, backoff: "None" }, attempt: 0 };
  const lease = { lease_id: leaseId, ...ids, worker_id: workerId, ttl_secs: 60, granted_at_ms: Date.now() };
  return { job: { ...job, upstream_outputs: {}, enqueued_at_ms: lease.granted_at_ms, delayed_until_ms: 0 }, lease };
}

function complete(leaseId: string): number {
  const job = leases.get(leaseId);
  if (!job) return 409;
  leases.delete(leaseId);
  job.status = "success";
  return 200;
}

function create(definition: { readonly jobs: readonly Job[] }): Workflow {
  const workflow = { id: randomUUID(), jobs: definition.jobs.map(({ id }) => ({ id, status: "queued" })) };
  workflows.set(workflow.id, workflow);
  return workflow;
}

function answer(path: string, body: string): readonly [status: number, answer?: unknown] {
  if (path === "/api/jobs/claim") return [200, claim((JSON.parse(body) as { worker_id: string }).worker_id)];
  const [, , , id = "", verb = ""] = path.split("/");
  if (verb === "complete") return [complete(id)];
  if (path === "/api/workflows") return [201, create(JSON.parse(body) as { jobs: Job[] })];
  const workflow = workflows.get(id);
  if (!workflow) return [404];
  if (verb === "status") return [200, workflow];
  for (const job of workflow.jobs) ready.push({ workflow, job });
  return [202];
}

function handle(request: IncomingMessage, response: ServerResponse): void {
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (chunk: string) => {
    body += chunk;
  });
  request.on("end", () => {
    const [status, value] = answer(request.url ?? "", body);
    if (value === undefined) response.writeHead(status, { "content-length": 0 }).end();
    else {
      const text = JSON.stringify(value);
      response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) }).end(text);
    }
  });
}

const server = createServer(handle);
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  process.stdout.write(`http://127.0.0.1:${typeof address === "object" ? address?.port : ""}\n`);
});
