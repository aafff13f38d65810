// The attacker has a web page and no token. A developer with a server on loopback opens the page. It makes the browser open an address of
// the server: by a link, a redirect, a form or a frame. Some workers claim tasks with GET. So such a visit claimed a task, and its response
// was lost.

import { expect, it } from "vitest";
import { actions } from "../../src/core/actions.ts";
import { realGroups } from "../support/admin.ts";
import { startGraphServer } from "../support/workflow-graph.ts";

const definition = { name: "hello", version: 1, tasks: [{ name: "greet", taskReferenceName: "greet", type: "SIMPLE" }] };

async function withOneTask() {
  const server = await startGraphServer({ logger: { level: "silent" } });
  expect((await server.post("/api/metadata/workflow", definition)).status).toBe(200);
  expect((await server.post("/api/workflow", { name: "hello" })).status).toBe(200);
  return server;
}

const led = { "sec-fetch-mode": "navigate", "sec-fetch-dest": "document", "user-agent": "Mozilla/5.0" };

it("a page that makes a browser open a poll claims no task", async () => {
  const { send, get } = await withOneTask();
  for (const site of ["cross-site", "same-site", "same-origin", "none"]) {
    for (const path of ["/api/tasks/poll/greet", "/api/tasks/poll/batch/greet"]) {
      const answer = await send("GET", path, { headers: { ...led, "sec-fetch-site": site } });
      expect([site, path, answer.status]).toEqual([site, path, 403]);
    }
  }
  expect(JSON.parse((await get("/api/tasks/poll/greet")).text)).toMatchObject({ taskDefName: "greet" });
});

it("a browser that sends no origin also claims no task", async () => {
  const { send, get } = await withOneTask();
  expect((await send("GET", "/api/tasks/poll/greet", { headers: { "user-agent": led["user-agent"] } })).status).toBe(403);
  expect(JSON.parse((await get("/api/tasks/poll/greet")).text)).toMatchObject({ taskDefName: "greet" });
});

it("a page that makes a browser open any other route gets only the dashboard's pages", async () => {
  const { send } = await startGraphServer({ logger: { level: "silent" } });
  const reached: string[] = [];
  for (const { method, path } of (await realGroups()).flatMap((group) => group.routes)) {
    for (const site of ["cross-site", "same-site"]) {
      const { status } = await send(method, path.replace(/:[^/]+/g, "some-id"), { headers: { ...led, "sec-fetch-site": site } });
      if (status !== 403) reached.push(`${method} ${path}`);
    }
  }
  expect([...new Set(reached)]).toEqual(["GET /"]);
});

it("HEAD claims no task, and reaches routes that only read", async () => {
  const { send, get } = await withOneTask();
  for (const path of ["/api/tasks/poll/greet", "/api/tasks/poll/batch/greet"]) expect((await send("HEAD", path)).status).toBe(405);
  const changing: string[] = [];
  for (const { method, path, action, also = action } of (await realGroups()).flatMap((group) => group.routes)) {
    if (method !== "GET" || (actions[action].reads && actions[also].reads)) continue;
    changing.push(path);
    expect([path, (await send("HEAD", path.replace(/:[^/]+/g, "some-id"))).status]).toEqual([path, 405]);
  }
  expect(changing).toContain("/api/tasks/poll/:type");
  expect(JSON.parse((await get("/api/tasks/poll/greet")).text)).toMatchObject({ taskDefName: "greet" });
  expect((await send("HEAD", "/health")).status).toBe(200);
});

it("an address that a person types reaches routes that only read", async () => {
  const { send } = await startGraphServer({ logger: { level: "silent" } });
  const typed = { ...led, "sec-fetch-site": "none" };
  for (const path of ["/", "/health", "/metrics", "/api/longshore/v1/runs"]) {
    expect([path, (await send("GET", path, { headers: typed })).status]).toEqual([path, 200]);
  }
  const changing = (await realGroups()).flatMap(({ routes }) => routes).filter(({ action }) => !actions[action].reads);
  expect(changing.length).toBeGreaterThan(60);
  for (const { method, path } of changing) {
    const { status } = await send(method, path.replace(/:[^/]+/g, "some-id"), { headers: typed });
    expect([method, path, status]).toEqual([method, path, 403]);
  }
});
