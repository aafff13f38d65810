import { describe, expect, it, onTestFinished } from "vitest";
import { actions, everyone } from "../../../core/actions.ts";
import type { HttpRequest, Problem, ProblemKind, Route } from "../../../net/http/http.ts";
import { openEngine } from "../../../server/engine.ts";
import { workflowGraphRoutes } from "./routes.ts";

async function setup() {
  const engine = await openEngine({ directory: null });
  onTestFinished(() => engine.close());
  const group = workflowGraphRoutes(engine);
  const route = (text: string) => group.routes.find(({ method, path }) => `${method} ${path}` === text) as Route;
  return { engine, group, route, claim: route("POST /api/jobs/claim"), complete: route("POST /api/jobs/:lease/complete") };
}

function request(more: Partial<HttpRequest>): HttpRequest {
  const headers = { "content-type": "application/json" };
  return {
    method: "POST",
    path: "",
    params: {},
    query: new URLSearchParams(),
    headers,
    text: "",
    caller: everyone,
    gone: new AbortController().signal,
    ...more,
  } as HttpRequest;
}

const problem = (kind: ProblemKind, status: number): Problem => ({ kind, status, message: "Why." });
const plain = { "content-type": "text/plain; charset=utf-8" };

describe("the table of routes", () => {
  it("requires different scopes of workers, of readers, and of callers that change workflows", async () => {
    const { group } = await setup();
    const scopes = new Map(group.routes.map(({ method, path, action }) => [`${method} ${path}`, actions[action].who]));
    expect([...scopes.values()]).not.toContain("anyone");
    for (const [name, scope] of scopes) {
      if (name.startsWith("POST /api/workflows")) expect([name, scope]).toEqual([name, "operator"]);
      else if (name.startsWith("GET /api/work")) expect([name, scope]).toEqual([name, "read"]);
      else expect([name, scope]).toEqual([name, "worker"]);
    }
  });
});

describe("what the server refuses before a handler", () => {
  it.each<[Problem, object]>([
    [problem("unauthorized", 401), { status: 401, headers: plain, body: "Why." }],
    [problem("forbidden", 403), { status: 403, headers: plain, body: "Why." }],
    [problem("bad-request", 400), { status: 400, headers: plain, body: "Why." }],
    [problem("not-found", 404), { status: 404 }],
    [problem("method-not-allowed", 405), { status: 405 }],
    [problem("too-large", 413), { status: 413, headers: plain, body: "Failed to buffer the request body: length limit exceeded" }],
    [problem("too-large", 414), { status: 414, headers: plain, body: "Why." }],
    [problem("unavailable", 503), { status: 503, headers: plain, body: "Why." }],
    [problem("overloaded", 429), { status: 503, headers: plain, body: "Why." }],
    [problem("internal", 500), { status: 500 }],
  ])("is reported in this wire's shape: %j", async (refused, reply) => {
    const { group, complete } = await setup();
    expect(group.refuse(refused, complete)).toEqual(reply);
  });

  it("[W-PY-02] is `null` for a claim when the cause is transient", async () => {
    const { group, claim } = await setup();
    for (const kind of ["unavailable", "overloaded"] as const) {
      expect(group.refuse(problem(kind, 503), claim)).toMatchObject({ status: 200, body: "null" });
    }
    expect(group.refuse(problem("unauthorized", 401), claim)).toMatchObject({ status: 401 });
  });
});

describe("a store that cannot be written", () => {
  it("[W-PY-02] leads to an empty response to a claim, and to an error for a report, which the server turns into 503", async () => {
    const { engine, claim, complete } = await setup();
    await engine.close();
    const body = JSON.stringify({ worker_id: "w", labels: [] });
    expect(await claim.handle(request({ text: body }))).toMatchObject({ status: 200, body: "null" });
    const report = async () => complete.handle(request({ text: "{}", params: { lease: "RUN.0-1" } }));
    await expect(report()).rejects.toMatchObject({ code: expect.stringMatching(/^LONGSHORE_(CLOSED|STORE_UNAVAILABLE|SHUTDOWN)$/) });
  });
});

