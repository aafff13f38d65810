// Flows and runs over REST: storing, overriding, reading, and the responses to invalid requests.

import { createHash } from "node:crypto";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { JsonObject } from "../../../src/core/json/json.ts";
import { parseConfig } from "../../../src/protocols/stepflow/server/config/parse.ts";
import { serve } from "../../../src/server/server.ts";
import { either } from "../../support/flow-world.ts";
import { type Body, oneStep, raw, startStepflow } from "../../support/stepflow-server.ts";

const nobody = "00000000-0000-7000-8000-000000000000";
const noop = oneStep("/builtin/noop", { $input: "$" });

/** A flow whose output has another type than its schema. */
const mistyped = { name: "t", description: "d", schemas: { properties: { output: { type: "string" } } }, steps: [], output: 1 };

it("values are checked with schemas when the configuration requests it", async () => {
  const kinds = async (text: string) => {
    const { call } = await startStepflow({ config: parseConfig(text, { file: "stepflow-config.yml", environment: {} }).config });
    const { diagnostics } = (await call("POST", "/flows", { flow: mistyped })).body.diagnostics;
    return diagnostics.map(({ kind, code }: Body) => `${kind} ${code}`);
  };
  const configuration = 'plugins: { b: { type: builtin } }\nroutes: { "/": [ { plugin: b } ] }\n';
  expect(await kinds(configuration)).toEqual([]);
  expect(await kinds(`${configuration}typeCheck: true\n`)).toEqual(["typeMismatch 2100"]);
});

it("a flow from a file is found, and run, by the id that its runs show", async () => {
  const { engine, call, run } = await startStepflow();
  const flow = oneStep("/builtin/noop", { n: 1 });
  await engine.runs.define({ name: "from-a-file", dialect: "stepflow", source: JSON.stringify(flow) });
  await engine.runs.start({ workflow: "from-a-file", input: "{}" });
  const { flowId } = (await call("GET", "/runs")).body.runs[0];
  expect((await call("GET", `/flows/${flowId}`)).body).toMatchObject({ flow, flowId });
  expect((await run(flowId, [{}])).results).toMatchObject([{ output: { n: 1 } }]);
  expect((await call("GET", "/flows/01M7K0BWD8F3TTN0WQ8WSXDMZS")).body).toMatchObject({ error: { code: 404 } });
});

describe("the server", () => {
  it("[S9-53] reports its health without a token", async () => {
    const { call } = await startStepflow({ tokens: ["operator:operator-secret-0123456789"] });
    const { status, body } = await call("GET", "/health");
    expect(status).toBe(200);
    expect(body).toMatchObject({
      status: "healthy",
      timestamp: expect.stringMatching(/^\d{4}-.*Z$/),
      build: { gitVersion: expect.any(String), features: expect.any(Array) },
    });
    expect((await call("GET", "/runs")).status).toBe(401);
  });

  // The reference responds to pages of any origin. This server responds only to configured origins.
  it("[S9-53] responds to pages of the configured origins", async () => {
    const { call } = await startStepflow({ origins: ["https://ci.example.org"] });
    const asked = await call("OPTIONS", "/runs", undefined, {
      origin: "https://ci.example.org",
      "access-control-request-method": "POST",
      "access-control-request-headers": "content-type",
    });
    expect(asked.status).toBe(204);
    expect(asked.headers.get("access-control-allow-origin")).toBe("https://ci.example.org");
    expect(asked.headers.get("access-control-allow-methods")).toContain("POST");
    expect((await call("GET", "/health", undefined, { origin: "https://ci.example.org" })).headers.get("access-control-allow-origin")).toBe(
      "https://ci.example.org",
    );
    expect((await call("GET", "/health", undefined, { origin: "https://evil.example.org" })).status).toBe(403);
  });

  it("[S9-53] reports an unknown run as missing, and refuses an invalid flow id", async () => {
    const { call } = await startStepflow();
    const missing = await call("GET", `/runs/${nobody}`);
    expect(missing.status).toBe(404);
    expect(missing.body).toEqual({ error: { code: 404, message: `run '${nobody}' not found`, status: "NOT_FOUND" } });
    const malformed = await call("GET", "/flows/xyz");
    expect(malformed.status).toBe(400);
    expect(malformed.body.error).toMatchObject({ code: 400, status: "INVALID_ARGUMENT" });
  });
});

