import { describe, expect, it } from "vitest";
import { z } from "zod";
import { startAdminServer } from "../../../../test/support/admin.ts";
import { task } from "../../../core/task.ts";
import { graph } from "../../../graph.ts";

const yaml = { "content-type": "application/yaml" };
const json = { "content-type": "application/json; charset=utf-8" };
const file = "name: CI\non: push\njobs:\n  test: { run: npm test, labels: [linux] }\n  ship: { needs: test, run: ./ship }\n";

describe("definitions", () => {
  it("are accepted as YAML, and are started by their own name or the given one", async () => {
    const { api } = await startAdminServer();
    const own = await api("POST", "/definitions", file, yaml);
    expect(own.status).toBe(201);
    expect(own.body).toMatchObject({ definition: { name: "CI", version: 1, dialect: "workflow-graph" }, warnings: [] });
    const named = await api("POST", "/definitions?name=nightly", file, yaml);
    expect(named.body.definition.name).toBe("nightly");
    expect((await api("POST", "/runs", { workflow: "nightly" })).status).toBe(201);
  });

  it("are listed with the events that start them, and so is each workflow", async () => {
    const { api } = await startAdminServer();
    await api("POST", "/definitions", file, yaml);
    await api("POST", "/definitions", file.replace("name: CI\non: push", "name: mail\non: { event: [order.paid, order.created] }"), yaml);
    const { items } = (await api("GET", "/definitions")).body;
    expect(items).toMatchObject([
      { name: "CI", events: [] },
      { name: "mail", events: ["order.paid", "order.created"] },
    ]);
    expect((await api("GET", "/workflows/mail")).body.events).toEqual(["order.paid", "order.created"]);
  });

  it("are accepted as JSON too, and the same text is no new version", async () => {
    const { api } = await startAdminServer();
    const body = { name: "CI", on: "push", jobs: { a: { run: "true" } } };
    const first = await api("POST", "/definitions", body, json);
    const second = await api("POST", "/definitions", body, json);
    expect([first.status, second.status]).toEqual([201, 200]);
    expect(second.body.definition).toEqual(first.body.definition);
    const changed = await api("POST", "/definitions", { ...body, jobs: { a: { run: "false" } } }, json);
    expect([changed.status, changed.body.definition.version]).toEqual([201, 2]);
  });

  it("written in code arrive as what graph() makes", async () => {
    const { api } = await startAdminServer();
    const greet = task("greet", async ({ name }: { name: string }) => ({ text: name }));
    const made = graph(
      "greeting",
      (g, input) => {
        const first = g.step(greet, { name: input.name }, { labels: ["eu"], retry: { limit: 2 } });
        g.step(greet, { name: "you" }, { id: "along", after: [first], startWhen: "first-part" });
      },
      { input: z.object({ name: z.string() }) },
    );
    const { status } = await api("POST", "/definitions", { source: made.source }, json);
    expect(status).toBe(201);
    const whole = (await api("GET", "/definitions/greeting")).body;
    expect(whole.source).toEqual(JSON.parse(JSON.stringify(made.source)));
    expect(whole.steps[0]).toEqual({ id: "greet", kind: "task", after: [], startedBy: [], lane: "greet", labels: ["eu"], workflow: null });
  });

  it.each([
    ["a reference that is none", { id: "a", task: "t", input: { $ref: 5 } }, "source.steps[0].input"],
    ["neither task nor workflow", { id: "a", input: null }, "source.steps[0]"],
    ["a field that does not exist", { id: "a", task: "t", input: null, tasks: 1 }, "source.steps[0].tasks"],
    ["too many retries", { id: "a", task: "t", input: null, retry: { failures: 1e6 } }, "source.steps[0].retry.failures"],
  ])("written in code with %s are refused with the field", async (_, step, field) => {
    const { api } = await startAdminServer();
    const { status, body } = await api("POST", "/definitions", { source: { name: "w", steps: [step], output: null } }, json);
    expect([status, body.error.field]).toEqual([400, field]);
  });

  it("that refer to an unknown step, or contain a circle, are refused", async () => {
    const { api } = await startAdminServer();
    const step = (id: string, after: string[]) => ({ id, task: "t", input: null, after });
    const define = (...steps: object[]) => api("POST", "/definitions", { source: { name: "w", steps, output: null } }, json);
    expect((await define(step("a", ["b"]))).body.error).toMatchObject({ code: "LONGSHORE_BAD_DEFINITION", field: "steps.a" });
    expect((await define(step("a", ["b"]), step("b", ["a"]))).body.error.message).toContain("circle");
    expect((await define(step("a", []), step("a", []))).status).toBe(400);
  });

  it("with a mistake are refused with line and column", async () => {
    const { api } = await startAdminServer();
    const { status, body } = await api("POST", "/definitions", "name: CI\non: push\njobs:\n  a: { run: x, needs: b }\n", yaml);
    expect(status).toBe(400);
    expect(body.error).toMatchObject({ code: "LONGSHORE_BAD_DEFINITION", line: 4, column: expect.any(Number) });
  });

  it("with something odd are accepted, with a warning that names the place", async () => {
    const { api } = await startAdminServer();
    const { body } = await api("POST", "/definitions", "name: CI\non: push\njobs:\n  a: { run: x, colour: red }\n", yaml);
    expect(body.warnings).toMatchObject([{ line: 4, field: "jobs.a.colour" }]);
  });

  it("of another content type are refused, naming those that are taken", async () => {
    const { api } = await startAdminServer();
    const { status, body } = await api("POST", "/definitions", file, { "content-type": "text/plain" });
    expect([status, body.error.field]).toEqual([400, "content-type"]);
    expect(body.error.expected).toContain("application/yaml");
  });

  it("are listed in the order of their arrival, in pages", async () => {
    const { api, clock } = await startAdminServer();
    for (const name of ["one", "two", "three"]) {
      await clock.advance(1);
      await api("POST", `/definitions?name=${name}`, file, yaml);
    }
    const first = (await api("GET", "/definitions?limit=2")).body;
    const second = (await api("GET", `/definitions?limit=2&after=${first.next}`)).body;
    expect([...first.items, ...second.items].map((item: { name: string }) => item.name)).toEqual(["one", "two", "three"]);
    expect(second.next).toBeNull();
  });

  it("of a file replace its schedules, and a mistake in one stores nothing", async () => {
    const { api } = await startAdminServer();
    const on = (text: string) => file.replace("on: push", `on: { schedule: [${text}] }`);
    const define = (text: string) => api("POST", "/definitions?name=w", text, yaml);
    const names = async () => (await api("GET", "/schedules")).body.items.map(({ name }: { name: string }) => name);
    expect((await define(on("{ every: 5m }, { every: 1h, name: slow }"))).status).toBe(201);
    expect(await names()).toEqual(["slow", "w"]);
    const wrong = await define(on("{ cron: 0 0 30 2 * }").replace("npm test", "npm run test"));
    expect(wrong.body.error).toMatchObject({ code: "LONGSHORE_BAD_DEFINITION", field: "on.schedule[0].cron", line: 2, column: 18 });
    expect((await api("GET", "/definitions/w")).body.version).toBe(1);
    // The same workflow with other times is no new version.
    expect((await define(on("{ every: 6m }"))).status).toBe(200);
    expect((await api("GET", "/schedules/w")).body).toMatchObject({ every: 360_000, source: "w" });
    expect(await names()).toEqual(["w"]);
    expect((await define(file)).status).toBe(201);
    expect(await names()).toEqual([]);
  });

  it("are kept in every version that ran", async () => {
    const { api } = await startAdminServer();
    const first = (await api("POST", "/definitions?name=w", file, yaml)).body.definition;
    await api("POST", "/definitions?name=w", file.replace("npm test", "npm run test"), yaml);
    expect((await api("GET", "/definitions/w")).body.version).toBe(2);
    expect((await api("GET", `/definitions/w?id=${first.id}`)).body).toMatchObject({ version: 1, name: "w" });
    expect((await api("GET", `/definitions/other?id=${first.id}`)).status).toBe(404);
    expect((await api("GET", "/definitions/nope")).status).toBe(404);
  });
});

