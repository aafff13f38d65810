// Literal requests and responses of the protocol, on which unchanged workers rely.

import { describe, expect, it } from "vitest";
import { job, startGraphServer } from "../../support/workflow-graph.ts";

describe("registration", () => {
  it("[G1] returns 200 with an empty body, and replaces the labels of a worker that registers again", async () => {
    const { post, workers } = await startGraphServer();
    const first = await post("/api/workers/register", { worker_id: "w1", labels: ["docker"] });
    expect(first).toMatchObject({ status: 200, text: "" });
    expect(first.headers["content-type"]).toBeUndefined();
    expect(first.headers["content-length"]).toBe("0");
    expect(first.headers["longshore-wait"]).toBe("30");
    expect((await post("/api/workers/register", { worker_id: "w1", labels: ["linux", "linux"] })).status).toBe(200);
    expect(await workers()).toEqual([
      expect.objectContaining({ worker_id: "w1", labels: ["linux", "linux"], status: "idle", current_job: null }),
    ]);
  });

  it("[G2] refuses a body without labels, a text that is not JSON, and one without a content type", async () => {
    const { post, send } = await startGraphServer();
    const shape = await post("/api/workers/register", { worker_id: "w1" });
    expect(shape.status).toBe(422);
    expect(shape.headers["content-type"]).toBe("text/plain; charset=utf-8");
    expect(shape.text).toBe("Failed to deserialize the JSON body into the target type: missing field `labels` at line 1 column 18");
    const broken = await send("POST", "/api/workers/register", { headers: { "content-type": "application/json" }, body: '{"worker_id":' });
    expect(broken).toMatchObject({
      status: 400,
      text: "Failed to parse the request body as JSON: worker_id: EOF while parsing a value at line 1 column 13",
    });
    const untyped = await send("POST", "/api/workers/register", { body: '{"worker_id":"w1","labels":[]}' });
    expect(untyped).toMatchObject({ status: 415, text: "Expected request with `Content-Type: application/json`" });
    for (const type of ["application/json; charset=utf-8", "application/vnd.api+json"]) {
      expect((await post("/api/workers/register", { worker_id: "w1", labels: [] }, { "content-type": type })).status).toBe(200);
    }
  });

  it("responds to a heartbeat of a worker with 200, and of an unknown worker with 404 and no body", async () => {
    const { post } = await startGraphServer();
    await post("/api/workers/register", { worker_id: "w 1/ü", labels: [] });
    expect(await post(`/api/workers/${encodeURIComponent("w 1/ü")}/heartbeat`)).toMatchObject({ status: 200, text: "" });
    expect(await post("/api/workers/nobody/heartbeat")).toMatchObject({ status: 404, text: "" });
  });
});

