import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type AdminServer, startAdminServer } from "../../../../test/support/admin.ts";
import { fn } from "../../../../test/support/flowkit-graphs.ts";
import { task } from "../../../core/task.ts";
import { graph } from "../../../graph.ts";
import { workflow } from "../../../workflow.ts";

const yaml = { "content-type": "application/yaml" };
const json = { "content-type": "application/json; charset=utf-8" };
const file = "name: CI\non: push\njobs:\n  test: { run: npm test, labels: [linux] }\n  ship: { needs: test, run: ./ship }\n";
const conductorTask = (name: string) => ({ name, taskReferenceName: name, type: "SIMPLE", inputParameters: {} });
const parcel = {
  ...{ name: "parcel", version: 1, schemaVersion: 2, ownerEmail: "a@example.org", outputParameters: {} },
  ...{ inputParameters: ["weight"], inputTemplate: { country: "NO" }, tasks: [conductorTask("weigh")] },
};

async function put(server: AdminServer, ...definitions: object[]) {
  const answer = await server.send("PUT", "/api/metadata/workflow", { headers: json, body: JSON.stringify(definitions) });
  expect(answer.status).toBe(200);
}

async function endRun(server: AdminServer, name: string, after: number): Promise<string> {
  const { body } = await server.api("POST", "/runs", { workflow: name, input: { at: after } });
  await server.clock.advance(after);
  await server.api("POST", `/runs/${body.id}/cancel`, {});
  return body.id;
}

describe("the catalogue of workflows", () => {
  it("has those of every language by name, with how their last runs ended", async () => {
    const server = await startAdminServer();
    const { api } = server;
    await put(server, parcel);
    await api("POST", "/definitions?name=nightly", file, yaml);
    const ids: string[] = [];
    for (const ms of [10, 30, 20]) ids.push(await endRun(server, "nightly", ms));
    const { items, next } = (await api("GET", "/workflows")).body;
    expect(items.map(({ name, dialect, version }: Record<string, unknown>) => [name, dialect, version])).toEqual([
      ["nightly", "workflow-graph", 1],
      ["parcel", "conductor", 1],
    ]);
    expect(next).toBeNull();
    expect(items[0]).toMatchObject({ runs: { cancelled: 3 }, p50Ms: 20, p95Ms: 30 });
    expect(items[0].lastEnds.map(({ id, durationMs }: Record<string, unknown>) => [id, durationMs])).toEqual([
      [ids[2], 20],
      [ids[1], 30],
      [ids[0], 10],
    ]);
    expect(items[1]).toMatchObject({ runs: {}, lastEnds: [], p50Ms: null });
  });

  it("is read in pages, and only those with a text in their name", async () => {
    const { api } = await startAdminServer();
    for (const name of ["one", "two", "three"]) await api("POST", `/definitions?name=${name}`, file, yaml);
    const first = (await api("GET", "/workflows?limit=2")).body;
    const second = (await api("GET", `/workflows?limit=2&after=${first.next}`)).body;
    const names = [...first.items, ...second.items].map(({ name }: { name: string }) => name);
    expect(names).toEqual(["one", "three", "two"]);
    expect(second.next).toBeNull();
    expect((await api("GET", "/workflows?text=HR")).body.items).toMatchObject([{ name: "three" }]);
  });

  it("has workflows that have only runs, because a protocol brings their definition with each run", async () => {
    const { api, send } = await startAdminServer();
    const submit = (name?: string) =>
      send("POST", "/flowkit/v1/tasks", {
        headers: json,
        body: JSON.stringify({ graph: { ...(name && { name }), nodes: [fn("only", "noop", {})] } }),
      });
    for (const name of ["pipeline", "pipeline", undefined]) expect((await submit(name)).status).toBe(201);
    const { items } = (await api("GET", "/workflows")).body;
    expect(items).toMatchObject([{ name: "pipeline", dialect: "flowkit", definitionId: null, version: null, runs: { succeeded: 2 } }]);
    expect((await api("GET", "/workflows/pipeline")).body).toMatchObject({
      steps: [],
      text: null,
      lastInputs: [{ input: { params: {} } }],
    });
    expect((await api("GET", "/workflows/nothing")).status).toBe(404);
  });
});

