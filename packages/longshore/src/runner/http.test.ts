// `/metrics` and `/health` of a worker, read like a scraper and a probe do.

import { describe, expect, it } from "vitest";
import { deferred, until } from "../../test/support/until.ts";
import { TerminalError } from "../core/errors.ts";
import { task } from "../core/task.ts";
import { TestClock } from "../testing/clock.ts";
import { Loopback } from "../testing/loopback.ts";
import { type WorkOptions, work } from "../work.ts";

async function setup(options: Partial<WorkOptions> = {}) {
  const clock = new TestClock();
  const loop = new Loopback();
  const gate = deferred<string>();
  const tasks = [
    task("greet", ({ name }: { name: string }) => `Hello, ${name}!`),
    task("gated", () => gate.promise),
    task("odd", ({ final }: { final: boolean }) => {
      throw final ? new TerminalError("never") : new TypeError("odd");
    }),
  ];
  const worker = await work({ tasks, on: loop, slots: 3, signals: false, clock, logger: false, http: { port: 0 }, ...options });
  const get = (path: string, init?: RequestInit) => fetch(`${worker.httpUrl}${path}`, init);
  const metrics = async () => (await get("/metrics")).text();
  return { clock, loop, gate, worker, get, metrics, [Symbol.asyncDispose]: () => worker.stop({ force: true }) };
}

/** Every name that the text declares, with its type. */
function declared(text: string): Record<string, string> {
  return Object.fromEntries([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, kind]) => [name, kind]));
}