describe("claims", () => {
  it("[W-CLAIM-02, G3] gets the literal null when there is no job", async () => {
    const { post } = await startGraphServer();
    const answer = await post("/api/jobs/claim", { worker_id: "w1", labels: [], lease_ttl_secs: 30 });
    expect(answer).toMatchObject({ status: 200, text: "null" });
    expect(answer.headers["content-type"]).toBe("application/json");
    expect(answer.headers["longshore-wait"]).toBe("30");
  });

  it("[W-CLAIM-03, W-PY-01, G4] by a worker that never registered gets a job", async () => {
    const { start, claim } = await startGraphServer();
    await start(job("a"));
    expect(await claim({ worker: "stranger" })).toMatchObject({ job: { job_id: "a" }, lease: { worker_id: "stranger" } });
  });

  it("[W-CLAIM-01, G5] gets a lease of 30 seconds by default, and is refused when the term is not a number", async () => {
    const { start, post } = await startGraphServer();
    await start(job("a"));
    const answer = await post("/api/jobs/claim", { worker_id: "w1", labels: [] });
    expect(JSON.parse(answer.text).lease.ttl_secs).toBe(30);
    for (const term of [-1, 1.5, null]) {
      expect((await post("/api/jobs/claim", { worker_id: "w1", labels: [], lease_ttl_secs: term })).status).toBe(422);
    }
  });

  it("[W-CLAIM-04, W-LEASE-01, G6] gets all nine fields of a job and six of a lease", async () => {
    const { start, take, complete, clock } = await startGraphServer();
    const id = await start(job("a"), job("b", { depends_on: ["a"], command: 'echo "b"', required_labels: ["x"], max_retries: 2 }));
    expect(await complete((await take()).lease.lease_id, { v: "1" })).toBe(200);
    const { job: given, lease } = await take({ labels: ["x", "y"], ttl: 60 });
    expect(given).toEqual({
      ...{ job_id: "b", workflow_id: id, command: 'echo "b"', required_labels: ["x"], retry_policy: { max_retries: 2, backoff: "None" } },
      ...{ attempt: 0, upstream_outputs: { a: { v: "1" } }, enqueued_at_ms: clock.now(), delayed_until_ms: 0, run_id: expect.any(String) },
      kind: "shell",
    });
    expect(lease).toEqual({
      ...{ lease_id: expect.any(String), job_id: "b", workflow_id: id, worker_id: "w1", ttl_secs: 60, granted_at_ms: clock.now() },
      ...{ expires_at_ms: clock.now() + 60_000, heartbeat_secs: 10 },
    });
  });

  it("[W-GEN-02, G7] ignores fields that it does not know, on every path below /api", async () => {
    const { start, post, take } = await startGraphServer();
    const more = { colour: "red", nested: { deep: [1] } };
    expect((await post("/api/workers/register", { worker_id: "w1", labels: [], ...more })).status).toBe(200);
    const id = await start(job("a", more as object), job("b"));
    const first = JSON.parse((await post("/api/jobs/claim", { worker_id: "w1", labels: [], ...more })).text);
    const chunk = { workflow_id: id, job_id: "a", sequence: 0, data: "x", timestamp_ms: 1, stream: "stdout", ...more };
    expect((await post(`/api/jobs/${first.lease.lease_id}/logs`, { chunks: [chunk], ...more })).status).toBe(200);
    expect((await post(`/api/jobs/${first.lease.lease_id}/heartbeat`, more)).status).toBe(200);
    expect((await post(`/api/jobs/${first.lease.lease_id}/complete`, { outputs: {}, ...more })).status).toBe(200);
    const second = await take();
    expect((await post(`/api/jobs/${second.lease.lease_id}/fail`, { error: "x", retryable: false, ...more })).status).toBe(200);
  });
});