describe("steps that other steps start or choose", () => {
  const simple = (reference: string) => ({ name: "work", taskReferenceName: reference, type: "SIMPLE", inputParameters: {} });
  const definition = {
    ...{ name: "parcel", version: 1, schemaVersion: 2, ownerEmail: "a@example.org", inputParameters: [], outputParameters: {} },
    tasks: [
      {
        ...{ name: "s", taskReferenceName: "s", type: "SWITCH", evaluatorType: "value-param", expression: "to" },
        ...{ inputParameters: { to: "US" }, decisionCases: { US: [simple("t1")] }, defaultCase: [] },
      },
      { name: "f", taskReferenceName: "f", type: "FORK_JOIN", inputParameters: {}, forkTasks: [[simple("b1")], [simple("b2")]] },
      { name: "j", taskReferenceName: "j", type: "JOIN", inputParameters: {}, joinOn: ["b1", "b2"] },
    ],
  };

  it("name them, in the definition and in its runs", async () => {
    const { api } = await startAdminServer();
    await api("POST", "/definitions", definition, json);
    const { body: run } = await api("POST", "/runs", { workflow: "parcel", input: {} });
    for (const path of ["/definitions/parcel", `/runs/${run.id}/steps`]) {
      const { steps, items = steps } = (await api("GET", path)).body;
      const edges = Object.fromEntries(items.map((step: Record<string, unknown>) => [step.id, [step.kind, step.startedBy]]));
      expect(edges).toMatchObject({
        t1: ["task", ["s"]],
        b1: ["task", ["f"]],
        b2: ["task", ["f"]],
        s: ["instant", []],
        j: ["join", ["f"]],
      });
    }
  });

  it("are defined over their own API too, and listed before their first start", async () => {
    const { api, send } = await startAdminServer();
    const answer = await send("PUT", "/api/metadata/workflow", {
      headers: json,
      body: JSON.stringify([definition]),
    });
    expect(answer.status).toBe(200);
    expect((await api("GET", "/definitions/parcel")).body.name).toBe("parcel");
    expect((await api("GET", "/definitions")).body.items).toMatchObject([{ name: "parcel" }]);
  });
});
