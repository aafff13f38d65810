import { describe, expect, it } from "vitest";
import { startAdminServer } from "../../../../test/support/admin.ts";
import { eventually, job } from "../../../../test/support/workflow-graph.ts";

async function figures(text: string): Promise<Map<string, number>> {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))]));
}

describe("health", () => {
  it("shows version, store and uptime to any caller", async () => {
    const { api, clock } = await startAdminServer({ tokens: ["0123456789abcdef"] });
    await clock.advance(90_000);
    const { status, body } = await api("GET", "/health");
    expect(status).toBe(200);
    expect(body).toEqual({ status: "ok", version: expect.stringMatching(/^\d+\.\d+\.\d+/), store: "ok", uptimeSeconds: 90 });
  });
});

describe("the page at /", () => {
  it("shows any caller where to look, as text or for browsers as HTML", async () => {
    const { api } = await startAdminServer({ tokens: ["0123456789abcdef"], ui: false });
    const text = await api("GET", "/");
    expect(text.status).toBe(200);
    expect(text.headers["content-type"]).toBe("text/plain; charset=utf-8");
    const page = await api("GET", "/", undefined, { accept: "text/html,application/xhtml+xml,*/*;q=0.8" });
    expect(page.headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    });
    for (const path of ["/health", "/metrics", "/api/longshore/v1/openapi.json"]) {
      expect(text.body).toContain(path);
      expect(page.body).toContain(`href="${path}"`);
    }
  });

  it("sends browsers to the dashboard, where there is one", async () => {
    const { api } = await startAdminServer({ tokens: ["0123456789abcdef"] });
    const page = await api("GET", "/", undefined, { accept: "text/html" });
    expect({ status: page.status, location: page.headers.location }).toEqual({ status: 303, location: "ui" });
    expect((await api("GET", "/")).body).toContain("/ui");
  });

  it("discloses nothing about the server, and is closed to foreign web pages like everything else", async () => {
    const [one, other] = [await startAdminServer(), await startAdminServer({ sample: true })];
    await other.start(job("secret-job"));
    expect((await other.api("GET", "/")).body).toBe((await one.api("GET", "/")).body);
    expect((await one.send("GET", "/", { headers: { origin: "https://elsewhere.example" } })).status).toBe(403);
    expect((await one.send("GET", "/", { headers: { host: "elsewhere.example" } })).status).toBe(403);
  });
});

describe("metrics", () => {
  it("count what happens to tasks and runs", async () => {
    const { api, create, take, complete, fail, push, clock } = await startAdminServer();
    const workflow = await create(job("a", { max_retries: 1 }), job("b", { required_labels: ["gpu"] }));
    const { id } = (await api("POST", "/runs", { workflow })).body;
    await fail((await take()).lease.lease_id, true);
    const lost = await take({ ttl: 1 });
    await clock.advance(1_500);
    expect(lost.job.attempt).toBe(1);
    const { lease } = await take();
    await push(lease.lease_id, { workflow_id: lease.workflow_id, job_id: lease.job_id, data: "12345\n" });
    await complete(lease.lease_id);
    const before = await figures((await api("GET", "/metrics")).body);
    expect(before.get("longshore_tasks_claimed_total")).toBe(3);
    expect(before.get('longshore_attempts_closed_total{how="failed"}')).toBe(1);
    expect(before.get('longshore_attempts_closed_total{how="lost"}')).toBe(1);
    expect(before.get('longshore_tasks_ended_total{state="done"}')).toBe(1);
    expect(before.get('longshore_queue_ready{lane="$command",labels="gpu"}')).toBe(1);
    expect(before.get('longshore_queue_ready{lane="$command",labels=""}')).toBe(0);
    expect(before.get("longshore_runs_open")).toBe(1);
    expect(before.get("longshore_log_bytes_total")).toBe(6);
    expect(before.get("longshore_store_writable")).toBe(1);
    await api("POST", `/runs/${id}/cancel`);
    const after = await figures((await api("GET", "/metrics")).body);
    expect(after.get('longshore_runs_ended_total{state="cancelled"}')).toBe(1);
    expect(after.get("longshore_runs_open")).toBe(0);
    expect(after.get("longshore_commits_total")).toBe((before.get("longshore_commits_total") ?? 0) + 1);
    expect(after.get("longshore_commit_seconds_count")).toBeGreaterThanOrEqual(after.get("longshore_commits_total") ?? 0);
  });

  it("show claims that wait", async () => {
    const { api, claim, server } = await startAdminServer();
    const waiting = claim({ wait: 30 });
    await eventually(async () => (await figures((await api("GET", "/metrics")).body)).get("longshore_claims_waiting") === 1);
    await server.close();
    expect(await waiting).toBeNull();
  });

  it("give at most a hundred lanes a series of their own", async () => {
    const { api, start } = await startAdminServer();
    await start(...Array.from({ length: 130 }, (_, at) => job(`j${at}`, { required_labels: [`label-${at}`] })));
    const all = [...(await figures((await api("GET", "/metrics")).body))].filter(([name]) => name.startsWith("longshore_queue_ready"));
    expect(all).toHaveLength(101);
    expect(new Map(all).get('longshore_queue_ready{lane="other",labels=""}')).toBe(30);
  });
});