describe("flows", () => {
  it("[S9-54] are stored under the hash of their text, with their analysis", async () => {
    const { call } = await startStepflow();
    const text =
      '{"name":"n","steps":[{"id":"s1","component":"/builtin/noop","input":{"2":1.0,"1":9007199254740993}}],"output":{"$step":"s1"}}';
    const stored = await call("POST", "/flows", raw(`{ "flow": ${text.replaceAll(",", " ,\n ")}, "dryRun": false }`));
    const flowId = createHash("sha256").update(text).digest("hex");
    expect(stored.body).toEqual({
      flowId,
      stored: true,
      diagnostics: {
        diagnostics: [
          {
            kind: "missingFlowDescription",
            code: 1002,
            level: 3,
            formatted: "Workflow has no description",
            path: "$.description",
            experimental: false,
          },
        ],
        numFatal: 0,
        numError: 0,
        numWarning: 1,
      },
    });
    expect((await call("POST", "/flows", raw(`{"flow":${text}}`))).body.flowId).toBe(flowId);
    expect((await call("GET", `/flows/${flowId}`)).body).toEqual({ flow: JSON.parse(text), flowId, allExamples: [] });
    expect((await call("GET", `/blobs/${flowId}`)).body).toMatchObject({ blobType: "flow", blobId: flowId, data: JSON.parse(text) });
  });

  it("are in our own list of definitions, and can be started by name before their first run", async () => {
    const { call, url } = await startStepflow();
    await call("POST", "/flows", { flow: { ...noop, name: "named" } });
    const ours = `${url}/api/longshore/v1`;
    const { items } = (await (await fetch(`${ours}/definitions`)).json()) as { items: { name: string; dialect: string }[] };
    expect(items).toMatchObject([{ name: "named", dialect: "stepflow" }]);
    const body = JSON.stringify({ workflow: "named", input: 7 });
    const started = await fetch(`${ours}/runs`, { method: "POST", headers: { "content-type": "application/json" }, body });
    expect(started.status).toBe(201);
  });

  it("[S9-54] are only checked in a dry run, and not stored when a diagnostic is fatal", async () => {
    const { call } = await startStepflow();
    const dry = (await call("POST", "/flows", { flow: noop, dryRun: true })).body;
    expect(dry).toMatchObject({ stored: false, diagnostics: { numFatal: 0 } });
    expect((await call("GET", `/flows/${dry.flowId}`)).status).toBe(404);
    const fatal = (
      await call("POST", "/flows", { flow: { steps: [{ id: "s1", component: "/builtin/noop", input: { $step: "zz" } }], output: null } })
    ).body;
    expect(fatal).toMatchObject({ stored: false, diagnostics: { numFatal: 1 } });
    expect(fatal.diagnostics.diagnostics).toContainEqual(expect.objectContaining({ kind: "undefinedStepReference", code: 3003, level: 1 }));
    expect((await call("POST", "/runs", { flowId: fatal.flowId, input: [{}] })).status).toBe(404);
  });

  it("show their examples and their variables", async () => {
    const { call, store } = await startStepflow();
    const variables = {
      type: "object",
      properties: { key: { type: "string", description: "A key.", env_var: "MY_KEY" }, n: { type: "integer", default: 3 } },
      required: ["key"],
    };
    const flowId = await store({
      ...noop,
      schemas: { type: "object", properties: { variables } },
      examples: [{ name: "first", input: { a: 1 } }],
    });
    expect((await call("GET", `/flows/${flowId}`)).body.allExamples).toEqual([{ name: "first", input: { a: 1 } }]);
    expect((await call("GET", `/flows/${flowId}/variables`)).body).toEqual({
      flowId,
      variables: {
        key: { description: "A key.", required: true, schema: variables.properties.key, envVar: "MY_KEY" },
        n: { defaultValue: 3, required: false, schema: variables.properties.n },
      },
    });
    expect((await call("DELETE", `/flows/${flowId}`)).body).toEqual({});
    expect((await call("GET", `/flows/${flowId}`)).status).toBe(200);
  });
});

