// Which worker gets which job, and in which order.

import { describe, expect, it } from "vitest";
import { task } from "../../../src/core/task.ts";
import { graph } from "../../../src/graph.ts";
import type { Ref } from "../../../src/reference.ts";
import { job, startGraphServer } from "../../support/workflow-graph.ts";

describe("labels", () => {
  it("[W-CLAIM-06, G18] give a job only to a claim with all of its labels, in the same spelling", async () => {
    const { start, claim } = await startGraphServer();
    await start(job("gpu", { required_labels: ["gpu", "linux"] }), job("plain"));
    expect((await claim())?.job.job_id).toBe("plain");
    expect(await claim()).toBeNull();
    expect(await claim({ labels: ["gpu"] })).toBeNull();
    expect(await claim({ labels: ["GPU", "linux"] })).toBeNull();
    expect((await claim({ labels: ["linux", "arm", "gpu"] }))?.job.job_id).toBe("gpu");
  });

  it("[W-REG-03] of the claim decide, for any labels of the registration", async () => {
    const { start, claim, post } = await startGraphServer();
    await start(job("gpu", { required_labels: ["gpu"] }));
    await post("/api/workers/register", { worker_id: "w1", labels: ["gpu"] });
    expect(await claim({ labels: [] })).toBeNull();
    expect((await claim({ worker: "w2", labels: ["gpu"] }))?.job.job_id).toBe("gpu");
  });

  it("[G19] of the first job in the queue do not block a later job that matches", async () => {
    const { start, claim } = await startGraphServer();
    await start(...Array.from({ length: 50 }, (_, at) => job(`gpu${at}`, { required_labels: ["gpu"] })), job("plain"));
    expect((await claim())?.job.job_id).toBe("plain");
  });

  it("[G21] and retries apply to dependent jobs as to first ones", async () => {
    const { start, take, claim, complete, fail } = await startGraphServer();
    await start(job("a"), job("b", { depends_on: ["a"], required_labels: ["gpu"], max_retries: 1 }));
    await complete((await take()).lease.lease_id);
    expect(await claim()).toBeNull();
    const first = await take({ labels: ["gpu"] });
    expect(first.job).toMatchObject({ job_id: "b", required_labels: ["gpu"], retry_policy: { max_retries: 1 }, attempt: 0 });
    await fail(first.lease.lease_id, true);
    expect((await take({ labels: ["gpu"] })).job).toMatchObject({ job_id: "b", attempt: 1, required_labels: ["gpu"] });
  });

  it("of handlers give access to the handlers' own lanes, and the step is sent as a command that names the handler", async () => {
    const { server, claim, complete } = await startGraphServer();
    const called = server.call<{ name: string }, { text: string }>("greet", { name: "Ada" });
    expect(await claim({ labels: ["greet"] })).toBeNull();
    const given = await claim({ labels: ["handler:greet"] });
    expect(JSON.parse(given?.job.command ?? "null")).toEqual({ handler: "greet", input: { name: "Ada" } });
    await complete(given?.lease.lease_id ?? "", { text: "Hello" });
    expect(await called).toEqual({ text: "Hello" });
  });

  it("of a handler are required by a command that names it, also when the job does not list them", async () => {
    const { start, get, claim, take, workflow: shown } = await startGraphServer();
    const id = await start(job("at", { command: "@greet" }), job("json", { command: '{"handler":"greet"}' }), job("plain"));
    expect((await take({ labels: ["linux"] })).job.job_id).toBe("plain");
    expect(await claim({ labels: ["linux"] })).toBeNull();
    const { items } = JSON.parse((await get("/api/longshore/v1/tasks?state=queued")).text) as { items: { waiting: { text: string } }[] };
    expect(items.map(({ waiting }) => waiting.text)).toEqual(Array(2).fill("no live worker has the label handler:greet"));
    for (const name of ["at", "json"]) {
      expect((await take({ labels: ["handler:greet"] })).job).toMatchObject({ job_id: name, required_labels: [] });
    }
    expect((await shown(id)).jobs.map((one) => one.required_labels)).toEqual([[], [], []]);
  });

  it("allow a worker of this protocol to claim the steps of a workflow that was written in code", async () => {
    const { server, take, complete, push, logs, states, cancelled, workflow: shown } = await startGraphServer();
    const greet = task("greet", async ({ name }: { name: string }) => ({ text: `Hello, ${name}!` }));
    const greeting = graph("greeting", (g, input: Ref<{ name: string }>) => g.step(greet, { name: input.name }, { id: "hello" }));
    const { id } = await server.start(greeting, { name: "Ada" });
    const { job: given, lease } = await take({ labels: ["handler:greet"] });
    expect(given).toMatchObject({ job_id: "hello", workflow_id: id, run_id: id });
    expect(await push(lease.lease_id, { workflow_id: id, job_id: "hello", data: "working" })).toBe(200);
    expect(await cancelled(given.workflow_id, "hello")).toBe(false);
    expect(await states("greeting")).toEqual({ hello: "running" });
    expect((await shown(id)).jobs[0]).toMatchObject({ id: "hello", command: "@greet" });
    await complete(lease.lease_id, { text: "Hello, Ada!" });
    expect(await server.result(id)).toMatchObject({ state: "succeeded", output: { text: "Hello, Ada!" } });
    expect((await logs(id, "hello")).map(({ data }) => data)).toEqual(["working"]);
  });

  it("allow a worker to send a handler's result unchanged", async () => {
    const { server, take, post } = await startGraphServer();
    const called = server.call("count", null);
    const { lease } = await take({ labels: ["handler:count"] });
    expect((await post(`/api/jobs/${lease.lease_id}/complete`, { outputs: { result: "3" }, output: 3 })).status).toBe(200);
    expect(await called).toBe(3);
  });
});