describe("leases and reports", () => {
  it("[W-LEASE-02, W-LEASE-04, G8] a heartbeat without body or content type renews the lease; an unknown lease gets 409 without a body", async () => {
    const { start, take, post, send } = await startGraphServer();
    await start(job("a"));
    const { lease } = await take();
    const path = `/api/jobs/${lease.lease_id}/heartbeat`;
    expect(await post(path)).toMatchObject({ status: 200, text: "" });
    expect((await send("POST", path, { headers: { "content-type": "application/json" } })).status).toBe(200);
    for (const unknown of ["no-such-lease", "58172922-074e-4d09-af40-39edbc5dc494", `${lease.lease_id}9`, "x-1"]) {
      const answer = await post(`/api/jobs/${unknown}/heartbeat`);
      expect(answer).toMatchObject({ status: 409, text: "" });
      expect(answer.headers["content-type"]).toBeUndefined();
    }
  });

  it("a heartbeat that accepts JSON gets the lease and the cancel", async () => {
    const { start, take, post, clock } = await startGraphServer();
    const id = await start(job("a"));
    const { lease } = await take({ ttl: 60 });
    await clock.advance(1_000);
    const accept = { accept: "application/json" };
    const before = await post(`/api/jobs/${lease.lease_id}/heartbeat`, undefined, accept);
    expect(before.headers["content-type"]).toBe("application/json");
    expect(JSON.parse(before.text)).toEqual({ cancelled: false, expires_at_ms: clock.now() + 60_000 });
    await post(`/api/workflows/${id}/cancel`);
    const after = await post(`/api/jobs/${lease.lease_id}/heartbeat`, undefined, accept);
    expect(JSON.parse(after.text)).toMatchObject({ cancelled: true });
  });

  it("[W-DONE-01, G9] an empty object means no outputs, and an output that is not a text is refused", async () => {
    const { start, take, post } = await startGraphServer();
    await start(job("a"), job("b"));
    const a = (await take()).lease.lease_id;
    expect(await post(`/api/jobs/${a}/complete`, { outputs: { n: 1 } })).toMatchObject({
      status: 422,
      text: "Failed to deserialize the JSON body into the target type: outputs.n: invalid type: integer `1`, expected a string at line 1 column 17",
    });
    expect(await post(`/api/jobs/${a}/complete`, {})).toMatchObject({ status: 200, text: "" });
    expect((await post(`/api/jobs/${(await take()).lease.lease_id}/complete`, { outputs: {} })).status).toBe(200);
  });

  it("[W-PY-08, G10] every second report gets 409 and changes nothing", async () => {
    const { start, take, complete, fail, heartbeat, states } = await startGraphServer();
    const id = await start(job("a"), job("b"), job("after", { depends_on: ["a", "b"] }));
    const a = (await take()).lease.lease_id;
    const b = (await take()).lease.lease_id;
    expect(await complete(a)).toBe(200);
    expect(await complete(a, { late: "x" })).toBe(409);
    expect(await fail(a, true)).toBe(409);
    expect(await heartbeat(a)).toBe(409);
    expect(await fail(b)).toBe(200);
    expect(await complete(b)).toBe(409);
    expect(await states(id)).toEqual({ a: "success", b: "failure", after: "skipped" });
  });

  it("a repeated report with an Idempotency-Key gets 200, but only for the same kind of report", async () => {
    const { start, take, post, job: jobOf } = await startGraphServer();
    const id = await start(job("a"), job("b", { max_retries: 1 }));
    const key = { "idempotency-key": "k1" };
    const a = (await take()).lease.lease_id;
    expect((await post(`/api/jobs/${a}/complete`, { outputs: {} }, key)).status).toBe(200);
    expect((await post(`/api/jobs/${a}/complete`, { outputs: {} }, key)).status).toBe(200);
    expect((await post(`/api/jobs/${a}/fail`, { error: "x" }, key)).status).toBe(409);
    const b = (await take()).lease.lease_id;
    for (let time = 0; time < 2; time++) expect((await post(`/api/jobs/${b}/fail`, { error: "x", retryable: true }, key)).status).toBe(200);
    expect(await jobOf(id, "b")).toMatchObject({ status: "queued", attempt: 1 });
  });

  it("a different report with the same Idempotency-Key is refused with the difference, and one with another key like any second report", async () => {
    const { start, take, post, job: jobOf } = await startGraphServer();
    const id = await start(job("a"), job("b", { max_retries: 5 }));
    const key = { "idempotency-key": "k1" };
    const a = (await take()).lease.lease_id;
    const complete = (outputs: object, headers: object) => post(`/api/jobs/${a}/complete`, { outputs }, { ...headers });
    expect((await complete({ v: "1" }, key)).status).toBe(200);
    expect(await complete({ v: "2" }, key)).toMatchObject({
      status: 409,
      text: expect.stringMatching(/^`outputs`: differs from the earlier report of this lease/),
    });
    expect(await complete({ v: "1" }, { "idempotency-key": "k2" })).toMatchObject({ status: 409, text: "" });
    expect((await complete({ v: "1" }, key)).status).toBe(200);

    const b = (await take()).lease.lease_id;
    const fail = (body: object, headers: object = key) => post(`/api/jobs/${b}/fail`, body, { ...headers });
    expect((await fail({ error: "x", retryable: true })).status).toBe(200);
    // In the next attempt, the report of the first one is still known.
    const next = (await take()).lease.lease_id;
    expect((await post(`/api/jobs/${next}/fail`, { error: "no key", retryable: true })).status).toBe(200);
    expect(await fail({ error: "x" })).toMatchObject({ status: 409, text: expect.stringMatching(/^`retryable`: /) });
    expect(await fail({ error: "y" })).toMatchObject({ status: 409, text: expect.stringMatching(/^`error` and `retryable`: /) });
    expect((await fail({ error: "x", retryable: true })).status).toBe(200);
    expect(await post(`/api/jobs/${next}/fail`, { error: "no key", retryable: true }, key)).toMatchObject({ status: 409, text: "" });
    expect(await jobOf(id, "b")).toMatchObject({ status: "queued", attempt: 2 });
  });

  it("[W-FAIL-01, W-FAIL-03, G11] a failure without `retryable` is final, and one without `error` is refused", async () => {
    const { start, take, post, job: jobOf } = await startGraphServer();
    const id = await start(job("a", { max_retries: 5 }));
    const { lease } = await take();
    expect((await post(`/api/jobs/${lease.lease_id}/fail`, { retryable: true })).status).toBe(422);
    expect(await post(`/api/jobs/${lease.lease_id}/fail`, { error: "exit code 1" })).toMatchObject({ status: 200, text: "" });
    expect(await jobOf(id, "a")).toMatchObject({ status: "failure", output: "exit code 1" });
  });

  it("[W-LOG-01, G12] logs get 200, an unknown stream gets 422 and a body above 2 MiB gets 413", async () => {
    const { start, take, post } = await startGraphServer();
    const id = await start(job("a"));
    const { lease } = await take();
    const chunk = { workflow_id: id, job_id: "a", sequence: 0, data: "line\n", timestamp_ms: 1, stream: "stdout" };
    const push = (...chunks: object[]) => post(`/api/jobs/${lease.lease_id}/logs`, { chunks });
    expect(await push(chunk, { ...chunk, sequence: 1, stream: "stderr" })).toMatchObject({ status: 200, text: "" });
    expect(await push({ ...chunk, stream: "Stdout" })).toMatchObject({
      status: 422,
      text: expect.stringContaining("chunks[0].stream: unknown variant `Stdout`, expected `stdout` or `stderr`"),
    });
    expect(await push({ ...chunk, data: "x".repeat(2_097_152) })).toMatchObject({
      status: 413,
      text: "Failed to buffer the request body: length limit exceeded",
    });
  });

  it("[W-CAN-02, G13] a cancel poll gets a plain boolean, false for unknown jobs", async () => {
    const { start, take, post, get } = await startGraphServer();
    const id = await start(job("a"));
    await take();
    const ask = () => get(`/api/jobs/${id}/a/cancelled`);
    expect(await ask()).toMatchObject({ status: 200, text: "false" });
    await post(`/api/workflows/${id}/cancel`);
    expect(await ask()).toMatchObject({ status: 200, text: "true" });
    expect((await ask()).headers["content-type"]).toBe("application/json");
    expect((await get(`/api/jobs/${id}/zz/cancelled`)).text).toBe("false");
    expect((await get("/api/jobs/a%2Fb/c%20d/cancelled")).text).toBe("false");
  });
});

