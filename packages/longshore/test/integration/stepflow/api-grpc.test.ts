// The gRPC API: the same flows and runs as over REST, and the runs that workers request.

import { describe, expect, it } from "vitest";
import type { Json } from "../../../src/core/json/json.ts";
import { GrpcCode, type GrpcError } from "../../../src/net/grpc/status.ts";
import type { Rpc } from "../../../src/net/protobuf/protobuf.ts";
import { TaskErrorCode } from "../../../src/protocols/stepflow/wire/messages.ts";
import * as services from "../../../src/protocols/stepflow/wire/services.ts";
import {
  ComponentsService,
  FlowsService,
  HealthService,
  OrchestratorService,
  RunsService,
} from "../../../src/protocols/stepflow/wire/services.ts";
import { oneStep, startStepflow } from "../../support/stepflow-server.ts";

const echo = oneStep("/builtin/noop", { $input: "$" });

describe("flows and runs over gRPC", () => {
  it("are stored, run and read as over REST", async () => {
    const { channel, call } = await startStepflow();
    const stored = await channel.unary(FlowsService.StoreFlow, { flow: echo });
    expect(stored).toMatchObject({ stored: true, diagnostics: { numFatal: 0 } });
    // The members of a Struct have no order, so the id is that of the flow with sorted keys.
    expect((await channel.unary(FlowsService.StoreFlow, { flow: Object.fromEntries(Object.entries(echo).reverse()) })).flowId).toBe(
      stored.flowId,
    );
    const created = await channel.unary(RunsService.CreateRun, { flowId: stored.flowId, input: [{ a: 1 }], wait: true });
    expect(created).toMatchObject({
      summary: { flowId: stored.flowId, flowName: "one", status: 2, items: { total: 1, completed: 1 }, createdAt: expect.any(Number) },
      results: [{ itemIndex: 0, status: 2, output: { a: 1 } }],
    });
    const { runId = "" } = created.summary ?? {};
    const rest = (await call("GET", `/runs/${runId}`)).body;
    const got = await channel.unary(RunsService.GetRun, { runId, wait: true });
    expect(got.steps).toMatchObject([{ stepId: "s1", status: 2, component: "/builtin/noop", output: { a: 1 } }]);
    expect(got.summary).toEqual({
      ...rest.summary,
      createdAt: Date.parse(rest.summary.createdAt),
      completedAt: Date.parse(rest.summary.completedAt),
    });
    expect((await channel.unary(RunsService.ListRuns, { status: 2, limit: 5 })).runs).toEqual([got.summary]);
    expect((await channel.unary(RunsService.GetRunItems, { runId })).results).toEqual(created.results);
    expect((await channel.unary(RunsService.GetRunSteps, { runId })).steps).toEqual(got.steps);
    expect((await channel.unary(RunsService.GetStepDetail, { runId, stepId: "s1" })).step).toEqual(got.steps[0]);
    expect(await channel.unary(RunsService.GetRunFlow, { runId })).toMatchObject({ flow: echo, flowId: stored.flowId });
    expect((await channel.unary(RunsService.CancelRun, { runId })).summary).toMatchObject({ status: 2 });
    await channel.unary(RunsService.DeleteRun, { runId });
    expect((await channel.unary(RunsService.ListRuns, {})).runs).toEqual([]);
    expect((await channel.unary(FlowsService.GetFlow, { flowId: stored.flowId })).flow).toEqual(echo);
    expect((await channel.unary(FlowsService.GetFlowVariables, { flowId: stored.flowId })).variables).toEqual({});
    await channel.unary(FlowsService.DeleteFlow, { flowId: stored.flowId });
    expect((await channel.unary(HealthService.HealthCheck, {})).status).toBe("healthy");
    expect((await channel.unary(ComponentsService.ListRegisteredComponents, { excludeSchemas: true })).components.length).toBeGreaterThan(
      9,
    );
  });

  it("[S-QUEUE-20] are served by every method of the services, and by no other", async () => {
    const { channel } = await startStepflow();
    const answer = async (rpc: Rpc) => {
      try {
        if (rpc.kind === "unary") await channel.unary(rpc, {});
        else for await (const _ of channel.serverStream(rpc, {})) break;
        return GrpcCode.OK;
      } catch (error) {
        return (error as GrpcError).code;
      }
    };
    const methods = Object.values(services).flatMap((service) => Object.values(service as Record<string, Rpc>));
    expect(methods).toHaveLength(24);
    const refusals = [GrpcCode.OK, GrpcCode.INVALID_ARGUMENT, GrpcCode.NOT_FOUND];
    for (const rpc of methods) expect(refusals, rpc.path).toContain(await answer(rpc));
    const { HealthCheck } = HealthService;
    expect(await answer({ ...HealthCheck, path: `${HealthCheck.path}er` })).toBe(GrpcCode.UNIMPLEMENTED);
  });

  it("[S9-61] keep their values: integers, large numbers, nested nulls, and absent values", async () => {
    const { channel, call, store, url } = await startStepflow();
    const flowId = await store(echo);
    const values: Json[] = [42, -0.5, 9_007_199_254_740_991, "42", null, [], {}, { a: { b: [null, { c: {} }] }, n: 1e21 }, true];
    const { results } = await channel.unary(RunsService.CreateRun, { flowId, input: values, wait: true });
    expect(results.map(({ output }) => output)).toEqual(values);
    const { runs } = await channel.unary(RunsService.ListRuns, {});
    const { body } = await call("GET", `/runs/${runs[0]?.runId}/items`);
    expect(JSON.stringify(body.results.map(({ output }: { output: Json }) => output))).toBe(JSON.stringify(values));
    // Compares the text and not only the value, because the reference writes 42.0 here.
    const text = await (await fetch(`${url}/api/v1/runs/${runs[0]?.runId}/items`)).text();
    for (const value of values) expect(text).toContain(`"output":${JSON.stringify(value)}`);
  });

  it("report why a run failed", async () => {
    const { channel, store } = await startStepflow();
    const flowId = await store(oneStep("/builtin/create_messages", {}));
    const { summary, results } = await channel.unary(RunsService.CreateRun, { flowId, input: [1], wait: true });
    expect(summary).toMatchObject({ status: 3, items: { failed: 1 } });
    expect(results).toMatchObject([
      { status: 3, errorCode: TaskErrorCode.INVALID_INPUT, errorMessage: expect.stringContaining("expected a text") },
    ]);
  });
});

