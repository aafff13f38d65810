// Administration, event queues and monitoring as the real server has them.

import { expect, it } from "vitest";
import { startConductor } from "../../support/conductor-rest.ts";
import { operator, simple } from "../../support/conductor-world.ts";

it("lists the open tasks of a type in pages", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "one" });
  const ids: string[] = [];
  for (let at = 0; at < 5; at++) ids.push(await c.begin([simple("one")]));
  await c.work("one");
  const list = (query: string) => c.read<{ workflowInstanceId: string }[]>(`/admin/task/one${query}`);
  const all = await list("");
  expect(all.map(({ workflowInstanceId }) => workflowInstanceId).toSorted()).toEqual(ids.slice(1).toSorted());
  expect(await list("?start=1&count=2")).toEqual(all.slice(1, 3));
  expect(await list("?count=0")).toEqual([]);
  expect((await c.send("GET", "/admin/task/one?start=-1")).status).toBe(400);
});

it("ends a waiting task by a message, by its name or by its id", async () => {
  const c = await startConductor();
  const id = await c.begin([operator("WAIT", "first"), operator("WAIT", "second")], { outputParameters: { m: "${second.output.m}" } });
  const first = await c.record(id, "first");
  expect((await c.send("POST", `/queue/update/${id}/second/COMPLETED`, {})).status).toBe(404);
  await c.ask("POST", `/queue/update/${id}/task/${first.taskId}/COMPLETED`, { m: 1 });
  expect((await c.send("POST", `/queue/update/${id}/task/${first.taskId}/COMPLETED`, {})).status).toBe(404);
  await c.ask("POST", `/queue/update/${id}/second/COMPLETED`, { m: 2 });
  expect(await c.run(id)).toMatchObject({ status: "COMPLETED", output: { m: 2 } });
});

it("describes every served operation of the real server's document in /api-docs, and no other", async () => {
  const c = await startConductor();
  const { paths } = (await (await fetch(`${c.url}/api-docs`)).json()) as { paths: Record<string, object> };
  expect(Object.keys(paths["/api/workflow/{workflowId}"] as object)).toEqual(["get", "delete"]);
  expect(paths).not.toHaveProperty(["/api/agent/start"]);
  expect(paths).not.toHaveProperty(["/api/workflow/externalstoragelocation"]);
});

it("answers the probes of Spring's actuator", async () => {
  const c = await startConductor();
  const ask = async (path: string) => (await fetch(`${c.url}/actuator${path}`)).text();
  expect(JSON.parse(await ask(""))).toHaveProperty(["_links", "health", "href"], "/actuator/health");
  expect(JSON.parse(await ask("/health"))).toEqual({ status: "UP" });
  expect(JSON.parse(await ask("/info"))).toMatchObject({ build: { name: "longshore" } });
  expect(await ask("/prometheus")).toContain("longshore_store_writable 1");
});

it("says what it does not serve, and why", async () => {
  const c = await startConductor();
  const message = async (method: string, path: string) => JSON.parse((await c.send(method, path)).text).message as string;
  expect(await message("POST", "/agent/start")).toContain("Longshore does not serve Conductor's agents, because it calls no model");
  expect(await message("GET", "/tasks/externalstoragelocation")).toContain(
    "external payload storage, because inputs and outputs of up to 10 MiB",
  );
  expect(JSON.parse(await (await fetch(`${c.url}/context.js`)).text())).toMatchObject({ status: 404, retryable: false });
});