describe("workflows", () => {
  it("[G14] returns a new workflow with all its fields, and responds to run and cancel with 202", async () => {
    const { post, get } = await startGraphServer();
    const drawn = { metadata: { icon: "gear" }, ports: [{ id: "p", label: "P", direction: "input" }], collapsed: true };
    const created = await post("/api/workflows", { name: "n", trigger: "on: push", jobs: [job("a", drawn as object)] });
    expect(created.status).toBe(201);
    const workflow = JSON.parse(created.text);
    expect(workflow).toEqual({
      ...{ id: expect.stringMatching(/^[0-9a-f]{8}-/), name: "n", trigger: "on: push" },
      jobs: [
        {
          ...{
            id: "a",
            name: "a",
            status: "queued",
            command: "echo a",
            duration_secs: null,
            started_at: null,
            depends_on: [],
            output: null,
          },
          ...{ required_labels: [], max_retries: 0, attempt: 0, metadata: { icon: "gear" }, children: null, collapsed: true },
          ports: [{ id: "p", label: "P", direction: "input", port_type: "", color: null }],
        },
      ],
    });
    expect((await get(`/api/workflows/${workflow.id}/status`)).text).toBe(created.text);
    expect(await post(`/api/workflows/${workflow.id}/run`)).toMatchObject({ status: 202, text: "" });
    expect(await post(`/api/workflows/${workflow.id}/cancel`)).toMatchObject({ status: 202, text: "" });
    expect(await get("/api/workflows/nothing/status")).toMatchObject({ status: 404, text: "" });
    expect(await post("/api/workflows/nothing/run")).toMatchObject({ status: 404, text: "" });
  });

  it("returns the sample of eight jobs under the id ci-1, for any number of requests", async () => {
    const { post, get } = await startGraphServer();
    const first = await post("/api/workflows/sample");
    expect(first.status).toBe(201);
    expect(JSON.parse(first.text)).toMatchObject({ id: "ci-1", name: "ci.yml", trigger: "on: push" });
    expect(JSON.parse(first.text).jobs).toHaveLength(8);
    expect((await post("/api/workflows/sample")).text).toBe(first.text);
    expect((await get("/api/workflows/ci-1/status")).text).toBe(first.text);
  });

  it("[G15] lists workflows in the order of their creation, by limit, offset and status", async () => {
    const { create, start, get, take, clock } = await startGraphServer();
    const ids: string[] = [];
    for (let at = 0; at < 5; at++) {
      ids.push(await create(job("a")));
      await clock.advance(1);
    }
    const running = await start(job("a"));
    await take();
    const list = async (query: string) => (JSON.parse((await get(`/api/workflows${query}`)).text) as { id: string }[]).map(({ id }) => id);
    expect(await list("")).toEqual([...ids, running]);
    expect(await list("?limit=2&offset=1")).toEqual(ids.slice(1, 3));
    expect(await list("?limit=0")).toEqual([]);
    expect(await list("?offset=10")).toEqual([]);
    expect(await list("?status=running")).toEqual([running]);
    expect(await list("?status=queued&limit=2&offset=3")).toEqual(ids.slice(3));
    expect(await list("?status=nonsense")).toEqual([]);
    expect(await get("/api/workflows?limit=abc")).toMatchObject({
      status: 400,
      text: "Failed to deserialize query string: limit: invalid digit found in string",
    });
  });

  it("[G15] returns 100 workflows by default, and never more than 1000", async () => {
    const { create, get } = await startGraphServer();
    // Not all at the same time: server and client share a process. While it is busy, a connection sends nothing, and is closed after ten
    // seconds.
    for (let made = 0; made < 1_010; made += 101) await Promise.all(Array.from({ length: 101 }, () => create(job("a"))));
    const count = async (query: string) => (JSON.parse((await get(`/api/workflows${query}`)).text) as unknown[]).length;
    expect(await count("")).toBe(100);
    expect(await count("?limit=5000")).toBe(1_000);
  });

  it.each([
    [
      "a cycle",
      [job("a", { depends_on: ["b"] }), job("b", { depends_on: ["a"] })],
      "jobs[0].id: These jobs wait for each other: 'a' -> 'b' -> 'a'",
    ],
    ["a job that depends on itself", [job("a", { depends_on: ["a"] })], "jobs[0].id: Job 'a' depends on itself"],
    ["an id twice", [job("a"), job("a")], "jobs[1].id: Two jobs have the id 'a'."],
    [
      "a dependency that is not there",
      [job("a", { depends_on: ["zz"] })],
      "jobs[0].depends_on[0]: Job 'a' depends on 'zz', which doesn't exist",
    ],
  ])("[G37] refuses %s with 422 and the place", async (_what, jobs, message) => {
    const { post } = await startGraphServer();
    const answer = await post("/api/workflows", { name: "n", trigger: "t", jobs });
    expect(answer.status).toBe(422);
    expect(answer.text).toContain(`Failed to deserialize the JSON body into the target type: ${message}`);
    expect(answer.text).toMatch(/ at line 1 column \d+$/);
  });
});

