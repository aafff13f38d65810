// Dependencies, outputs and runs.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../../support/parts.ts";
import { job, startGraphServer } from "../../support/workflow-graph.ts";

describe("dependencies", () => {
  it("[W-EXEC-02, G34] start the last job of a diamond once, after both sides, with the outputs of these two jobs only", async () => {
    const { start, take, claim, complete } = await startGraphServer();
    await start(
      job("top"),
      job("left", { depends_on: ["top"] }),
      job("right", { depends_on: ["top"] }),
      job("sink", { depends_on: ["left", "right"] }),
    );
    await complete((await take()).lease.lease_id, { from: "top" });
    const left = await take();
    const right = await take();
    expect(left.job.upstream_outputs).toEqual({ top: { from: "top" } });
    await complete(left.lease.lease_id, { from: "left" });
    expect(await claim()).toBeNull();
    await complete(right.lease.lease_id, { from: "right", more: "ü" });
    const sink = await take();
    expect(sink.job).toMatchObject({ job_id: "sink", upstream_outputs: { left: { from: "left" }, right: { from: "right", more: "ü" } } });
    expect(Object.keys(sink.job.upstream_outputs)).toHaveLength(2);
    expect(await claim()).toBeNull();
  });

  it("[G35] without outputs appear as empty maps", async () => {
    const { start, take, complete } = await startGraphServer();
    await start(job("a"), job("b", { depends_on: ["a"] }));
    await complete((await take()).lease.lease_id);
    expect((await take()).job.upstream_outputs).toEqual({ a: {} });
  });

  it("[G36] that fail permanently skip all later jobs and leave other branches running", async () => {
    const { start, take, fail, complete, states } = await startGraphServer();
    const id = await start(
      job("a"),
      job("b", { depends_on: ["a"] }),
      job("c", { depends_on: ["b"] }),
      job("free"),
      job("both", { depends_on: ["c", "free"] }),
      job("after", { depends_on: ["free"] }),
    );
    const a = await take();
    const free = await take();
    await fail(a.lease.lease_id);
    expect(await states(id)).toEqual({ a: "failure", b: "skipped", c: "skipped", free: "running", both: "skipped", after: "queued" });
    await complete(free.lease.lease_id);
    expect((await take()).job.job_id).toBe("after");
  });

  it("[G38] all become ready when 20 jobs with 300 dependents each are completed at once", async () => {
    const { start, claim, complete } = await startGraphServer();
    const fan = () => [job("root"), ...Array.from({ length: 300 }, (_, at) => job(`d${at}`, { depends_on: ["root"] }))];
    await Promise.all(Array.from({ length: 20 }, () => start(...fan())));
    const roots = await Promise.all(Array.from({ length: 20 }, (_, at) => claim({ worker: `w${at}` })));
    expect(roots.map((root) => root?.job.job_id)).toEqual(Array(20).fill("root"));
    const answers = await Promise.all(roots.map((root) => complete(root?.lease.lease_id ?? "")));
    expect(answers).toEqual(Array(20).fill(200));
    const taken = new Set<string>();
    const drain = async (worker: string) => {
      for (let next = await claim({ worker }); next !== null; next = await claim({ worker })) taken.add(next.lease.lease_id);
    };
    await Promise.all(Array.from({ length: 16 }, (_, at) => drain(`w${at}`)));
    expect(taken.size).toBe(6_000);
  });
});

describe("runs", () => {
  it("[G40] that are requested twice in a row are one run, before and after the first claim", async () => {
    const { create, post, take, claim, complete, states } = await startGraphServer();
    const id = await create(job("a"), job("b", { depends_on: ["a"] }));
    const answers = await Promise.all([post(`/api/workflows/${id}/run`), post(`/api/workflows/${id}/run`)]);
    expect(answers.map(({ status }) => status)).toEqual([202, 202]);
    const a = await take();
    expect((await post(`/api/workflows/${id}/run`)).status).toBe(202);
    expect(await claim()).toBeNull();
    await complete(a.lease.lease_id);
    await complete((await take()).lease.lease_id);
    expect(await states(id)).toEqual({ a: "success", b: "success" });
  });

  it("begin again when a finished workflow is run again", async () => {
    const { start, post, take, complete, states, job: jobOf } = await startGraphServer();
    const id = await start(job("a"));
    const first = await take();
    await complete(first.lease.lease_id);
    await post(`/api/workflows/${id}/run`);
    expect(await states(id)).toEqual({ a: "queued" });
    const second = await take();
    expect(second.job).toMatchObject({ workflow_id: id, attempt: 0 });
    expect(second.job.run_id).not.toBe(first.job.run_id);
    expect((await jobOf(first.job.run_id ?? "", "a")).status).toBe("success");
  });

  it("finish at once for a workflow without jobs", async () => {
    const { start, workflow } = await startGraphServer();
    const id = await start();
    expect(await workflow(id)).toEqual({ id, name: "n", trigger: "t", jobs: [] });
  });

  it("can be requested for a definition file, whose id is the file's name", async () => {
    const folder = join(temporaryFolder(), "flows");
    mkdirSync(folder);
    const lines = [
      "name: Nightly",
      "on: [schedule]",
      "jobs:",
      "  a: { run: echo a, if: false }",
      "  b: { run: echo b, labels: [linux] }",
      "  c: { run: echo c, needs: a }",
    ];
    writeFileSync(join(folder, "nightly.yml"), lines.join("\n"));
    const { post, take, complete, states, workflow } = await startGraphServer({ workflows: folder });
    expect(await workflow("nightly")).toMatchObject({ id: "nightly", name: "Nightly", trigger: "on: [schedule]" });
    await post("/api/workflows/nightly/run");
    expect(await states("nightly")).toEqual({ a: "skipped", b: "queued", c: "skipped" });
    await complete((await take({ labels: ["linux"] })).lease.lease_id);
    expect(await states("nightly")).toEqual({ a: "skipped", b: "success", c: "skipped" });
  });

  it("finish the sample of eight jobs", async () => {
    const { post, claim, complete, states } = await startGraphServer();
    await post("/api/workflows/sample");
    await post("/api/workflows/ci-1/run");
    const order = [];
    for (let next = await claim(); next !== null; next = await claim()) {
      order.push(next.job.job_id);
      await complete(next.lease.lease_id);
    }
    expect(order).toEqual(["unit-tests", "lint", "typecheck", "build", "deploy-db", "e2e-tests", "deploy-preview", "deploy-web"]);
    expect(new Set(Object.values(await states("ci-1")))).toEqual(new Set(["success"]));
  });
});
