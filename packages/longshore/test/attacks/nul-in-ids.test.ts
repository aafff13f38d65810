// The attacker holds a worker token and sends ids with a NUL character, which PostgreSQL refuses in every text. A statement with such an id
// must not fail the statements of other callers that are sent together with it. Data with a NUL must not keep a run from its end.

import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type Server, serve } from "../../src/server/index.ts";
import { postgresMissing, startMsMax, TestPostgres } from "../support/postgres.ts";

const odd = "a\u0000b";
const simple = { name: "say", taskReferenceName: "say", type: "SIMPLE" };
const wait = { name: "wait", taskReferenceName: "wait", type: "WAIT", inputParameters: { duration: "${say.output.text}" } };
const child = {
  name: "child",
  taskReferenceName: "child",
  type: "SUB_WORKFLOW",
  subWorkflowParam: { name: "${say.output.text}", version: 1 },
};
const end = {
  ...{ name: "end", taskReferenceName: "end", type: "TERMINATE" },
  inputParameters: { terminationStatus: "FAILED", terminationReason: "${say.output.text}" },
};

let postgres: TestPostgres | undefined;
beforeAll(async () => {
  if (postgresMissing === undefined) postgres = await TestPostgres.start();
}, startMsMax);
afterAll(() => postgres?.remove(), startMsMax);

if (postgresMissing !== undefined) it("ids with a NUL disturb no other caller", (context) => context.skip(`needs ${postgresMissing}`));

describe.each(postgresMissing === undefined ? ["PostgreSQL", "SQLite"] : ["SQLite"])("on %s", (store) => {
  async function setup() {
    const server = await serve({ port: 0, ...(store === "SQLite" ? { ephemeral: true } : { store: postgres?.newUrl() as string }) });
    onTestFinished(() => server.close(0));
    return server;
  }

  async function call({ url }: Server, method: string, path: string, body?: unknown) {
    const headers = { "content-type": "application/json" };
    const reply = await fetch(url + path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    return { status: reply.status, text: await reply.text() };
  }

  async function define(server: Server, name: string, tasks: readonly object[]): Promise<void> {
    const definition = { ...{ name, version: 1, schemaVersion: 2, ownerEmail: "a@example.org" }, tasks };
    expect((await call(server, "POST", "/api/metadata/workflow", definition)).status).toBe(200);
  }

  const start = (server: Server, name: string) => call(server, "POST", `/api/workflow/${name}`, {});

  it("reports and state requests with such ids fail alone", async () => {
    const server = await setup();
    await define(server, "one", [simple]);
    const rounds = Array.from({ length: 40 }, async (_, at) => {
      const state = call(server, "PUT", `/flowkit/v1/artifacts/workers/${encodeURIComponent(odd)}/state`, { active_run: null });
      const report = call(server, "POST", "/api/tasks", { taskId: odd, workflowInstanceId: odd, status: "COMPLETED" });
      const started = start(server, "one");
      const unknown = call(server, "POST", "/api/tasks", { taskId: `none-${at}`, workflowInstanceId: "none", status: "COMPLETED" });
      return (await Promise.all([state, report, started, unknown])).map(({ status }) => status);
    });
    expect(new Set((await Promise.all(rounds)).map(String))).toEqual(new Set(["200,404,200,404"]));
  });

  it("reads by such ids find nothing, not even the row of the text before the NUL", async () => {
    const server = await setup();
    await define(server, "one", [simple]);
    const run = (await start(server, "one")).text;
    const paths = [
      "/api/workflow",
      "/api/longshore/v1/runs",
      "/api/longshore/v1/definitions",
      "/api/metadata/workflow",
      "/flowkit/v1/tasks",
    ];
    for (const path of paths)
      for (const name of [run, "one"]) expect([path, (await call(server, "GET", `${path}/${name}%00`)).status]).toEqual([path, 404]);
    expect((await call(server, "GET", "/api/schema/one/first")).status).toBe(404);
    expect((await call(server, "GET", "/api/longshore/v1/runs?before=%00")).text).toMatch(/"items":\[\]/);
  });

  it.each([
    ["a wait", [simple, wait]],
    ["the name of a child", [simple, child]],
    ["the reason of an end", [simple, end]],
  ])("a run ends in which a worker reports such a text for %s", async (_what, tasks) => {
    const server = await setup();
    await define(server, "told", tasks);
    const run = (await start(server, "told")).text;
    const [task] = JSON.parse((await call(server, "GET", "/api/tasks/poll/batch/say?count=1&timeout=5000")).text) as { taskId: string }[];
    const report = { taskId: task?.taskId, workflowInstanceId: run, status: "COMPLETED", outputData: { text: odd } };
    expect((await call(server, "POST", "/api/tasks", report)).status).toBe(200);
    await expect
      .poll(async () => (await call(server, "GET", `/api/workflow/${run}`)).text, { timeout: 20_000 })
      .toContain('"status":"FAILED"');
  });
});