describe("the order of jobs", () => {
  it("[G20] is that of queueing; a retried job is queued behind those that wait", async () => {
    const { start, take, fail } = await startGraphServer();
    await start(job("a", { max_retries: 1 }), job("b"), job("c"));
    const first = await take();
    expect(first.job.job_id).toBe("a");
    await fail(first.lease.lease_id, true);
    const order = [];
    for (let at = 0; at < 3; at++) order.push((await take()).job.job_id);
    expect(order).toEqual(["b", "c", "a"]);
  });

  it("puts a smaller priority first", async () => {
    const { start, take } = await startGraphServer();
    await start(job("later", { priority: 5 }), job("normal"), job("urgent", { priority: -5 }));
    const order = [];
    for (let at = 0; at < 3; at++) order.push((await take()).job.job_id);
    expect(order).toEqual(["urgent", "normal", "later"]);
  });

  it("[G22] 50 workers that race for 1000 jobs get each of them once", async () => {
    const { start, claim, complete, states } = await startGraphServer();
    const id = await start(...Array.from({ length: 1_000 }, (_, at) => job(`j${at}`)));
    const taken: string[] = [];
    const work = async (worker: string) => {
      for (let claimed = await claim({ worker }); claimed !== null; claimed = await claim({ worker })) {
        taken.push(claimed.job.job_id);
        expect(await complete(claimed.lease.lease_id)).toBe(200);
      }
    };
    await Promise.all(Array.from({ length: 50 }, (_, at) => work(`w${at}`)));
    expect(taken).toHaveLength(1_000);
    expect(new Set(taken).size).toBe(1_000);
    expect(new Set(Object.values(await states(id)))).toEqual(new Set(["success"]));
  });
});

describe("a claim that waits", () => {
  it("gets a response as soon as there is work for it", async () => {
    const { start, claim } = await startGraphServer();
    const waiting = claim({ wait: 30 });
    await start(job("b", { required_labels: ["x"] }));
    const other = claim({ worker: "w2", labels: ["y"], wait: 30 });
    await start(job("a"));
    expect((await waiting)?.job.job_id).toBe("a");
    await start(job("c", { required_labels: ["y"] }));
    expect((await other)?.job.job_id).toBe("c");
  });

  it("gets null when its time is over, also when it requested more than the longest wait", async () => {
    const { claim, clock } = await startGraphServer();
    let answered = false;
    const waiting = claim({ wait: 600 }).then((answer) => {
      answered = true;
      return answer;
    });
    await clock.armed(30_000);
    await clock.advance(29_999);
    expect(answered).toBe(false);
    await clock.advance(1);
    expect(await waiting).toBeNull();
  });

  it("gives the job back when its client has disconnected", async () => {
    const { url, clock, start, claim } = await startGraphServer();
    const gone = new AbortController();
    const body = JSON.stringify({ worker_id: "gone", labels: [], wait_secs: 30 });
    const waiting = fetch(`${url}/api/jobs/claim`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
      signal: gone.signal,
    });
    await clock.armed(30_000);
    gone.abort();
    await expect(waiting).rejects.toThrow();
    await start(job("a"));
    expect((await claim({ worker: "there", wait: 30 }))?.job).toMatchObject({ job_id: "a", attempt: 0 });
  });

  it("gets null when the server closes", async () => {
    const { claim, clock, server } = await startGraphServer();
    const waiting = claim({ wait: 30 });
    await clock.armed(30_000);
    const closed = server.close();
    expect(await waiting).toBeNull();
    await closed;
  });
});
