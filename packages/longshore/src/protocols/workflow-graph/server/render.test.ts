import { describe, expect, it } from "vitest";
import { newTask } from "../../../engine/board/new-task.ts";
import type { TaskRow, TaskState } from "../../../engine/board/task.ts";
import type { Definition } from "../../../engine/run/dialect.ts";
import { makePlan } from "../../../engine/run/make-plan.ts";
import type { Run } from "../../../engine/run/run.ts";
import { workflowGraphDialect } from "../dialect/compile.ts";
import { encodeSource, type GraphJob, plainJob } from "../dialect/source.ts";
import { attemptOf, lateLogMs } from "./push-logs.ts";
import { leaseIdOf, parseLeaseId, renderClaim, renderWorkflow } from "./render.ts";
import { loosePart, viewOf } from "./view.ts";

const now = 1_794_700_000_000;

function viewOfJobs(...jobs: GraphJob[]) {
  const source = encodeSource({ name: "CI", trigger: "on: push", jobs });
  const definition: Definition = { id: "d", name: "ci", version: 1, dialect: "workflow-graph", source, createdAt: now };
  return viewOf(definition, workflowGraphDialect.compile(source));
}

function task(more: Partial<TaskRow> = {}): TaskRow {
  const fresh = newTask(
    { id: "RUN.0", runId: "RUN", node: 0, step: "a", lanes: [], input: '{"command":"echo a","upstream":{}}', policy: null },
    now,
    { name: "$command", labels: [] },
  );
  return { ...fresh, ...more };
}

function run(more: Partial<Run> = {}): Run {
  const none = { output: null, error: null, endedAt: null, endBy: null, parentTaskId: null };
  return {
    id: "RUN",
    workflow: "ci",
    definitionId: "d",
    state: "running",
    input: "{}",
    createdAt: now,
    left: 1,
    failed: 0,
    alias: "ci",
    ...none,
    ...more,
  } as Run;
}

describe("the response to a claim", () => {
  it("[G6] has every field of the protocol, with integers and texts, and then our own fields", () => {
    const job: GraphJob = {
      ...plainJob("b", 'echo "b"'),
      required_labels: ["linux"],
      max_retries: 2,
      backoff: { Fixed: { delay_secs: 5 } },
      timeout_secs: 90,
    };
    const [part] = viewOfJobs(job).parts;
    const held = task({
      ...{
        id: "RUN.7",
        state: "held",
        attempt: 1,
        grant: 3,
        holder: "w1",
        queuedAt: now,
        dueAt: now + 5_000,
        claimedAt: now + 6_000,
        holdUntil: now + 36_000,
      },
      input: '{"command":"echo \\"b\\"","upstream":{"a":{"v":"1"},"z":{}}}',
    });
    const text = renderClaim(held, { part: part!, workflowId: '"ci"', runId: '"RUN"', workerId: '"w1"', ttlSecs: 30 });
    expect(JSON.parse(text)).toEqual({
      job: {
        ...{ job_id: "b", workflow_id: "ci", command: 'echo "b"', required_labels: ["linux"] },
        retry_policy: { max_retries: 2, backoff: { Fixed: { delay_secs: 5 } } },
        ...{ attempt: 1, upstream_outputs: { a: { v: "1" }, z: {} }, enqueued_at_ms: now, delayed_until_ms: now + 5_000 },
        ...{ run_id: "RUN", kind: "shell", timeout_secs: 90 },
      },
      lease: {
        ...{ lease_id: "RUN.7-3", job_id: "b", workflow_id: "ci", worker_id: "w1", ttl_secs: 30, granted_at_ms: now + 6_000 },
        ...{ expires_at_ms: now + 36_000, heartbeat_secs: 10 },
      },
    });
  });

  it("has delayed_until_ms 0 for a job without a delay", () => {
    const [part] = viewOfJobs(plainJob("a", "echo a")).parts;
    expect(renderClaim(task(), { part: part!, workflowId: '"ci"', runId: '"RUN"', workerId: '"w"', ttlSecs: 2 })).toContain(
      '"delayed_until_ms":0',
    );
  });

  it("shows a handler's step as a command that names the handler", () => {
    const greet = task({ lane: { name: "greet", labels: [] }, input: '{"name":"Ada"}', step: "hello" });
    const text = renderClaim(greet, { part: loosePart("hello", []), workflowId: '"RUN"', runId: "null", workerId: '"w"', ttlSecs: 30 });
    const { job } = JSON.parse(text);
    expect(job).toMatchObject({ job_id: "hello", upstream_outputs: {}, run_id: null, kind: "handler" });
    expect(JSON.parse(job.command)).toEqual({ handler: "greet", input: { name: "Ada" } });
  });

  it("has the upstream outputs also when the job's input has another order of keys", () => {
    const [part] = viewOfJobs(plainJob("a", "echo a")).parts;
    const odd = task({ input: '{"upstream":{"x":{"k":"v"}},"command":"echo a"}' });
    expect(renderClaim(odd, { part: part!, workflowId: '"ci"', runId: '"RUN"', workerId: '"w"', ttlSecs: 30 })).toContain(
      '"upstream_outputs":{"x":{"k":"v"}}',
    );
  });
});