describe("one workflow", () => {
  it("has the form of its input from each language that declares one", async () => {
    const server = await startAdminServer();
    const { api } = server;
    await put(server, parcel);
    const greet = task("greet", async ({ name }: { name: string }) => name);
    const input = z.object({ name: z.string() });
    const code = graph("greeting", (g, given) => void g.step(greet, { name: given.name }), { input });
    await api("POST", "/definitions", { source: code.source }, json);
    const durable = workflow("durable", async (w, given: { name: string }) => w.step(greet, given), { input });
    await api("POST", "/definitions", { source: durable.source }, json);
    const flow = {
      schema: "https://stepflow.org/schemas/v1/flow.json",
      name: "shout",
      schemas: { type: "object", properties: { input: { type: "object", properties: { text: { type: "string" } } } } },
      steps: [{ id: "say", component: "/builtin/create_messages", input: { user_prompt: { $input: "$.text" } } }],
      output: { $step: "say" },
    };
    const defined = await api("POST", "/definitions?name=shout", flow, json);
    expect(defined.status).toBe(201);
    const schemaOf = async (name: string) => (await api("GET", `/workflows/${name}`)).body.inputSchema;
    expect(await schemaOf("parcel")).toEqual({ type: "object", properties: { weight: {}, country: { default: "NO" } } });
    for (const name of ["greeting", "durable"]) expect(await schemaOf(name)).toMatchObject({ properties: { name: { type: "string" } } });
    expect(await schemaOf("shout")).toMatchObject({ properties: { text: { type: "string" } } });
  });

  it("has different inputs of its last runs, newest first", async () => {
    const { api, clock } = await startAdminServer();
    await api("POST", "/definitions?name=w", file, yaml);
    for (const at of [1, 2, 2, 3]) {
      await clock.advance(1);
      await api("POST", "/runs", { workflow: "w", input: { at } });
    }
    const { lastInputs } = (await api("GET", "/workflows/w")).body;
    expect(lastInputs.map(({ input }: { input: unknown }) => input)).toEqual([{ at: 3 }, { at: 2 }, { at: 1 }]);
  });

  it("names the steps that no worker can take, and why, until a worker asks for them", async () => {
    const server = await startAdminServer();
    await put(server, parcel);
    const unserved = async () => (await server.api("GET", "/workflows/parcel")).body.unserved;
    expect(await unserved()).toEqual([{ step: "weigh", lane: "weigh", labels: [], text: "no worker is connected", missing: [] }]);
    await server.send("GET", "/api/tasks/poll/batch/other?workerid=w1&count=1&timeout=0");
    expect(await unserved()).toMatchObject([{ text: "no live worker asks for weigh" }]);
    await server.send("GET", "/api/tasks/poll/batch/weigh?workerid=w1&count=1&timeout=0");
    expect(await unserved()).toEqual([]);
  });

  it("has its source as text, with the problems of its checker at their lines", async () => {
    const { api } = await startAdminServer();
    const say = { id: "say", component: "/builtin/create_messages", input: { user_prompt: { $variable: "prompt" } } };
    const flow = { schema: "https://stepflow.org/schemas/v1/flow.json", name: "shout", steps: [say], output: { $step: "say" } };
    expect((await api("POST", "/definitions?name=shout", flow, json)).status).toBe(201);
    const { text, problems } = (await api("GET", "/workflows/shout")).body;
    expect(problems.length).toBeGreaterThan(0);
    expect(problems[0]).toMatchObject({ level: "warning", line: expect.any(Number) });
    expect(JSON.parse(text)).toMatchObject({ name: "shout" });
  });
});

describe("the versions of a workflow", () => {
  it("are listed newest first, in pages, and compared by steps and lines", async () => {
    const { api } = await startAdminServer();
    const define = (text: string) => api("POST", "/definitions?name=w", text, yaml);
    await define(file);
    await define(file.replace("npm test", "npm run test"));
    await define(`${file.replace("labels: [linux]", "labels: [mac]")}  tell: { needs: ship, run: ./tell }\n`);
    const first = (await api("GET", "/workflows/w/versions?limit=2")).body;
    expect(first.items.map(({ version }: { version: number }) => version)).toEqual([3, 2]);
    const second = (await api("GET", `/workflows/w/versions?limit=2&before=${first.next}`)).body;
    expect([second.items.map(({ version }: { version: number }) => version), second.next]).toEqual([[1], null]);
    const { from, to, steps, lines } = (await api("GET", "/workflows/w/versions/1...3")).body;
    expect([from.version, to.version]).toEqual([1, 3]);
    expect(steps).toEqual({ added: ["tell"], removed: [], moved: ["test"] });
    const changed = lines.filter(({ op }: { op: string }) => op === "added" || op === "removed");
    expect(changed.map(({ op, text }: { op: string; text: string }) => `${op} ${text.trim()}`)).toContain('removed "linux"');
  });

  it("that do not exist, and ranges that are none, are refused", async () => {
    const { api } = await startAdminServer();
    await api("POST", "/definitions?name=w", file, yaml);
    expect((await api("GET", "/workflows/w/versions/1...2")).status).toBe(404);
    expect((await api("GET", "/workflows/none/versions")).status).toBe(404);
    const { status, body } = await api("GET", "/workflows/w/versions/1-2");
    expect([status, body.error.field]).toEqual([400, "path.range"]);
  });
});

describe("a check of a definition", () => {
  const check = (server: AdminServer, text: string, headers = yaml) => server.api("POST", "/workflows/check", text, headers);

  it("returns its mistakes with line and column, and stores nothing", async () => {
    const server = await startAdminServer();
    const { body } = await check(server, "name: CI\non: push\njobs:\n  a: { run: x, needs: b }\n");
    expect(body).toMatchObject({ name: null, problems: [{ level: "error", line: 4, column: expect.any(Number) }], steps: null });
    const good = (await check(server, file.replace("run: npm test", "run: npm test, colour: red"))).body;
    expect(good).toMatchObject({ name: "CI", dialect: "workflow-graph", isNew: true, problems: [{ level: "warning", line: 4 }] });
    expect((await server.api("GET", "/definitions")).body.items).toEqual([]);
  });

  it("compares it with the newest version", async () => {
    const server = await startAdminServer();
    await server.api("POST", "/definitions", file, yaml);
    expect((await check(server, file)).body).toMatchObject({ isNew: false, steps: { added: [], removed: [], moved: [] } });
    const { body } = await check(server, file.replace("ship: { needs: test", "send: { needs: test"));
    expect(body).toMatchObject({ isNew: true, steps: { added: ["send"], removed: ["ship"], moved: [] } });
    expect(body.lines.length).toBeGreaterThan(2);
  });
});
