// The attacker holds an operator token. Half of a surrogate pair is legal in JSON ("\ud800") but cannot be written in UTF-8. The store would
// write U+FFFD for each half. Then two different keys or names would become equal, and a start with one would return the run of the other.

import { expect, it } from "vitest";
import { task } from "../../src/core/task.ts";
import { graph } from "../../src/graph.ts";
import type { Ref } from "../../src/reference.ts";
import { startAdminServer } from "../support/admin.ts";
import { startConductor } from "../support/conductor-rest.ts";
import { simple } from "../support/conductor-world.ts";
import { job, startGraphServer } from "../support/workflow-graph.ts";

const halves = ["a\\ud800", "a\\udbff", "a\\udc00"];
const refusedBy = async (answers: Promise<{ status: number; text?: string; body?: unknown }>[]) =>
  (await Promise.all(answers)).map(({ status }) => status);

it("two starts whose keys differ in half a pair are both refused, and neither returns the other's run", async () => {
  const server = await startAdminServer();
  await server.api("POST", "/definitions", { name: "w", on: "push", jobs: { a: { run: "true" } } }, { "content-type": "application/json" });
  const start = (key: string) => server.api("POST", "/runs", `{"workflow":"w","key":"${key}"}`);
  expect(await refusedBy(halves.map(start))).toEqual([400, 400, 400]);
  expect((await start("a\\ud83d\\udea2")).status).toBe(201);
  expect((await start("a\\ufffd")).status).toBe(201);
  expect((await start(halves[0] as string)).body.error).toMatchObject({ code: "LONGSHORE_BAD_INPUT", field: "key" });
  expect((await server.api("GET", "/runs")).body.items).toHaveLength(2);
});

it("a task with such a label is refused, because it would have another lane after a restart of the server", async () => {
  const { api } = await startAdminServer();
  const post = (label: string) => api("POST", "/tasks", `{"task":"t","labels":["${label}"]}`);
  expect(await refusedBy(halves.map(post))).toEqual([400, 400, 400]);
  expect((await post("a\\ud83d\\udea2")).status).toBe(201);
});

it("a start from a program is also refused", async () => {
  const { server } = await startAdminServer();
  const double = task("double", (n: number) => n * 2);
  const flow = graph("doubled", (g, input: Ref<number>) => g.step(double, input));
  await expect(server.start(flow, 1, { key: "a\ud800" })).rejects.toMatchObject({ code: "LONGSHORE_BAD_INPUT", detail: { field: "key" } });
});

it("Conductor's idempotency keys, correlation ids and names of definitions are refused", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "t", retryCount: 0 });
  await c.workflow({ name: "w", tasks: [simple("t")] });
  const start = (field: string) => c.send("POST", "/workflow", `{"name":"w","${field}":"a\\ud800"}`);
  expect(await refusedBy([start("idempotencyKey"), start("correlationId")])).toEqual([400, 400]);
  expect((await c.send("POST", "/metadata/taskdefs", '[{"name":"t\\ud800"}]')).status).toBe(400);
  const tasks = JSON.stringify([simple("t")]);
  expect((await c.send("POST", "/metadata/workflow", `{"name":"w\\ud800","version":1,"tasks":${tasks}}`)).status).toBe(400);
});

it("names of jobs and ids of workers are refused on workflow-graph", async () => {
  const server = await startGraphServer();
  expect(await refusedBy([server.post("/api/workflows", { name: "w", jobs: [job("a\ud800")] })])).not.toContain(200);
  expect(await refusedBy([server.post("/api/workers/register", { worker_id: "w\ud800", labels: [] })])).not.toContain(200);
  expect(await server.workers()).toEqual([]);
});
