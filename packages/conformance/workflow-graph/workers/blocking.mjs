// A Node worker that runs each command with a call that blocks. So its heartbeat timer cannot fire while a command runs, and the requested
// lease of 60 seconds must last without heartbeats. It ignores all statuses and never polls for cancellation.
import { execSync } from "node:child_process";
import { randomBytes } from "node:crypto";

const base = `${process.env.SERVER_URL ?? "http://localhost:3000"}/api`;
const worker_id = `blocking-node-${randomBytes(3).toString("hex")}`;
const labels = (process.env.WORKER_LABELS ?? "node").split(",");

const LEASE_SECONDS = 60;
const BEAT_MS = 10_000;
const POLL_MS = 2_000;
const PATIENCE_MS = 300_000;

// The content type is always JSON, also without a body.
const post = (path, body) =>
  fetch(base + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });

await post("/workers/register", { worker_id, labels });

for (;;) {
  const claim = await (await post("/jobs/claim", { worker_id, labels, lease_ttl_secs: LEASE_SECONDS })).json();
  if (!claim) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    continue;
  }
  const { workflow_id, job_id, command } = claim.job;
  const lease = `/jobs/${claim.lease.lease_id}`;
  const beat = setInterval(() => void post(`${lease}/heartbeat`), BEAT_MS);
  try {
    const data = execSync(command, { encoding: "utf8", timeout: PATIENCE_MS });
    const chunk = { workflow_id, job_id, sequence: 0, data, timestamp_ms: Date.now(), stream: "stdout" };
    await post(`${lease}/logs`, { chunks: [chunk] });
    await post(`${lease}/complete`, { outputs: {} });
  } catch (error) {
    await post(`${lease}/fail`, { error: error.message.slice(0, 4096), retryable: true });
  } finally {
    clearInterval(beat);
  }
}
