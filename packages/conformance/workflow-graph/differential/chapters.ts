// Every request that both servers receive, chapter by chapter. Maps have one key each, because the reference writes the keys of a map in an
// order that changes from run to run.
import type { Chapter, Step } from "./script.ts";

const JSON_TYPE = "application/json";

/** Above the reference's limit for a body, 2 097 152 bytes. */
const TOO_LARGE = "x".repeat(2_097_153);

const get = (name: string, path: string, more: Partial<Step> = {}): Step => ({ name, method: "GET", path, ...more });
const bare = (name: string, path: string, more: Partial<Step> = {}): Step => ({ name, method: "POST", path, ...more });
const post = (name: string, path: string, body: unknown, more: Partial<Step> = {}): Step => ({
  name,
  method: "POST",
  path,
  type: JSON_TYPE,
  body: typeof body === "string" ? body : JSON.stringify(body),
  ...more,
});

const job = (id: string, more: Record<string, unknown> = {}): Record<string, unknown> => ({
  id,
  name: id,
  status: "queued",
  command: `echo ${id}`,
  depends_on: [],
  ...more,
});

/** Creates and starts a workflow of these jobs, kept as `{workflow}`. */
const started = (...jobs: unknown[]): Step[] => [
  post("create", "/api/workflows", { name: "n", trigger: "t", jobs }, { keep: { workflow: "id" } }),
  bare("run", "/api/workflows/{workflow}/run"),
];

const claim = (name: string, labels: string[] = [], more: Partial<Step> = {}): Step =>
  post(
    name,
    "/api/jobs/claim",
    { worker_id: "w1", labels, lease_ttl_secs: 30 },
    { until: '"lease"', keep: { lease: "lease.lease_id" }, ...more },
  );
const noClaim = (name: string, labels: string[] = []): Step =>
  post(name, "/api/jobs/claim", { worker_id: "w1", labels, lease_ttl_secs: 30 });
const complete = (name: string, outputs: Record<string, string> = {}): Step => post(name, "/api/jobs/{lease}/complete", { outputs });
const fail = (name: string, retryable: boolean): Step => post(name, "/api/jobs/{lease}/fail", { error: "no luck", retryable });
const status = (name: string, until?: string): Step => get(name, "/api/workflows/{workflow}/status", until === undefined ? {} : { until });
const chunk = (more: Record<string, unknown> = {}): Record<string, unknown> => ({
  workflow_id: "{workflow}",
  job_id: "a",
  sequence: 0,
  data: "a line\n",
  timestamp_ms: 1_700_000_000_000,
  stream: "stdout",
  ...more,
});
const logs = (name: string, lease: string, ...chunks: unknown[]): Step => post(name, `/api/jobs/${lease}/logs`, { chunks });

