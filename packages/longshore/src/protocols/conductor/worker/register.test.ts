// Task definitions and schemas at the start.

import { describe, expect, it } from "vitest";
import { z } from "zod";
import { anyPoll, json, refusal } from "../../../../test/support/conductor-stub.ts";
import { type SetupOptions, setup } from "../../../../test/support/conductor-worker.ts";
import { until } from "../../../../test/support/until.ts";
import { task } from "../../../core/task.ts";
import { outputOnWire } from "./register.ts";

const schemas = { input: z.object({ name: z.string() }), output: z.object({ text: z.string() }) };
const greet = task("greet", ({ name }) => ({ text: `Hello, ${name}!` }), { ...schemas, description: "Greets" });
const putDefs = /^PUT \/api\/metadata\/taskdefs$/;
const postDefs = /^POST \/api\/metadata\/taskdefs$/;
const postSchema = /^POST \/api\/schema$/;

/** What was sent before the first poll. */
async function started(options: Omit<SetupOptions, "tasks">) {
  await using s = await setup({ tasks: [greet], ...options, wire: { registerTaskDef: true, ...options.wire } });
  await until(() => s.stub.seen(anyPoll).length > 0);
  const calls = s.stub.requests.filter(({ path }) => !path.includes("/poll/"));
  return {
    calls: calls.map(({ method, path }) => `${method} ${path}`),
    bodies: calls.map(({ body }) => body),
    notices: s.notices.slice(1).map(({ level, message }) => `${level} ${message}`),
  };
}

