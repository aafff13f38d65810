// Invalid requests to each endpoint: they are refused in the API's own format, with the field, what was wrong and what was expected.

import { request } from "node:http";
import { connect, type IncomingHttpHeaders } from "node:http2";
import { describe, expect, it } from "vitest";
import type { Json } from "../../../src/core/json/json.ts";
import { GrpcCode } from "../../../src/net/grpc/status.ts";
import { FlowsService, OrchestratorService, RunsService } from "../../../src/protocols/stepflow/wire/services.ts";
import { oneStep, raw, type StepflowServer, startStepflow } from "../../support/stepflow-server.ts";

const nobody = "00000000-0000-7000-8000-000000000000";
const nothing = "0".repeat(64);

describe("an invalid request", () => {
  const bodies: [method: string, path: string, body: Json | Uint8Array | undefined, status: number, message: string][] = [
    ["POST", "/flows", raw("{nope"), 400, "The body is not JSON"],
    ["POST", "/flows", raw("[1]"), 400, "The body is a list, expected an object"],
    ["POST", "/flows", raw(`{"flow":${"[".repeat(200)}${"]".repeat(200)}}`), 400, "nests deeper than 100 levels"],
    ["POST", "/flows", {}, 400, "flow is required"],
    ["POST", "/flows", { flow: [] }, 400, "flow is a list, expected an object"],
    ["POST", "/flows", { flow: { steps: 3 } }, 400, "`steps` is not a list"],
    ["POST", "/flows", { flow: { steps: [{ id: "a" }] } }, 400, "has no `component`"],
    [
      "POST",
      "/flows",
      { flow: { steps: [{ id: "a", component: "/x", onError: { action: "retry", maxRetries: -1 } }] } },
      400,
      "maxRetries is -1: expected a whole number from 0 to 1000000 at steps[0].onError.maxRetries",
    ],
    ["POST", "/flows", { flow: {}, dryRun: "yes" }, 400, "dryRun is a string, expected true or false"],
    ["GET", "/flows/xyz", undefined, 400, 'flow_id is "xyz", expected 64 hexadecimal digits'],
    ["GET", `/flows/${nothing}`, undefined, 404, `flow '${nothing}' not found`],
    ["GET", `/flows/${nothing}/variables`, undefined, 404, "not found"],
    ["DELETE", "/flows/xyz", undefined, 400, "flow_id"],
    ["POST", "/runs", raw(""), 400, "flow_id"],
    ["POST", "/runs", { input: [{}] }, 400, "flow_id"],
    ["POST", "/runs", { flowId: 5, input: [{}] }, 400, "flowId is a number, expected a text"],
    ["POST", "/runs", { flowId: nothing, input: [{}] }, 404, `flow '${nothing}' not found`],
    ["GET", "/runs?limit=zz", undefined, 400, 'limit is "zz", expected a whole number'],
    ["GET", "/runs?limit=5000", undefined, 400, "limit is 5000, expected at most 1000"],
    ["GET", "/runs?status=zz", undefined, 400, 'status is "zz", expected one of'],
    ["GET", "/runs?status=77", undefined, 400, 'status is "77", expected one of'],
    ["GET", "/runs?rootsOnly=maybe", undefined, 400, 'rootsOnly is "maybe", expected true or false'],
    ["GET", `/runs/${nobody}`, undefined, 404, `run '${nobody}' not found`],
    ["GET", `/runs/${nobody}?wait=maybe`, undefined, 400, "wait"],
    ["GET", `/runs/${nobody}?timeoutSecs=-1`, undefined, 400, "timeoutSecs"],
    ["DELETE", `/runs/${nobody}`, undefined, 404, "not found"],
    ["GET", `/runs/${nobody}/items`, undefined, 404, "not found"],
    ["GET", `/runs/${nobody}/items?resultOrder=zz`, undefined, 400, "resultOrder"],
    ["GET", `/runs/${nobody}/flow`, undefined, 404, "not found"],
    ["GET", `/runs/${nobody}/steps`, undefined, 404, "not found"],
    ["GET", `/runs/${nobody}/steps?itemIndex=-1`, undefined, 400, "itemIndex"],
    ["GET", `/runs/${nobody}/steps/s1?asof=x`, undefined, 400, "asof"],
    ["GET", `/runs/${nobody}/events`, undefined, 404, "not found"],
    ["GET", `/runs/${nobody}/events?since=x`, undefined, 400, "since"],
    ["GET", `/runs/${nobody}/events?eventTypes=zz`, undefined, 400, "eventTypes"],
    ["POST", `/runs/${nobody}/cancel`, undefined, 404, "not found"],
    ["POST", `/runs/${nobody}/retry`, undefined, 404, "not found"],
    ["GET", "/components?excludeSchemas=maybe", undefined, 400, "excludeSchemas"],
    ["GET", "/nothing", undefined, 404, "/api/v1/nothing"],
    ["PUT", "/runs", undefined, 405, "PUT"],
  ];

  it("is refused in the API's own format at every endpoint", async () => {
    const { call } = await startStepflow();
    const names: { [status: number]: string } = { 400: "INVALID_ARGUMENT", 404: "NOT_FOUND", 405: "UNIMPLEMENTED" };
    for (const [method, path, body, status, message] of bodies) {
      const what = `${method} ${path} ${body instanceof Uint8Array ? Buffer.from(body).toString().slice(0, 80) : JSON.stringify(body)}`;
      const answer = await call(method, path, body);
      expect(answer.status, what).toBe(status);
      expect(answer.body, what).toEqual({ error: { code: status, message: expect.stringContaining(message), status: names[status] } });
    }
  });

  const runs: [more: { [name: string]: Json }, message: string][] = [
    [{ input: { a: 1 } }, "input is an object, expected a list"],
    [{ maxConcurrency: 0 }, "maxConcurrency is 0: expected a whole number from 1 to"],
    [{ maxConcurrency: -1 }, "maxConcurrency is -1, expected a whole number"],
    [{ maxConcurrency: 1.5 }, "maxConcurrency is 1.5, expected a whole number"],
    [{ timeoutSecs: "soon" }, 'timeoutSecs is "soon", expected a whole number'],
    [{ wait: 1 }, "wait is a number, expected true or false"],
    [{ overrides: [] }, "overrides is a list, expected an object"],
    [{ overrides: { steps: { s1: 3 } } }, "The override is not an object"],
    [{ overrides: { steps: { s1: { $type: "json_patch", value: {} } } } }, "json_patch are not supported"],
    [{ overrides: { steps: { s1: { value: { component: null } } } } }, "With its overrides the flow cannot be run"],
    [{ variables: [1] }, "variables is a list, expected an object"],
  ];

  it("to start a run is refused with the wrong field, and starts none", async () => {
    const { call, store } = await startStepflow();
    const flowId = await store(oneStep("/builtin/noop", {}));
    for (const [more, message] of runs) {
      const { status, body } = await call("POST", "/runs", { flowId, input: [{}], ...more });
      expect([status, body.error.status], message).toEqual([400, "INVALID_ARGUMENT"]);
      expect(body.error.message).toContain(message);
    }
    expect((await call("GET", "/runs")).body.runs).toEqual([]);
  });

  it("over gRPC is refused with the same message and gRPC's own code", async () => {
    const { channel } = await startStepflow();
    const refused = async (asked: Promise<unknown>) => {
      const error = await asked.then(
        () => undefined,
        (thrown) => thrown as { code: number; message: string },
      );
      return [error?.code, error?.message];
    };
    const { INVALID_ARGUMENT, NOT_FOUND } = GrpcCode;
    expect(await refused(channel.unary(FlowsService.StoreFlow, {}))).toEqual([INVALID_ARGUMENT, "flow is required"]);
    expect(await refused(channel.unary(FlowsService.GetFlow, { flowId: nothing }))).toEqual([NOT_FOUND, `flow '${nothing}' not found`]);
    expect(await refused(channel.unary(FlowsService.StoreFlow, { flow: { steps: 3 } }))).toEqual([
      INVALID_ARGUMENT,
      "`steps` is not a list: expected a list at steps",
    ]);
    expect(await refused(channel.unary(RunsService.CreateRun, { flowId: "xyz", input: [1] }))).toMatchObject([
      INVALID_ARGUMENT,
      expect.stringContaining("flow_id"),
    ]);
    expect(await refused(channel.unary(RunsService.GetRun, { runId: nobody }))).toEqual([NOT_FOUND, `run '${nobody}' not found`]);
    expect(await refused(channel.unary(RunsService.GetRun, {}))).toMatchObject([
      INVALID_ARGUMENT,
      expect.stringContaining("run_id is missing"),
    ]);
    expect(await refused(channel.unary(OrchestratorService.SubmitRun, {}))).toMatchObject([
      INVALID_ARGUMENT,
      expect.stringContaining("run_request is missing"),
    ]);
    const lost = { runRequest: { flowId: nothing, input: [1] }, rootRunId: nobody };
    expect(await refused(channel.unary(OrchestratorService.SubmitRun, lost))).toMatchObject([
      NOT_FOUND,
      expect.stringContaining("not found"),
    ]);
    expect(await refused(channel.unary(OrchestratorService.GetRun, { runId: "zz" }))).toMatchObject([
      INVALID_ARGUMENT,
      expect.stringContaining("expected a UUID"),
    ]);
  });

  it("over gRPC, with bytes that are not a message or an unknown enum value, is refused with its field", async () => {
    const { channel, run } = await startStepflow();
    const bytes = (hex: string) => Buffer.from(hex, "hex");
    const sent: [rpc: typeof RunsService.GetRun | typeof OrchestratorService.CompleteTask, hex: string, message: string][] = [
      [RunsService.GetRun, "0a05", "GetRunRequest.run_id: the input ends early: 5 bytes are announced and 0 are left"],
      [RunsService.GetRun, "0a02fffe", "GetRunRequest.run_id: the text is not valid UTF-8"],
      [RunsService.GetRun, "0801", "GetRunRequest.run_id: has wire type 0, expected wire type 2"],
      [OrchestratorService.CompleteTask, "0a0274311a05", "CompleteTaskRequest.error: the input ends early"],
    ];
    for (const [rpc, hex, message] of sent) {
      const garbled = { ...rpc, request: { ...rpc.request, encode: () => bytes(hex) } } as typeof RunsService.GetRun;
      await expect(channel.unary(garbled, {})).rejects.toMatchObject({
        code: GrpcCode.INVALID_ARGUMENT,
        message: expect.stringContaining(message),
      });
    }
    const refused = (message: string) => ({ code: GrpcCode.INVALID_ARGUMENT, message: expect.stringContaining(message) });
    await expect(channel.unary(RunsService.ListRuns, { status: 77 })).rejects.toMatchObject(refused("status is 77, expected one of 0 ("));
    const order = { runId: nobody, resultOrder: 9 };
    await expect(channel.unary(RunsService.GetRunItems, order)).rejects.toMatchObject(refused("result_order is 9, expected one of"));
    const events = channel.serverStream(RunsService.GetRunEvents, { runId: nobody, eventTypes: [1, 99] });
    await expect(events.next()).rejects.toMatchObject(refused("event_types is 99, expected one of"));
    expect((await run(oneStep("/builtin/noop", 1), [1])).summary.status).toBe(2);
  });

  it("that is larger than the limit is refused before it has arrived, over REST and over gRPC", async () => {
    const { url, run } = await startStepflow();
    const posted = await new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
      const headers = { "content-type": "application/json", "content-length": String(65 * 1024 * 1024) };
      const sent = request(`${url}/api/v1/flows`, { method: "POST", headers }, (answer) => {
        answer.setEncoding("utf8").on("data", (text: string) => resolve({ status: answer.statusCode, text }));
      });
      sent.on("error", reject);
      sent.write("{");
    });
    expect(posted.status).toBe(413);
    expect(JSON.parse(posted.text).error.message).toBe("The body is larger than 16777216 bytes, the limit of this route.");
    const session = connect(url);
    const stream = session.request({
      ":method": "POST",
      ":path": FlowsService.StoreFlow.path,
      "content-type": "application/grpc",
      te: "trailers",
    });
    // The header of a message of 65 MiB, without the message.
    stream.write(Buffer.from("0004100000", "hex"));
    const head = await new Promise<IncomingHttpHeaders>((resolve) => stream.once("response", resolve));
    session.destroy();
    expect([head["grpc-status"], head["grpc-message"]]).toEqual([
      String(GrpcCode.RESOURCE_EXHAUSTED),
      expect.stringContaining("the limit is 16777216"),
    ]);
    expect((await run(oneStep("/builtin/noop", 1), [1])).summary.status).toBe(2);
  });

  const noop = (id: string, input: Json) => ({ id, component: "/builtin/noop", input });
  const flows: [flow: { [name: string]: Json }, code: number, path: string, message: string][] = [
    [{ steps: [], output: { $step: "nobody" } }, 3003, "$.output", "undefined step 'nobody'"],
    [{ steps: [noop("a", { x: [{ $step: "nobody" }] })], output: 1 }, 3003, "$.steps[0].input.x[0]", "undefined step 'nobody'"],
    [{ steps: [noop("a", { $step: "a" })], output: { $step: "a" } }, 3002, "$.steps[0].input", "Step 'a' references itself"],
    [{ steps: [noop("a", { $step: "b" }), noop("b", { $step: "a" })], output: { $step: "b" } }, 3003, "$.steps[0].input", "'b'"],
    [{ steps: [noop("a", 1), noop("a", 2)], output: 1 }, 3000, "$.steps[1].id", "Duplicate step ID: 'a'"],
    [{ steps: [], output: { $input: "$.list[" } }, 3004, "$.output.$input", "is not closed"],
    [{ steps: [], output: { $input: "$.list[-1]" } }, 3004, "$.output.$input", "neither a number nor a quoted name"],
    [{ steps: [], output: { $step: 7 } }, 3004, "$.output.$step", "`$step` is not a text"],
    [{ steps: [], output: { $if: true } }, 3004, "$.output", "`$if` has no `then`"],
    [{ steps: [], output: { $coalesce: 1 } }, 3004, "$.output.$coalesce", "`$coalesce` is not a list"],
    [{ steps: [], output: { $variable: 3 } }, 3004, "$.output.$variable", "it is not a text"],
  ];

  it("to store a flow with unknown references, cycles or bad expressions gets path and code of each problem, and stores nothing", async () => {
    const { call, channel } = await startStepflow();
    for (const [flow, code, path, message] of flows) {
      const { status, body } = await call("POST", "/flows", { flow });
      expect([status, body.stored, body.diagnostics.numFatal], message).toEqual([200, false, 1]);
      const [first] = body.diagnostics.diagnostics;
      expect(first).toMatchObject({ code, path, level: 1, formatted: expect.stringContaining(message) });
      expect((await call("GET", `/flows/${body.flowId}`)).status).toBe(404);
      const overGrpc = await channel.unary(FlowsService.StoreFlow, { flow });
      expect(overGrpc).toMatchObject({
        stored: false,
        diagnostics: { diagnostics: expect.arrayContaining([expect.objectContaining({ code, path })]) },
      });
    }
  });

  it("with a token that does not allow it is also refused", async () => {
    const token = "read-secret-0123456789";
    const { call }: StepflowServer = await startStepflow({ tokens: [`read:${token}`] });
    const { status, body } = await call("POST", "/runs", {}, { authorization: `Bearer ${token}` });
    expect([status, body.error.status]).toEqual([403, "PERMISSION_DENIED"]);
    expect((await call("POST", "/blobs", { data: 1 })).body.error).toMatchObject({ code: 401, status: "UNAUTHENTICATED" });
  });
});
