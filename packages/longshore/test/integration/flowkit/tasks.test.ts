// FlowKit's tasks over HTTP, on a whole server.

import { describe, expect, it, onTestFinished } from "vitest";
import type { SensitiveDetector } from "../../../src/protocols/flowkit/dialect/sensitive-values.ts";
import type { FlowkitOptions } from "../../../src/protocols/flowkit/server/options.ts";
import { httpArtifacts } from "../../../src/protocols/flowkit/worker/artifacts/http.ts";
import { serve } from "../../../src/server/server.ts";
import { call } from "../../support/http.ts";

async function setup(flowkit: FlowkitOptions = {}) {
  const log: string[] = [];
  const server = await serve({ port: 0, ephemeral: true, logger: { write: (line: string) => log.push(line) }, flowkit });
  onTestFinished(() => server.close(0));
  const base = `${server.url}/flowkit/v1/tasks`;
  const ask = async (method: string, path: string, body?: unknown) => {
    const answer = await call(base + path, { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    return { status: answer.status, body: JSON.parse(answer.text) as Record<string, unknown> };
  };
  return { server, ask, log };
}

const graph = { nodes: [{ node_id: "up", type: "src" }], edges: [] };

describe("tasks over HTTP", () => {
  it("are submitted, shown, listed and cancelled", async () => {
    const { ask } = await setup();
    const made = await ask("POST", "", { params: { shop: 7 }, graph });
    expect(made).toEqual({ status: 201, body: { task_id: expect.stringMatching(/^[0-9A-Z]{26}$/) } });
    const id = made.body.task_id as string;
    expect(await ask("GET", `/${id}`)).toMatchObject({ status: 200, body: { id, status: "running", params: { shop: 7 } } });
    expect(await ask("GET", "?limit=1&status=running")).toMatchObject({ status: 200, body: { items: [{ id }] } });
    expect(await ask("GET", `/${id}/artifacts?node=up`)).toEqual({ status: 200, body: { items: [], next: null, complete: null } });
    expect(await ask("GET", `/${id}/dead-letters`)).toEqual({ status: 200, body: { items: [] } });
    expect(await ask("GET", "/nowhere/dead-letters")).toMatchObject({ status: 404 });
    const cancelled = await ask("POST", `/${id}/cancel`, { reason: "not needed" });
    expect(cancelled).toMatchObject({
      status: 202,
      body: { status: "finished", coordinator: { cancelled: true, cancel_reason: "not needed" } },
    });
  });

  it("are accepted with fields without effect, and the response and the log name some of them", async () => {
    const { ask, log } = await setup();
    const nodes = Array.from({ length: 30 }, (_, at) => ({ node_id: `n${at}`, type: "src", colour: "red" }));
    const { status, body } = await ask("POST", "", { graph: { nodes } });
    expect([status, (body.ignored as string[]).length, (body.ignored as string[])[0]]).toEqual([201, 20, "graph.nodes[0].colour"]);
    expect(log.find((line) => line.includes("graph.nodes[0].colour"))).toContain(`The graph of task ${String(body.task_id)} has fields`);
    expect(await ask("GET", `/${String(body.task_id)}`)).toMatchObject({ status: 200, body: { status: "running" } });
  });

  it("have the name of their graph, or their own id when it has none", async () => {
    const { server, ask } = await setup();
    const named = (await ask("POST", "", { graph: { ...graph, name: "catalogue" } })).body.task_id as string;
    const nameless = (await ask("POST", "", { graph })).body.task_id as string;
    expect(await ask("GET", `/${named}`)).toMatchObject({ body: { name: "catalogue", graph: { name: "catalogue" } } });
    expect(await ask("GET", `/${nameless}`)).toMatchObject({ body: { name: null } });
    const ids = async (query: string) => ((await ask("GET", query)).body.items as { id: string }[]).map(({ id }) => id);
    expect(await ids("?name=catalogue")).toEqual([named]);
    expect(await ids("")).toEqual([nameless, named]);
    const own = async (path: string, method = "GET") => JSON.parse((await call(`${server.url}/api/longshore/v1${path}`, { method })).text);
    expect((await own("/runs?workflow=catalogue")).items).toMatchObject([{ id: named, workflow: "catalogue" }]);
    expect((await own("/runs")).items).toMatchObject([{ workflow: nameless }, { workflow: "catalogue" }]);
    // A run that is started again also has no name, and not that of the other run.
    const again = await own(`/runs/${nameless}/rerun`, "POST");
    expect(again).toMatchObject({ workflow: again.id, definitionId: (await own(`/runs/${nameless}`)).definitionId });
    expect((await own(`/runs/${named}/rerun`, "POST")).workflow).toBe("catalogue");
  });

  const isLeak = (_path: string, value: unknown) => value === "LEAK";
  it.each<[string, SensitiveDetector, string]>([
    ["T86", { isSensitive: isLeak }, "vars.set"],
    ["T87", isLeak, "vars.merge"],
  ])("[%s] have variables that the server's own detector looks through: it blocks, or is counted", async (_id, sensitiveDetector, name) => {
    const { server, ask } = await setup({ sensitiveDetector });
    const graphOf = (more: object) => ({
      nodes: [{ node_id: "set", type: "coordinator_fn", io: { fn: name, fn_args: { kv: { token: "LEAK" }, ...more } } }],
    });
    expect(await ask("POST", "", { graph: graphOf({ block_sensitive: true }) })).toMatchObject({
      status: 400,
      body: { error: { message: expect.stringContaining("looks like a secret") } },
    });
    const id = (await ask("POST", "", { graph: graphOf({}) })).body.task_id as string;
    expect(await server.result(id)).toMatchObject({ state: "succeeded" });
    expect(await ask("GET", `/${id}`)).toMatchObject({ body: { coordinator: { vars: { token: "LEAK" } } } });
    expect(await ask("GET", `/${id}/artifacts?node=set`)).toMatchObject({ body: { complete: { meta: { sensitive_hits: 1 } } } });
  });

  it("can be polled by workers on the same server", async () => {
    const { server, ask } = await setup();
    const id = (await ask("POST", "", { graph })).body.task_id as string;
    const store = httpArtifacts({ url: server.url as string });
    expect(await store.task(id)).toMatchObject({ id, graph: { nodes: [{ node_id: "up", status: "queued" }] } });
    expect(await store.cancelled(id, "up")).toBe(false);
    await ask("POST", `/${id}/cancel`);
    expect(await store.cancelled(id, "up")).toBe(true);
    await store.close();
  });

  it("a waiting reader gets a response when the server closes", async () => {
    const { server, ask } = await setup();
    const nodes = [...graph.nodes, { node_id: "down", type: "sink" }];
    const task_id = (await ask("POST", "", { graph: { nodes } })).body.task_id as string;
    const body = { task_id, node_id: "down", attempt_epoch: 1, worker_id: "w", sources: [{ node_id: "up" }], wait_ms: 30_000 };
    const waiting = call(`${server.url}/flowkit/v1/artifacts/read`, { method: "POST", body: JSON.stringify(body) });
    // It is in flight when a later request has got its response.
    await ask("GET", "");
    await server.close();
    expect(JSON.parse((await waiting).text)).toEqual({ sources: [] });
  });

  const refused: [method: string, path: string, body: unknown, status: number, field: string][] = [
    ["POST", "", {}, 400, "graph"],
    ["POST", "", { graph: { nodes: [] } }, 400, "graph.nodes"],
    ["POST", "", { graph, params: 3 }, 400, "params"],
    ["POST", "", { graph: { ...graph, name: ".hidden" } }, 400, "graph.name"],
    ["POST", "", { graph: { ...graph, name: "two\nlines" } }, 400, "graph.name"],
    ["POST", "", { graph: { ...graph, name: 7 } }, 400, "graph.name"],
    ["POST", "", { graph: { nodes: [{ node_id: "a", type: "x", depends_on: ["b"] }] } }, 400, "graph.nodes[0].depends_on[0]"],
    ["GET", "?limit=1000", undefined, 400, "limit"],
    ["GET", "?limit=x", undefined, 400, "limit"],
    ["GET", "?status=done", undefined, 400, "status"],
    ["GET", "/nothing", undefined, 404, "task_id"],
    ["POST", "/nothing/cancel", undefined, 404, "task_id"],
    ["POST", "/nothing/cancel", { reason: 3 }, 400, "reason"],
    ["GET", "/nothing/artifacts", undefined, 400, "node"],
    ["GET", "/nothing/artifacts?node=a", undefined, 404, "task_id"],
  ];

  it.each(refused)("%s %s %j is refused", async (method, path, body, status, field) => {
    const { ask } = await setup();
    expect(await ask(method, path, body)).toMatchObject({ status, body: { error: { message: expect.any(String), field } } });
  });
});