describe("paths, methods and origins", () => {
  it("an unknown path gets 404 and a wrong method 405, both without a body", async () => {
    const { get, send } = await startGraphServer();
    expect(await get("/api/jobs/x/nothing")).toMatchObject({ status: 404, text: "" });
    const wrong = await get("/api/jobs/claim");
    expect(wrong).toMatchObject({ status: 405, text: "" });
    expect(wrong.headers.allow).toBe("POST");
    expect((await send("POST", "/api/workers/register/", { body: "{}" })).status).toBe(404);
  });

  it("[G17] only a page of an allowed origin may call", async () => {
    const { send } = await startGraphServer({ origins: ["http://app.example"] });
    const preflight = (origin: string) =>
      send("OPTIONS", "/api/jobs/claim", {
        headers: { origin, "access-control-request-method": "POST", "access-control-request-headers": "content-type" },
      });
    const allowed = await preflight("http://app.example");
    expect(allowed.status).toBeLessThan(300);
    expect(allowed.headers).toMatchObject({ "access-control-allow-origin": "http://app.example", "access-control-allow-methods": "POST" });
    const foreign = await preflight("http://evil.example");
    expect(foreign.status).toBe(403);
    expect(foreign.headers["access-control-allow-origin"]).toBeUndefined();
  });

  it("every path requires a token of the right scope, and refuses in plain text", async () => {
    const { send } = await startGraphServer({ tokens: ["worker:worker-secret-0123456789", "read:reader-secret-0123456789"] });
    const as = (secret: string) => ({
      headers: { authorization: `Bearer ${secret}-secret-0123456789`, "content-type": "application/json" },
      body: '{"worker_id":"w","labels":[]}',
    });
    const open = await send("POST", "/api/jobs/claim", {
      headers: { "content-type": "application/json" },
      body: '{"worker_id":"w","labels":[]}',
    });
    expect(open.status).toBe(401);
    expect(open.headers["content-type"]).toBe("text/plain; charset=utf-8");
    expect((await send("POST", "/api/jobs/claim", as("worker"))).text).toBe("null");
    expect((await send("POST", "/api/jobs/claim", as("reader"))).status).toBe(403);
    expect((await send("POST", "/api/workflows/sample", as("worker"))).status).toBe(403);
    expect((await send("GET", "/api/workers", as("reader"))).status).toBe(200);
  });
});