describe("runs that workers request", () => {
  it("belong to the run that they name, and one key starts one run", async () => {
    const { channel, submit, store, call, claim, complete, ended } = await startStepflow();
    const flowId = await store(echo);
    const rootRunId = await submit(oneStep("/hold", {}), [{}]);
    const request = { runRequest: { flowId, input: [7], wait: true }, rootRunId, subflowKey: "k1" };
    const first = await channel.unary(OrchestratorService.SubmitRun, request);
    expect(first).toMatchObject({ flowId, status: 2, rootRunId, parentRunId: rootRunId, results: [{ itemIndex: 0, output: 7 }] });
    expect((await channel.unary(OrchestratorService.SubmitRun, request)).runId).toBe(first.runId);
    const other = await channel.unary(OrchestratorService.SubmitRun, { ...request, subflowKey: "k2" });
    expect(other.runId).not.toBe(first.runId);
    const plain = await channel.unary(OrchestratorService.SubmitRun, { runRequest: { flowId, input: [1, 2] } });
    expect(plain).toMatchObject({ rootRunId: plain.runId, results: [] });
    const got = await channel.unary(OrchestratorService.GetRun, { runId: plain.runId, wait: true, includeResults: true, resultOrder: 1 });
    expect(got).toMatchObject({ status: 2, items: { total: 2, completed: 2 }, results: [{ output: 1 }, { output: 2 }] });
    expect((await channel.unary(OrchestratorService.GetRun, { runId: plain.runId })).results).toEqual([]);
    await complete(await claim("hold"), 1);
    await ended(rootRunId);
    expect((await call("GET", `/runs?parentRunId=${rootRunId}`)).body.runs).toHaveLength(2);
  });

  it("may be of flows that they have stored as blobs", async () => {
    const { channel, call } = await startStepflow();
    const { blobId } = (await call("POST", "/blobs", { data: echo, blobType: "flow" })).body;
    const { results } = await channel.unary(OrchestratorService.SubmitRun, { runRequest: { flowId: blobId, input: ["x"], wait: true } });
    expect(results).toMatchObject([{ status: 2, output: "x" }]);
  });

  it("fail as soon as one of their steps fails, unlike runs of clients", async () => {
    const { channel, store, run, submit } = await startStepflow();
    const flowId = await store({
      steps: [{ id: "bad", component: "/builtin/create_messages", input: {}, mustExecute: true }],
      output: "fine",
    });
    expect((await run(flowId, [1])).results[0]).toMatchObject({ status: 2, output: "fine" });
    const rootRunId = await submit(oneStep("/hold", {}), [{}]);
    const inner = await channel.unary(OrchestratorService.SubmitRun, { runRequest: { flowId, input: [1], wait: true }, rootRunId });
    expect(inner).toMatchObject({ status: 3, results: [{ status: 3, errorCode: TaskErrorCode.INVALID_INPUT }] });
  });
});
