import { describe, expect, it } from "vitest";
import { startAdminServer } from "../../../../test/support/admin.ts";
import { eventually, job } from "../../../../test/support/workflow-graph.ts";

const big = 12_345_678_901_234_567_890n;

describe("data of runs and tasks", () => {
  it("is sent as its text, so that large numbers and long texts arrive", async () => {
    const { api, create } = await startAdminServer();
    const workflow = await create(job("a"));
    const { id } = (await api("POST", "/runs", `{"workflow":"${workflow}","input":{"n":${big},"text":"${"x".repeat(100)}"}}`)).body;
    const whole = await api("GET", `/runs/${id}/input`);
    expect(whole.headers["content-type"]).toBe("application/json");
    expect(whole.body.text).toHaveLength(100);
    const cut = await api("GET", `/runs/${id}/input?max=30`);
    expect(cut.headers).toMatchObject({ "content-type": "text/plain; charset=utf-8", "longshore-chars": "136" });
    expect(cut.body).toBe(`{"n":${big},"tex`);
    expect((await api("GET", `/runs/${id}/output`)).status).toBe(204);
    expect((await api("GET", `/tasks/${id}.0/output`)).status).toBe(204);
    expect((await api("GET", "/runs/none/input")).status).toBe(404);
    expect((await api("GET", "/tasks/none/input")).status).toBe(404);
  });
});

describe("attempts of a task", () => {
  it("show on request what each got and gave, and why it ended", async () => {
    const { api, take, fail, complete, create, clock } = await startAdminServer();
    const workflow = await create(job("a", { max_retries: 1 }));
    const { id } = (await api("POST", "/runs", { workflow })).body;
    await fail((await take()).lease.lease_id, true, "first");
    await clock.advance(60_000);
    await complete((await take()).lease.lease_id, { answer: "42" });
    const [first, second] = (await api("GET", `/tasks/${id}.0/attempts?io=true`)).body.items;
    expect(first).toMatchObject({ attempt: 1, fault: "failed", closedBy: "fail", deferrals: 0, claimedAt: expect.any(Number) });
    expect(second).toMatchObject({ attempt: 2, fault: null, closedBy: "complete", output: { answer: "42" } });
    expect(second.outputChars).toBe(JSON.stringify(second.output).length);
    expect(first.input).toEqual(second.input);
    const [bare] = (await api("GET", `/tasks/${id}.0/attempts`)).body.items;
    expect(bare).not.toHaveProperty("input");
    expect(bare).not.toHaveProperty("inputChars");
  });

  it("leave out values that are too long", async () => {
    const { api, take, complete, create } = await startAdminServer();
    const workflow = await create(job("a"));
    const { id } = (await api("POST", "/runs", { workflow })).body;
    await complete((await take()).lease.lease_id, { answer: "x".repeat(70_000) });
    const [attempt] = (await api("GET", `/tasks/${id}.0/attempts?io=true`)).body.items;
    expect(attempt.outputChars).toBeGreaterThan(70_000);
    expect(attempt).not.toHaveProperty("output");
  });
});

describe("a task", () => {
  it("has all its times and limits", async () => {
    const { api, take, create, clock } = await startAdminServer();
    const workflow = await create(job("a"));
    const { id } = (await api("POST", "/runs", { workflow })).body;
    const queuedAt = clock.now();
    await clock.advance(1_000);
    await take();
    const { body } = await api("GET", `/tasks/${id}.0`);
    expect(body).toMatchObject({ queuedAt, claimedAt: clock.now(), deferrals: 0, fault: null, limits: [], claimBy: null, totalBy: null });
    expect(body.holdUntil).toBeGreaterThan(clock.now());
    expect((await api("GET", `/runs/${id}/steps`)).body.items).toMatchObject([{ queuedAt, dueAt: queuedAt }]);
  });

  it("that starts a run names it", async () => {
    const { api } = await startAdminServer();
    const define = (name: string, step: object) =>
      api("POST", "/definitions", { source: { name, steps: [step], output: null } }, { "content-type": "application/json" });
    await define("child", { id: "a", task: "later", input: null });
    await define("parent", { id: "sub", workflow: "child", input: null });
    const { id } = (await api("POST", "/runs", { workflow: "parent" })).body;
    await eventually(async () => (await api("GET", `/tasks/${id}.0`)).body.childRunId !== undefined);
    const { childRunId } = (await api("GET", `/tasks/${id}.0`)).body;
    expect((await api("GET", `/runs/${childRunId}`)).body).toMatchObject({ workflow: "child", parentTaskId: `${id}.0` });
  });
});