describe("a report with the claim of the next job", () => {
  const labels = ["handler:first", "handler:second"];
  const body = (more: object = {}) => JSON.stringify({ worker_id: "w", labels, ...more });
  const leaseIn = (reply: unknown) =>
    JSON.parse((reply as { body: string }).body) as { job: { job_id: string }; lease: { lease_id: string } };

  async function running() {
    const { route, claim, complete } = await setup();
    const jobs = ["first", "second"].map((id, at) => ({
      ...{ id, name: id, status: "queued", command: `@${id}`, depends_on: at === 0 ? [] : ["first"] },
    }));
    const text = JSON.stringify({ name: "pair", trigger: "manual", jobs });
    const created = await route("POST /api/workflows").handle(request({ text }));
    const { id } = JSON.parse((created as { body: string }).body) as { id: string };
    await route("POST /api/workflows/:workflow/run").handle(request({ params: { workflow: id } }));
    const { lease } = leaseIn(await claim.handle(request({ text: body() })));
    const report = (next?: object) =>
      complete.handle(request({ text: JSON.stringify({ outputs: {}, next }), params: { lease: lease.lease_id } }));
    return { claim, report };
  }

  it("gets the job that becomes ready by this report, before a waiting claim gets it", async () => {
    const { claim, report } = await running();
    const gone = new AbortController();
    const waiting = claim.handle(request({ text: body({ worker_id: "other", wait_secs: 30 }), gone: gone.signal }));
    const reply = await report({ worker_id: "w", labels });
    expect(leaseIn(reply).job.job_id).toBe("second");
    gone.abort();
    expect(await waiting).toMatchObject({ body: "null" });
  });

  it("gets an empty reply when there is no job, and nothing when the report is refused", async () => {
    const { claim, report } = await running();
    expect(await report({ worker_id: "w", labels: ["handler:third"] })).toEqual({ status: 200 });
    expect(await report({ worker_id: "w", labels })).toMatchObject({ status: 409 });
    expect(leaseIn(await claim.handle(request({ text: body() }))).job.job_id).toBe("second");
  });

  it("is refused as a whole when the claim cannot be read, and names the field", async () => {
    const { report } = await running();
    await expect(report({ worker_id: 7, labels })).rejects.toMatchObject({
      reply: { status: 422, body: expect.stringContaining("next.worker_id") },
    });
    expect(await report({ worker_id: "w", labels })).toMatchObject({ status: 200 });
  });
});

describe("a deferral", () => {
  async function held() {
    const { engine, route, claim } = await setup();
    const jobs = [{ id: "asks", name: "asks", status: "queued", command: "@asks", depends_on: [] }];
    const text = JSON.stringify({ name: "one", trigger: "manual", jobs });
    const { id } = JSON.parse(((await route("POST /api/workflows").handle(request({ text }))) as { body: string }).body) as { id: string };
    await route("POST /api/workflows/:workflow/run").handle(request({ params: { workflow: id } }));
    const take = async () => (await claim.handle(request({ text: '{"worker_id":"w","labels":["handler:asks"]}' }))) as { body: string };
    const { lease } = JSON.parse((await take()).body) as { lease: { lease_id: string } };
    const defer = (body: object) =>
      route("POST /api/jobs/:lease/defer").handle(request({ text: JSON.stringify(body), params: { lease: lease.lease_id } }));
    return { engine, take, defer };
  }

  it("gives the job to a later claim in the same attempt, with the kept state", async () => {
    const { take, defer } = await held();
    expect(await defer({ delay_ms: 0, output: { asked: 1 } })).toEqual({ status: 200 });
    const { job } = JSON.parse((await take()).body) as { job: object };
    expect(job).toMatchObject({ job_id: "asks", attempt: 0, deferrals: 1, deferred: { asked: 1 } });
  });

  it("is repeated without an effect", async () => {
    const { take, defer } = await held();
    expect([await defer({ delay_ms: 60_000 }), await defer({ delay_ms: 0 })]).toEqual([{ status: 200 }, { status: 200 }]);
    expect(await take()).toMatchObject({ body: "null" });
  });

  it.each([-1, 1.5, "1", 366 * 86_400_000 + 1, undefined])(
    "with the delay %j is refused with the field's name, and the lease continues",
    async (delay_ms) => {
      const { defer } = await held();
      await expect(defer({ delay_ms })).rejects.toMatchObject({ reply: { status: 422, body: expect.stringContaining("delay_ms") } });
      expect(await defer({ delay_ms: 0 })).toEqual({ status: 200 });
    },
  );
});