describe("registering", () => {
  it("[C-REG-01] happens only on request, and then before the first poll", async () => {
    expect((await started({ wire: { registerTaskDef: false } })).calls).toEqual([]);
    expect((await started({})).calls).toContain("PUT /api/metadata/taskdefs");
  });

  it("[C-REG-05, C-REG-10, C-REG-03] replaces the definition with a PUT of one object, made from the template and the task's name", async () => {
    const template = { name: "other", retryCount: 5, retryLogic: "LINEAR_BACKOFF", timeoutPolicy: "ALERT_ONLY" } as const;
    const { calls, bodies } = await started({ wire: { taskDef: template, registerSchema: false } });
    expect(calls).toEqual(["PUT /api/metadata/taskdefs"]);
    expect(bodies).toEqual([
      { name: "greet", description: "Greets", retryCount: 5, retryLogic: "LINEAR_BACKOFF", timeoutPolicy: "ALERT_ONLY" },
    ]);
  });

  it("[C-REG-05, C-REG-10, C-REG-03] creates a minimal definition with a POST of a list when there is none to replace", async () => {
    const { calls, bodies } = await started({
      wire: { registerSchema: false },
      before: (stub) => void stub.misbehave(putDefs, refusal(404, "No such task by name greet")),
    });
    expect(calls).toEqual(["PUT /api/metadata/taskdefs", "POST /api/metadata/taskdefs"]);
    expect(bodies[1]).toEqual([{ name: "greet", description: "Greets" }]);
  });

  it("[C-REG-06] without overwriting keeps an existing definition, and creates a missing one", async () => {
    const wire = { overwriteTaskDef: false, registerSchema: false };
    const there = await started({
      wire,
      before: (stub) => void stub.misbehave(/^GET \/api\/metadata\/taskdefs\/greet$/, json(200, { name: "greet" })),
    });
    expect(there.calls).toEqual(["GET /api/metadata/taskdefs/greet"]);
    const fresh = await started({ wire });
    expect(fresh.calls).toEqual(["GET /api/metadata/taskdefs/greet", "POST /api/metadata/taskdefs"]);
  });

  it("[C-REG-02, C-REG-04, C-WIRE-06] publishes draft-07 schemas of version 1 and links them to the definition", async () => {
    const { calls, bodies } = await started({ before: (stub) => void stub.misbehave(postSchema, { status: 200 }) });
    expect(calls).toEqual(["POST /api/schema", "POST /api/schema", "PUT /api/metadata/taskdefs"]);
    expect(bodies[0]).toMatchObject({
      name: "greet_input",
      version: 1,
      type: "JSON",
      data: { $schema: "http://json-schema.org/draft-07/schema#", type: "object", required: ["name"] },
    });
    expect(bodies[1]).toMatchObject({ name: "greet_output", version: 1, type: "JSON", data: { type: "object" } });
    expect(bodies[2]).toMatchObject({
      name: "greet",
      inputSchema: { name: "greet_input", version: 1 },
      outputSchema: { name: "greet_output", version: 1 },
    });
  });

  it("[C-PIT-04] publishes schemas that allow additional fields, except with the strict option", async () => {
    const before: SetupOptions["before"] = (stub) => void stub.misbehave(postSchema, { status: 200 });
    const lenient = await started({ before });
    const strict = await started({ before, wire: { strictSchema: true } });
    expect(lenient.bodies[0]).toMatchObject({ data: { additionalProperties: true } });
    expect(strict.bodies[0]).toMatchObject({ data: { additionalProperties: false } });
  });

  it("[C-REG-07] continues without schemas when the server does not support them", async () => {
    const { calls, bodies, notices } = await started({});
    expect(calls).toEqual(["POST /api/schema", "PUT /api/metadata/taskdefs"]);
    expect(bodies[1]).toEqual({ name: "greet", description: "Greets" });
    expect(notices.filter((notice) => notice.startsWith("warn"))).toEqual([]);
  });

  it("reports a schema that JSON Schema cannot describe, and publishes the other one", async () => {
    const big = task("big", ({ n }) => ({ n: Number(n) }), { input: z.object({ n: z.bigint() }), output: z.object({ n: z.number() }) });
    await using s = await setup({
      tasks: [big],
      wire: { registerTaskDef: true },
      before: (stub) => void stub.misbehave(postSchema, { status: 200 }),
    });
    await until(() => s.stub.seen(anyPoll).length > 0);
    expect(s.stub.seen(postSchema).map(({ body }) => body)).toMatchObject([{ name: "big_output" }]);
    expect(s.notices.map(({ message }) => message)).toContain(
      "The worker starts though the schema big_input was not registered: JSON Schema cannot express it",
    );
  });

  it("[C-REG-08] that fails is a warning, and the worker starts", async () => {
    const { notices } = await started({
      wire: { registerSchema: false },
      before: (stub) => {
        stub.misbehave(putDefs, refusal(500, "disk full"));
        stub.misbehave(postDefs, refusal(500, "disk full"));
      },
    });
    expect(notices[0]).toBe(
      "warn The worker starts though the task definition greet was not registered: the server answered status 500: disk full",
    );
  });

  it("[C-REG-09] reports where to see the definition", async () => {
    const usual = await started({ wire: { registerSchema: false } });
    expect(usual.notices[0]).toMatch(/^info Registered the task definition greet: http:\/\/127\.0\.0\.1:\d+\/taskDef\/greet$/);
    const told = await started({ wire: { registerSchema: false, env: { CONDUCTOR_UI_SERVER_URL: "https://ui" } } });
    expect(told.notices[0]).toContain("https://ui/taskDef/greet");
  });

  it("is repeated when the server could not be reached", async () => {
    await using s = await setup({
      tasks: [greet],
      wire: { registerTaskDef: true, registerSchema: false },
      before: async (stub) => stub.close(),
    });
    await until(() => s.notices.some(({ message }) => message.includes("poll of greet fails")));
    await s.stub.listen();
    await s.clock.armed(3_000);
    await s.clock.advance(3_000);
    await until(() => s.stub.seen(putDefs).length === 1);
  });
});

it("[C-SCH-03] describes an output that is not an object as it is sent", () => {
  const $schema = "http://json-schema.org/draft-07/schema#";
  const object = { $schema, type: "object", properties: {}, required: [] };
  expect(outputOnWire(object, false)).toBe(object);
  expect(outputOnWire({ $schema, type: "array", items: { $ref: "#/definitions/A" }, definitions: { A: {} } }, true)).toEqual({
    $schema,
    type: "object",
    properties: { result: { type: "array", items: { $ref: "#/definitions/A" } } },
    required: ["result"],
    additionalProperties: false,
    definitions: { A: {} },
  });
  expect(outputOnWire({ $schema, type: ["string", "null"], nullable: true }, false)).toMatchObject({ required: [] });
});