describe("GET /metrics of a worker", () => {
  it("[C-HND-09] is Prometheus text that declares the names of all metrics from the start", async () => {
    await using s = await setup();
    const answer = await s.get("/metrics");
    expect(answer.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(declared(await answer.text())).toEqual({
      active_workers: "gauge",
      external_payload_used_total: "counter",
      http_api_client_request_seconds: "histogram",
      task_execute_error_total: "counter",
      task_execute_time_seconds: "histogram",
      task_execution_queue_full_total: "counter",
      task_execution_started_total: "counter",
      task_paused_total: "counter",
      task_poll_error_total: "counter",
      task_poll_time_seconds: "histogram",
      task_poll_total: "counter",
      task_result_size_bytes: "histogram",
      task_update_error_total: "counter",
      task_update_failed_total: "counter",
      task_update_time_seconds: "histogram",
      thread_uncaught_exceptions_total: "counter",
      worker_events_dropped_total: "counter",
      worker_restart_total: "counter",
    });
  });

  it("[C-MET-03, C-MET-05, C-MET-09] counts executions, their duration in histogram buckets and the size of results", async () => {
    await using s = await setup();
    const run = s.loop.run("gated");
    await until(() => s.worker.status().running.length === 1);
    await s.clock.advance(30);
    s.gate.resolve("x".repeat(498));
    await run;
    const text = await s.metrics();
    expect(text).toContain('task_execution_started_total{taskType="gated"} 1\n');
    const buckets = [...text.matchAll(/^task_execute_time_seconds_bucket\{taskType="gated",status="SUCCESS",le="(.*)"\} (\d)$/gm)];
    expect(buckets.map(([, bound, count]) => `${bound}:${count}`).join(" ")).toBe(
      "0.001:0 0.005:0 0.01:0 0.025:0 0.05:1 0.1:1 0.25:1 0.5:1 1:1 2.5:1 5:1 10:1 +Inf:1",
    );
    expect(text).toContain('task_execute_time_seconds_sum{taskType="gated",status="SUCCESS"} 0.03\n');
    const sizes = [...text.matchAll(/^task_result_size_bytes_bucket\{taskType="gated",le="(.*)"\} (\d)$/gm)];
    expect(sizes.map(([, bound, count]) => `${bound}:${count}`).join(" ")).toBe(
      "100:0 1000:1 10000:1 100000:1 1000000:1 10000000:1 +Inf:1",
    );
    expect(text).toContain('task_result_size_bytes_sum{taskType="gated"} 500\n');
  });

  it("[C-MET-04, C-MET-16] counts failures by the class of the error and whether they may be retried", async () => {
    await using s = await setup();
    await s.loop.run("odd", { final: false });
    await s.loop.run("odd", { final: true });
    const text = await s.metrics();
    expect(text).toContain('task_execute_error_total{taskType="odd",exception="TypeError",retryable="true"} 1\n');
    expect(text).toContain('task_execute_error_total{taskType="odd",exception="TerminalError",retryable="false"} 1\n');
    expect(text).toContain('task_execute_time_seconds_count{taskType="odd",status="FAILURE"} 2\n');
  });

  it("[C-MET-01, C-MET-02, C-MET-10] counts each poll once, with its duration and result", async () => {
    await using s = await setup();
    const poll = { task: "greet", worker: undefined };
    s.loop.host.emit("pollStarted", { ...poll, count: 1 });
    s.loop.host.emit("pollCompleted", { ...poll, durationMs: 4, received: 0 });
    s.loop.host.emit("pollStarted", { ...poll, count: 1 });
    s.loop.host.emit("pollFailed", { ...poll, durationMs: 7, error: new RangeError("503") });
    s.loop.host.emit("paused", poll);
    s.loop.host.emit("slotsFull", poll);
    const text = await s.metrics();
    expect(text).toContain('task_poll_total{taskType="greet"} 2\n');
    expect(text).toContain('task_poll_time_seconds_sum{taskType="greet",status="SUCCESS"} 0.004\n');
    expect(text).toContain('task_poll_time_seconds_sum{taskType="greet",status="FAILURE"} 0.007\n');
    expect(text).toContain('task_poll_error_total{taskType="greet",exception="RangeError"} 1\n');
    expect(text).toContain('task_paused_total{taskType="greet"} 1\n');
    expect(text).toContain('task_execution_queue_full_total{taskType="greet"} 1\n');
  });

  it("[C-MET-06, C-MET-07, C-MET-11] counts each failed attempt of a report, the reports that never arrived, and their time", async () => {
    const loop = Object.assign(new Loopback(), { reportTries: { pausesMs: [] } });
    await using s = await setup({ on: loop });
    await loop.run("greet", { name: "Ada" });
    const report = () => Promise.reject(new SyntaxError("503"));
    await expect(loop.run("greet", { name: "Bob" }, { report })).rejects.toMatchObject({ code: "LONGSHORE_LEASE_LOST" });
    const text = await s.metrics();
    expect(text).toContain('task_update_error_total{taskType="greet",exception="SyntaxError"} 1\n');
    expect(text).toContain('task_update_failed_total{taskType="greet"} 1\n');
    expect(text).toContain('task_update_time_seconds_count{taskType="greet",status="SUCCESS"} 1\n');
    expect(text).toContain('task_update_time_seconds_count{taskType="greet",status="FAILURE"} 1\n');
  });

  it("[C-MET-12, C-MET-13] measures requests by their path template, and shows what runs now", async () => {
    await using s = await setup();
    s.loop.host.emit("requestEnded", { method: "GET", uri: "/tasks/poll/batch/{tasktype}", status: 200, durationMs: 12 });
    s.loop.host.emit("requestEnded", { method: "POST", uri: "/tasks", status: 0, durationMs: 3 });
    const run = s.loop.run("gated");
    await until(() => s.worker.status().running.length === 1);
    const text = await s.metrics();
    expect(text).toContain('http_api_client_request_seconds_sum{method="GET",uri="/tasks/poll/batch/{tasktype}",status="200"} 0.012\n');
    expect(text).toContain('http_api_client_request_seconds_count{method="POST",uri="/tasks",status="0"} 1\n');
    expect(text).toContain('active_workers{taskType="gated"} 1\n');
    expect(text).toContain('active_workers{taskType="greet"} 0\n');
    s.gate.resolve("");
    await run;
  });
});

describe("GET /health of a worker", () => {
  it("[C-HND-07, C-HND-08] returns 200 and UP with the state of each worker", async () => {
    await using s = await setup();
    s.loop.host.emit("pollStarted", { task: "greet", worker: undefined, count: 1 });
    await s.loop.run("odd", { final: false });
    const answer = await s.get("/health");
    expect(answer.status).toBe(200);
    const alive = { alive: true, pid: process.pid, exitCode: null, restarts: 0, inFlight: 0 };
    expect(await answer.json()).toEqual({
      status: "UP",
      workers: {
        greet: { worker: "greet", ...alive, lastPollAt: s.clock.now() },
        gated: { worker: "gated", ...alive, lastPollAt: s.clock.now() },
        odd: { worker: "odd", ...alive, lastPollAt: s.clock.now(), lastError: "odd" },
      },
    });
    expect(s.worker.isHealthy()).toBe(true);
  });

  it("is on loopback, accepts only GET, and ends with the worker", async () => {
    const s = await setup();
    expect(s.worker.httpUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect((await s.get("/")).status).toBe(404);
    expect((await s.get("/health", { method: "POST", body: "x" })).status).toBe(405);
    expect(await (await s.get("/health", { method: "HEAD" })).text()).toBe("");
    await s.worker.stop({ force: true });
    await expect(s.get("/health")).rejects.toThrow();
    expect(s.worker.isHealthy()).toBe(false);
  });

  it("the start fails when the port is in use, and the error names the port", async () => {
    await using s = await setup();
    const port = Number(new URL(s.worker.httpUrl as string).port);
    await expect(setup({ http: { port } })).rejects.toMatchObject({
      code: "LONGSHORE_BAD_CONFIG",
      message: expect.stringContaining(`:${port}`),
    });
  });
});