describe("runs", () => {
  it("[S9-55] accept overrides for their steps", async () => {
    const { run, call, store } = await startStepflow();
    const flowId = await store(oneStep("/builtin/noop", { a: 1, b: 2 }));
    const overridden = await run(flowId, [{}], { overrides: { steps: { s1: { value: { input: { b: 3 } } } } } });
    expect(overridden.results[0].output).toEqual({ a: 1, b: 3 });
    expect(overridden.summary).toMatchObject({ flowId, flowName: "one" });
    expect((await call("GET", `/runs/${overridden.summary.runId}/flow`)).body).toMatchObject({
      flowId,
      flow: { steps: [{ input: { a: 1, b: 2 } }] },
    });
    expect((await run(flowId, [{}], { overrides: {} })).results[0].output).toEqual({ a: 1, b: 2 });
    expect((await run(flowId, [{}])).results[0].output).toEqual({ a: 1, b: 2 });
    const unknown = await call("POST", "/runs", { flowId, input: [{}], overrides: { steps: { nope: { value: { input: 1 } } } } });
    expect(unknown.status).toBe(400);
    expect(unknown.body.error).toMatchObject({ code: 400, status: "INVALID_ARGUMENT", message: expect.stringContaining('no step "nope"') });
  });

  it("[S9-57] show their steps, with states, components, outputs and times", async () => {
    const { call, run } = await startStepflow();
    const flow: JsonObject = {
      name: "two",
      steps: [
        { id: "first", component: "/builtin/noop", input: { $input: "$" } },
        { id: "second", component: "/builtin/create_messages", input: { nope: { $step: "first" } } },
        { id: "unneeded", component: "/builtin/noop", input: 1 },
      ],
      output: { $step: "second" },
    };
    const { summary } = await run(flow, [{ a: 1 }]);
    const { body } = await call("GET", `/runs/${summary.runId}`);
    expect(body.summary).toMatchObject({
      ...summary,
      status: 3,
      items: { total: 1, failed: 1 },
      createdAtSeqno: 0,
      finishedAtSeqno: expect.any(Number),
    });
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/);
    expect(body.steps).toMatchObject([
      {
        stepId: "first",
        stepIndex: 0,
        itemIndex: 0,
        status: 2,
        component: "/builtin/noop",
        output: { a: 1 },
        startedAt: time,
        completedAt: time,
      },
      {
        stepId: "second",
        stepIndex: 1,
        itemIndex: 0,
        status: 3,
        errorCode: 2,
        errorMessage: expect.stringContaining("user_prompt is missing"),
      },
    ]);
    expect(body.steps).toHaveLength(2);
    expect((await call("GET", `/runs/${summary.runId}/steps`)).body.steps).toEqual(body.steps);
    const one = await call("GET", `/runs/${summary.runId}/steps/first`);
    expect(one.body).toEqual({ step: body.steps[0] });
    expect((await call("GET", `/runs/${summary.runId}/steps/first?asof=${one.body.step.journalSeqno}`)).status).toBe(200);
    const later = await call("GET", `/runs/${summary.runId}/steps/first?asof=9007199254740991`);
    expect(later.status).toBe(412);
    expect(later.body.error).toMatchObject({ status: "FAILED_PRECONDITION", message: expect.stringContaining("not yet consistent") });
    for (const path of ["steps/unneeded", "steps/nope", "steps/first?itemIndex=1"]) {
      expect((await call("GET", `/runs/${summary.runId}/${path}`)).status, path).toBe(404);
    }
    expect((await call("GET", `/runs/${summary.runId}/steps?itemIndex=5`)).body).toEqual({ steps: [] });
  });

  it("can be waited for exactly as long as the client requests", async () => {
    const { call, store, claim, complete } = await startStepflow();
    const flowId = await store(oneStep("/hold", { $input: "$" }));
    const started = await call("POST", "/runs", { flowId, input: [{}], wait: true, timeoutSecs: 0 });
    expect(started.body).toMatchObject({ summary: { status: 1, items: { total: 1, running: 1 } }, results: [{ itemIndex: 0, status: 1 }] });
    const { runId } = started.body.summary;
    expect((await call("GET", `/runs/${runId}?wait=true&timeoutSecs=0`)).body.summary.status).toBe(1);
    const waiting = call("GET", `/runs/${runId}?wait=true&timeoutSecs=60`);
    await complete(await claim("hold"), { done: true });
    expect((await waiting).body).toMatchObject({ summary: { status: 2 }, steps: [{ stepId: "s1", status: 2, output: { done: true } }] });
    expect((await call("GET", `/runs/${runId}?wait=true`)).body.summary.status).toBe(2);
  });

  it("are cancelled together with all runs that they have started", async () => {
    const { call, submit, claim, ended, engine } = await startStepflow();
    const inner = { steps: [{ id: "h", component: "/hold", input: { $input: "$" } }], output: { $step: "h" } };
    const runId = await submit(oneStep("/builtin/map", { workflow: { $literal: inner }, items: [1, 2] }), [{}]);
    const held = await claim("hold");
    const { body } = await call("POST", `/runs/${runId}/cancel`);
    expect(body.summary).toMatchObject({ runId, status: 4 });
    const family = (await call("GET", `/runs?rootRunId=${runId}`)).body.runs;
    expect(family).toHaveLength(2);
    for (const each of family) expect((await ended(each.runId)).summary).toMatchObject({ status: 4, rootRunId: runId });
    // The holder of a step is notified in response to its next report.
    expect(await engine.board.complete({ taskId: held.id, grant: held.grant }, "1")).toBe("cancel");
    expect((await call("POST", `/runs/${runId}/cancel`)).body.summary.status).toBe(4);
  });

  it("can be retried when they did not succeed, and removed when they have ended", async () => {
    const { call, submit, claim, complete, engine, ended } = await startStepflow();
    const runId = await submit(oneStep("/hold", {}), [{}]);
    expect((await call("DELETE", `/runs/${runId}`)).body.error).toMatchObject({ code: 412, status: "FAILED_PRECONDITION" });
    const early = await call("POST", `/runs/${runId}/retry`);
    expect([early.status, early.body.error.message]).toEqual([412, expect.stringContaining(`Run ${runId} is still running`)]);
    const first = await claim("hold");
    await engine.board.fail({ taskId: first.id, grant: first.grant }, { error: "boom", retryable: false });
    expect((await ended(runId)).summary.status).toBe(3);
    expect((await call("POST", `/runs/${runId}/retry`)).body.summary.status).toBe(1);
    await complete(await claim("hold"), 7);
    expect((await ended(runId)).summary.status).toBe(2);
    expect((await call("DELETE", `/runs/${runId}`)).body).toEqual({});
    expect((await call("GET", `/runs/${runId}`)).status).toBe(404);
  });

  it("[S9-63] have variables, with defaults and required ones", async () => {
    const { call, run, store } = await startStepflow();
    const schemas = {
      type: "object",
      properties: {
        variables: { type: "object", properties: { a: { type: "string" }, n: { type: "integer", default: 3 } }, required: ["a"] },
      },
    };
    const flowId = await store(oneStep("/builtin/noop", { a: { $variable: "a" }, n: { $variable: "n" } }, { schemas }));
    expect((await run(flowId, [{}], { variables: { a: "x" } })).results[0].output).toEqual({ a: "x", n: 3 });
    const missing = await call("POST", "/runs", { flowId, input: [{}] });
    expect(missing.status).toBe(400);
    expect(missing.body.error.message).toContain('"a" is required');
  });

  it("[S9-63] have variables from the environment, and disclose no secret ones in responses or in the log", async () => {
    vi.stubEnv("LONGSHORE_TEST_KEY", "environment-secret");
    onTestFinished(() => void vi.unstubAllEnvs());
    const lines: string[] = [];
    const stepflow = { variables: ["LONGSHORE_TEST_KEY"] };
    const server = await serve({ ephemeral: true, port: 0, stepflow, logger: { level: "debug", write: (line) => lines.push(line) } });
    onTestFinished(() => server.close(0));
    const post = async (path: string, body: object) => {
      const headers = { "content-type": "application/json" };
      const answer = await fetch(`${server.url}/api/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) });
      return { status: answer.status, text: await answer.text() };
    };
    const key = { type: "string", env_var: "LONGSHORE_TEST_KEY", is_secret: true, minLength: 5 };
    const schemas = { type: "object", properties: { variables: { type: "object", properties: { key } } } };
    const output = either({ $coalesce: [{ $variable: "key" }] }, "given", "missing");
    const { flowId } = JSON.parse((await post("/flows", { flow: { name: "secret", steps: [], output, schemas } })).text);
    const wait = { flowId, input: [{}], wait: true };
    const taken = await post("/runs", wait);
    expect(JSON.parse(taken.text).results).toMatchObject([{ status: 2, output: "given" }]);
    const refused = await post("/runs", { ...wait, variables: { key: "abcd" } });
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining("[REDACTED]")]);
    const given = await post("/runs", { ...wait, variables: { key: "given-secret" } });
    expect(given.status).toBe(200);
    expect(lines.length).toBeGreaterThan(0);
    for (const text of [taken.text, refused.text, given.text, ...lines]) expect(text).not.toMatch(/environment-secret|abcd|given-secret/);
  });

  it("are listed newest first, by name, status and family", async () => {
    const { call, run, submit } = await startStepflow();
    const first = (await run(noop, [{}])).summary;
    const open = await submit(oneStep("/hold", {}, { name: "held" }), [{}]);
    const batch = (await run(noop, [1, 2, 3])).summary;
    const ids = async (query: string) => (await call("GET", `/runs${query}`)).body.runs.map((each: { runId: string }) => each.runId);
    expect(await ids("")).toEqual([batch.runId, open, first.runId]);
    expect(await ids("?limit=1&offset=1")).toEqual([open]);
    expect(await ids("?status=1")).toEqual([open]);
    expect(await ids("?status=EXECUTION_STATUS_COMPLETED")).toEqual([batch.runId, first.runId]);
    expect(await ids("?flowName=one&rootsOnly=true")).toEqual([batch.runId, first.runId]);
    expect(await ids(`?rootRunId=${open}`)).toEqual([open]);
    expect(await ids(`?parentRunId=${open}`)).toEqual([]);
  });
});