describe("lease ids", () => {
  it("name the task and the grant", () => {
    const held = task({ id: "01JD0000000000000000000000.12", grant: 41 });
    expect(leaseIdOf(held)).toBe("01JD0000000000000000000000.12-41");
    expect(parseLeaseId(leaseIdOf(held))).toEqual({ taskId: held.id, grant: 41 });
  });

  it.each(["", "no-such-lease", "-1", "a-", "a-1x", "a--", `a-${"9".repeat(40)}`, "58172922-074e-4d09-af40-39edbc5dc494", "plain"])(
    "are not read from %j",
    (text) => {
      expect(parseLeaseId(text)).toBeUndefined();
    },
  );
});

describe("the state of a workflow", () => {
  const view = viewOfJobs(plainJob("a", "echo a"), { ...plainJob("b", "echo b"), depends_on: ["a"] });
  const jobs = (records: TaskRow[], of?: Run) => renderWorkflow("ci", view, of, records).jobs;

  it.each<[TaskState, string]>([
    ["queued", "queued"],
    ["offered", "running"],
    ["held", "running"],
    ["cancelling", "cancelled"],
    ["done", "success"],
    ["failed", "failure"],
    ["cancelled", "cancelled"],
    ["skipped", "skipped"],
    ["forgotten", "queued"],
  ])("calls a task that is %s %s", (state, word) => {
    expect(jobs([task({ state })], run())[0]?.status).toBe(word);
  });

  it("[G33] shows attempt, start, duration and the error of a final failure", () => {
    const failed = task({ state: "failed", attempt: 2, startedAt: now, endedAt: now + 2_900, error: "no luck" });
    expect(jobs([failed], run())[0]).toMatchObject({ status: "failure", attempt: 2, started_at: now, duration_secs: 2, output: "no luck" });
    const again = task({ state: "queued", attempt: 1, startedAt: null, error: null });
    expect(jobs([again], run())[0]).toMatchObject({ status: "queued", attempt: 1, started_at: null, duration_secs: null, output: null });
  });

  it("shows no duration and no output of a cancelled job", () => {
    const cancelled = task({ state: "cancelled", startedAt: now, endedAt: now + 5_000, error: "killed" });
    expect(jobs([cancelled], run({ state: "cancelled" }))[0]).toMatchObject({
      status: "cancelled",
      started_at: now,
      duration_secs: null,
      output: null,
    });
  });

  it("shows a job without a record as queued, or as cancelled after its run was stopped", () => {
    expect(jobs([]).map((job) => job.status)).toEqual(["queued", "queued"]);
    expect(jobs([], run()).map((job) => job.status)).toEqual(["queued", "queued"]);
    expect(jobs([], run({ state: "cancelled" })).map((job) => job.status)).toEqual(["cancelled", "cancelled"]);
  });

  it("shows a workflow of another dialect by its plan", () => {
    const node = {
      kind: "task" as const,
      id: "hello",
      input: null,
      after: [],
      waitsFor: "done" as const,
      timeouts: { endMs: 1_500 },
      lanes: [{ name: "greet", labels: ["eu"] }],
      priority: 0,
      limits: [],
    };
    const retry = { failures: 3, lost: 2, backoff: { kind: "exponential" as const, delayMs: 1_000, maxMs: 8_000 } };
    const plan = makePlan({ dialect: "code", nodes: [{ ...node, retry }], output: null });
    const definition: Definition = { id: "d", name: "greeting", version: 1, dialect: "code", source: "{}", createdAt: now };
    const { jobs } = renderWorkflow("greeting", viewOf(definition, plan), undefined, []);
    expect(jobs[0]).toMatchObject({
      id: "hello",
      command: "@greet",
      required_labels: ["eu"],
      max_retries: 3,
      timeout_secs: 2,
      backoff: { Exponential: { base_secs: 1, max_secs: 8 } },
    });
  });
});

describe("the attempt that a log belongs to", () => {
  const held = task({ state: "held", attempt: 1, grant: 3, closedGrant: 1, closedBy: "expire", queuedAt: now });

  it("is the current attempt for the current lease", () => {
    expect(attemptOf(held, 3, now + 999_999)).toBe(1);
  });

  it("[G48] is the earlier attempt for a lease that just ended, and none for a lease that ended long ago or never existed", () => {
    expect(attemptOf(held, 1, now + lateLogMs)).toBe(0);
    expect(attemptOf(held, 1, now + lateLogMs + 1)).toBeUndefined();
    expect(attemptOf(held, 2, now)).toBeUndefined();
    expect(attemptOf(held, 5, now)).toBeUndefined();
    expect(attemptOf(held, -1, now)).toBeUndefined();
  });

  it("[G48] is the last attempt for a job that just ended", () => {
    const done = task({ state: "done", attempt: 2, grant: 5, closedGrant: 5, closedBy: "complete", endedAt: now });
    expect(attemptOf(done, 5, now + lateLogMs)).toBe(2);
    expect(attemptOf(done, 5, now + lateLogMs + 1)).toBeUndefined();
    expect(attemptOf(done, 3, now)).toBeUndefined();
  });

  it("stays the same when the job was given back", () => {
    const again = task({ state: "queued", attempt: 0, grant: 2, closedGrant: 1, closedBy: "defer", queuedAt: now });
    expect(attemptOf(again, 1, now)).toBe(0);
  });
});