export const chapters: readonly Chapter[] = [
  {
    name: "registration",
    steps: [
      post("register", "/api/workers/register", { worker_id: "w1", labels: ["docker"] }),
      post("register again with other labels", "/api/workers/register", { worker_id: "w1", labels: ["linux", "linux"] }),
      get("list workers", "/api/workers"),
      post("unknown fields are ignored", "/api/workers/register", { worker_id: "w1", labels: [], colour: "red" }),
      bare("worker heartbeat", "/api/workers/w1/heartbeat"),
      bare("worker heartbeat of a stranger", "/api/workers/nobody/heartbeat"),
      post(
        "parameter in the content type",
        "/api/workers/register",
        { worker_id: "w1", labels: [] },
        { type: "application/json; charset=utf-8" },
      ),
      post("suffix content type", "/api/workers/register", { worker_id: "w1", labels: [] }, { type: "application/vnd.api+json" }),
      post("text content type", "/api/workers/register", { worker_id: "w1", labels: [] }, { type: "text/plain" }),
      { name: "no content type", method: "POST", path: "/api/workers/register", body: '{"worker_id":"w1","labels":[]}' },
      post("labels missing", "/api/workers/register", { worker_id: "w1" }),
      post("worker_id missing", "/api/workers/register", { labels: [] }),
      post("labels of numbers", "/api/workers/register", { worker_id: "w1", labels: [1] }),
      post("worker_id a number", "/api/workers/register", { worker_id: 1, labels: [] }),
      post("labels a string", "/api/workers/register", { worker_id: "w1", labels: "docker" }),
      post("body null", "/api/workers/register", "null"),
      post("body a string", "/api/workers/register", '"w1"'),
      post("body cut short", "/api/workers/register", '{"worker_id":'),
      post("body empty", "/api/workers/register", ""),
      post("body not JSON", "/api/workers/register", "worker_id=w1"),
      post("body with something behind it", "/api/workers/register", '{"worker_id":"w1","labels":[]} x'),
      post("body too large", "/api/workers/register", `{"worker_id":"w1","labels":["${TOO_LARGE}"]}`),
      get("wrong method", "/api/workers/register"),
      { name: "delete on the list", method: "DELETE", path: "/api/workers" },
      post("trailing slash", "/api/workers/register/", { worker_id: "w1", labels: [] }),
    ],
  },
  {
    name: "an empty queue",
    steps: [
      noClaim("claim"),
      post("claim without a term", "/api/jobs/claim", { worker_id: "w1", labels: [] }),
      post("claim with an unknown field", "/api/jobs/claim", { worker_id: "w1", labels: [], lease_ttl_secs: 30, colour: "red" }),
      post("term zero", "/api/jobs/claim", { worker_id: "w1", labels: [], lease_ttl_secs: 0 }),
      post("term negative", "/api/jobs/claim", { worker_id: "w1", labels: [], lease_ttl_secs: -1 }),
      post("term fractional", "/api/jobs/claim", { worker_id: "w1", labels: [], lease_ttl_secs: 1.5 }),
      post("term null", "/api/jobs/claim", { worker_id: "w1", labels: [], lease_ttl_secs: null }),
      post("term a string", "/api/jobs/claim", { worker_id: "w1", labels: [], lease_ttl_secs: "30" }),
      post("labels missing", "/api/jobs/claim", { worker_id: "w1" }),
      post("worker_id missing", "/api/jobs/claim", { labels: [] }),
      post("body cut short", "/api/jobs/claim", '{"worker_id"'),
      bare("no body", "/api/jobs/claim"),
      get("wrong method", "/api/jobs/claim"),
      bare("heartbeat of an unknown lease", "/api/jobs/no-such-lease/heartbeat"),
      post("complete of an unknown lease", "/api/jobs/no-such-lease/complete", { outputs: {} }),
      post("fail of an unknown lease", "/api/jobs/no-such-lease/fail", { error: "x", retryable: true }),
      get("cancelled of an unknown job", "/api/jobs/no-workflow/no-job/cancelled"),
      get("logs of an unknown job", "/api/workflows/no-workflow/jobs/no-job/logs"),
      get("status of an unknown workflow", "/api/workflows/no-workflow/status"),
      bare("run of an unknown workflow", "/api/workflows/no-workflow/run"),
      bare("cancel of an unknown workflow", "/api/workflows/no-workflow/cancel"),
      logs("logs of an unknown lease", "no-such-lease", chunk({ workflow_id: "no-workflow" })),
    ],
  },
  {
    name: "one job from claim to completion",
    steps: [
      ...started(job("a")),
      claim("claim"),
      status("running", '"running"'),
      get("not cancelled", "/api/jobs/{workflow}/a/cancelled"),
      noClaim("nothing left"),
      bare("heartbeat", "/api/jobs/{lease}/heartbeat"),
      { name: "heartbeat with a content type and no body", method: "POST", path: "/api/jobs/{lease}/heartbeat", type: JSON_TYPE },
      post("heartbeat with a body", "/api/jobs/{lease}/heartbeat", { anything: 1 }),
      get("heartbeat by GET", "/api/jobs/{lease}/heartbeat"),
      logs("logs", "{lease}", chunk(), chunk({ sequence: 1, data: "", stream: "stderr" })),
      logs("logs of nothing", "{lease}"),
      get("read logs", "/api/workflows/{workflow}/jobs/a/logs"),
      logs("stream of another name", "{lease}", chunk({ stream: "Stdout" })),
      logs("chunk without data", "{lease}", { workflow_id: "{workflow}", job_id: "a", sequence: 0, timestamp_ms: 1, stream: "stdout" }),
      logs("negative sequence", "{lease}", chunk({ sequence: -1 })),
      post("logs without chunks", "/api/jobs/{lease}/logs", {}),
      logs("logs too large", "{lease}", chunk({ data: TOO_LARGE })),
      bare("complete without a body", "/api/jobs/{lease}/complete"),
      post("complete with an empty body", "/api/jobs/{lease}/complete", ""),
      post("complete with a number", "/api/jobs/{lease}/complete", { outputs: { n: 1 } }),
      post("complete with null", "/api/jobs/{lease}/complete", { outputs: null }),
      post("complete too large", "/api/jobs/{lease}/complete", { outputs: { x: TOO_LARGE } }),
      post("complete", "/api/jobs/{lease}/complete", {}),
      complete("complete again"),
      fail("fail after complete", true),
      bare("heartbeat after complete", "/api/jobs/{lease}/heartbeat"),
      logs("logs after complete", "{lease}", chunk({ sequence: 2, data: "late\n" })),
      status("finished", '"success"'),
      get("not cancelled after success", "/api/jobs/{workflow}/a/cancelled"),
    ],
  },
  {
    name: "outputs reach direct dependents",
    steps: [
      ...started(job("a"), job("b", { depends_on: ["a"] }), job("c", { depends_on: ["b"] })),
      claim("claim a"),
      complete("complete a", { version: "1.2.3 ü" }),
      claim("claim b"),
      complete("complete b"),
      claim("claim c"),
      complete("complete c"),
      status("finished", '"queued"'),
    ],
  },
  {
    name: "failure",
    steps: [
      ...started(job("a"), job("b", { depends_on: ["a"] }), job("c", { depends_on: ["b"] }), job("free")),
      claim("claim"),
      post("fail without an error", "/api/jobs/{lease}/fail", { retryable: true }),
      post("fail with a word for retryable", "/api/jobs/{lease}/fail", { error: "x", retryable: "yes" }),
      post("fail without retryable", "/api/jobs/{lease}/fail", { error: "no luck" }),
      fail("fail again", true),
      complete("complete after fail"),
      status("skipped dependents", '"skipped"'),
      claim("the free branch goes on"),
      complete("complete the free branch"),
      status("finished", '"success"'),
    ],
  },
  {
    name: "retry of a root",
    steps: [
      ...started(job("a", { max_retries: 1 })),
      claim("first execution"),
      fail("fail", true),
      claim("second execution"),
      fail("fail permanently", true),
      noClaim("no third"),
      status("finished", '"failure"'),
    ],
  },
  {
    name: "no retry when the worker says so",
    steps: [
      ...started(job("a", { max_retries: 3 })),
      claim("claim"),
      fail("fail", false),
      noClaim("nothing left"),
      status("finished", '"failure"'),
    ],
  },
  {
    name: "labels of a root",
    steps: [
      ...started(job("gpu", { required_labels: ["gpu", "linux"] }), job("plain")),
      claim("without labels the second job is given", []),
      noClaim("one label is not enough", ["gpu"]),
      noClaim("case matters", ["GPU", "linux"]),
      claim("more labels than needed", ["linux", "arm", "gpu"]),
    ],
  },
  {
    name: "labels and retries of a dependent",
    steps: [
      ...started(job("a"), job("b", { depends_on: ["a"], required_labels: ["gpu"], max_retries: 2 })),
      claim("claim a"),
      complete("complete a"),
      claim("a worker without the label"),
    ],
  },
  {
    name: "cancel",
    steps: [
      ...started(job("a", { max_retries: 2 }), job("pending"), job("b", { depends_on: ["a"] })),
      claim("claim"),
      bare("cancel", "/api/workflows/{workflow}/cancel"),
      status("cancelled"),
      get("the held job is cancelled", "/api/jobs/{workflow}/a/cancelled"),
      noClaim("pending jobs are gone"),
      bare("heartbeat", "/api/jobs/{lease}/heartbeat"),
      fail("the worker reports what its signal did", true),
      status("after the report", '"queued"'),
      noClaim("it is not run again"),
      bare("cancel again", "/api/workflows/{workflow}/cancel"),
    ],
  },
  {
    name: "completion after cancel",
    steps: [
      ...started(job("a"), job("b", { depends_on: ["a"] })),
      claim("claim"),
      bare("cancel", "/api/workflows/{workflow}/cancel"),
      complete("complete"),
      status("after the report", '"success"'),
    ],
  },
  {
    name: "run after cancel",
    steps: [
      ...started(job("a")),
      claim("claim"),
      bare("cancel", "/api/workflows/{workflow}/cancel"),
      fail("report", false),
      bare("run again", "/api/workflows/{workflow}/run"),
      claim("claim again"),
      get("cancelled", "/api/jobs/{workflow}/a/cancelled"),
    ],
  },
  {
    name: "run twice",
    steps: [
      ...started(job("a")),
      bare("run again before the first claim", "/api/workflows/{workflow}/run"),
      claim("claim"),
      bare("run again while it runs", "/api/workflows/{workflow}/run"),
      noClaim("a second copy"),
    ],
  },
  {
    name: "creating workflows",
    steps: [
      post("every field", "/api/workflows", {
        name: "n",
        trigger: "on: push",
        jobs: [
          job("a", {
            required_labels: ["x"],
            max_retries: 3,
            metadata: { deep: { n: [1, 2.5, null, true] } },
            ports: [{ id: "p", label: "P", direction: "input" }],
            collapsed: true,
          }),
        ],
      }),
      post("no jobs", "/api/workflows", { name: "n", trigger: "t", jobs: [] }),
      post("trigger missing", "/api/workflows", { name: "n", jobs: [] }),
      post("job without a command", "/api/workflows", {
        name: "n",
        trigger: "t",
        jobs: [{ id: "a", name: "a", status: "queued", depends_on: [] }],
      }),
      post("status of another name", "/api/workflows", { name: "n", trigger: "t", jobs: [job("a", { status: "waiting" })] }),
      post("status in capitals", "/api/workflows", { name: "n", trigger: "t", jobs: [job("a", { status: "Queued" })] }),
      post("negative retries", "/api/workflows", { name: "n", trigger: "t", jobs: [job("a", { max_retries: -1 })] }),
      post("cycle", "/api/workflows", {
        name: "n",
        trigger: "t",
        jobs: [job("a", { depends_on: ["b"] }), job("b", { depends_on: ["a"] })],
      }),
      post("self-dependency", "/api/workflows", { name: "n", trigger: "t", jobs: [job("a", { depends_on: ["a"] })] }),
      post("unknown dependency", "/api/workflows", { name: "n", trigger: "t", jobs: [job("a", { depends_on: ["zz"] })] }),
      post("duplicate job id", "/api/workflows", { name: "n", trigger: "t", jobs: [job("a"), job("a")] }),
      bare("no body", "/api/workflows"),
      post("too large", "/api/workflows", { name: "n", trigger: "t", jobs: [job("a", { command: TOO_LARGE })] }),
      { name: "wrong method", method: "PUT", path: "/api/workflows" },
    ],
  },
  {
    name: "reading workflows",
    steps: [
      bare("sample", "/api/workflows/sample"),
      get("status of the sample", "/api/workflows/ci-1/status"),
      get("list", "/api/workflows"),
      get("limit", "/api/workflows?limit=1"),
      get("limit zero", "/api/workflows?limit=0"),
      get("limit above the cap", "/api/workflows?limit=5000"),
      get("limit a word", "/api/workflows?limit=abc"),
      get("limit negative", "/api/workflows?limit=-1"),
      get("offset past the end", "/api/workflows?offset=10"),
      get("filter by status", "/api/workflows?status=queued"),
      get("filter by a status that no job has", "/api/workflows?status=running"),
      get("filter by an unknown word", "/api/workflows?status=nonsense"),
      get("unknown parameter", "/api/workflows?colour=red"),
    ],
  },
  {
    name: "paths and methods",
    steps: [
      get("unknown path", "/api/nothing"),
      bare("unknown path by POST", "/api/nothing"),
      bare("status by POST", "/api/workflows/x/status"),
      get("run by GET", "/api/workflows/x/run"),
      bare("cancelled by POST", "/api/jobs/w/j/cancelled"),
      bare("worker list by POST", "/api/workers"),
      get("escaped id", "/api/workflows/a%20b%2Fc/status"),
      get("escaped cancelled", "/api/jobs/a%2Fb/c%20d/cancelled"),
      { name: "HEAD", method: "HEAD", path: "/api/workers" },
      {
        name: "preflight from a foreign page",
        method: "OPTIONS",
        path: "/api/jobs/claim",
        headers: { origin: "http://example.org", "access-control-request-method": "POST" },
      },
      get("read by a foreign page", "/api/workers", { headers: { origin: "http://example.org" } }),
    ],
  },
];
