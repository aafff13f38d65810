// Several reports in one request to a real server, and a worker that sends them.

import { describe, expect, it, onTestFinished } from "vitest";
import { startFunctions } from "../../../../test/support/function-world.ts";
import { task } from "../../../core/task.ts";
import { serve } from "../../../server/index.ts";
import { work } from "../../../work.ts";
import { workflow } from "../../../workflow.ts";
import { reportsMax } from "../wire/shapes.ts";
import { workflowGraph } from "../worker/index.ts";

const headers = { "content-type": "application/json" };
const local = { node: 1, kind: "local", name: "l", after: 0, output: 1 };

async function send(url: string | null, body: object) {
  const response = await fetch(`${url}/api/jobs/reports`, { method: "POST", headers, body: JSON.stringify(body) });
  return { status: response.status, text: await response.text() };
}

describe("several reports in one request", () => {
  it("get the same replies as single reports: news, a job, and refusals that affect no other report", async () => {
    const { server, api, begin, run } = await startFunctions();
    const [first, second] = [await begin(), await begin()];
    const { id } = (await (await api("POST", "/runs", { workflow: "f" })).json()) as { id: string };
    const end = JSON.stringify({ output: { by: "w-1", commands: [], end: { kind: "done", output: 5 } } });
    const next = { worker_id: "w", labels: ["handler:function:f"], ttl_secs: 60 };
    const { status, text } = await send(server.url, {
      next,
      reports: [
        { lease: first.lease, verb: "commands", body: JSON.stringify({ by: "w-1", commands: [local], received: 0 }) },
        { lease: first.lease, verb: "commands", body: JSON.stringify({ by: "w-1", commands: [{ ...local, node: 0 }] }) },
        { lease: second.lease, verb: "complete", body: end, key: "k", next: true },
        { lease: "none-1", verb: "complete", body: end },
        { lease: second.lease, verb: "complete", body: "[]" },
      ],
    });
    expect(status).toBe(200);
    const { replies } = JSON.parse(text) as { replies: { status: number }[] };
    expect(replies).toMatchObject([
      { status: 200, body: { upTo: 1, results: [{ node: 1, place: 1 }] } },
      { status: 400, text: expect.stringContaining("commands[0].node") },
      { status: 200, body: { job: { run_id: id } } },
      { status: 409 },
      { status: 422 },
    ]);
    expect(await run(second.id)).toMatchObject({ state: "succeeded" });
    const again = await send(server.url, { reports: [{ lease: second.lease, verb: "complete", body: end, key: "k" }] });
    expect(JSON.parse(again.text)).toEqual({ replies: [{ status: 200 }] });
  });

  it("are all refused when the request is not a list of reports, or is too long", async () => {
    const { server } = await startFunctions();
    const many = Array.from({ length: reportsMax + 1 }, () => ({ lease: "a-1", verb: "complete", body: "{}" }));
    expect(await send(server.url, { reports: many })).toMatchObject({ status: 422, text: expect.stringContaining("expected at most 50") });
    expect(await send(server.url, { reports: [{ lease: "a-1", verb: "fail", body: "{}" }] })).toMatchObject({ status: 422 });
    expect((await send(server.url, { reports: [{ lease: "a-1", verb: "complete", body: "x".repeat(300_000) }] })).status).toBe(413);
  });
});

it("a worker with many slots does each step of a fan-out once", async () => {
  const server = await serve({ ephemeral: true, port: 0, logger: { level: "silent" } });
  onTestFinished(() => server.close());
  const calls: number[] = [];
  const count = task("count", async (n: number) => {
    calls.push(n);
    return n;
  });
  const fan = workflow("fan", async (w, size: number) => {
    const own = await Promise.all(Array.from({ length: 5 }, (_, n) => w.local("here", () => n)));
    return [own.length, (await w.map(Array.from(Array(size).keys()), count)).length];
  });
  const on = workflowGraph(server.url as string);
  const worker = await work({ tasks: [count], workflows: [fan], on, slots: 20, logger: false, signals: false });
  onTestFinished(() => worker.stop({ force: true }));
  const runs = await Promise.all(Array.from({ length: 5 }, () => server.execute(fan, 100)));
  expect(runs).toEqual(Array(5).fill([5, 100]));
  expect(calls).toHaveLength(500);
});
