// The gRPC methods for flows, runs, components and health. They use the same services as REST.

import { sortedText } from "../../../../core/json/json-text.ts";
import { type GrpcCall, type GrpcMethod, serverStream, unary } from "../../../../net/grpc/service.ts";
import { StatusEventType } from "../../wire/api-messages.ts";
import { ExecutionStatus, ResultOrder } from "../../wire/messages.ts";
import { ComponentsService, FlowsService, HealthService, RunsService } from "../../wire/services.ts";
import { enumIn, invalid } from "../refuse.ts";
import { listComponents } from "./components.ts";
import { withMappedErrors } from "./error-mapping.ts";
import { follow } from "./events.ts";
import { gathered } from "./gathered-entries.ts";
import { healthOf } from "./health.ts";
import type { Services } from "./services.ts";

export function apiMethods(services: Services): GrpcMethod[] {
  return [...flowMethods(services), ...runMethods(services), ...otherMethods(services)].map(withMappedErrors);
}

function flowMethods({ flows }: Services): GrpcMethod[] {
  return [
    unary(FlowsService.StoreFlow, "definition.write", ({ flow, dryRun }) => {
      if (flow === undefined) throw invalid("flow", "is required");
      // The members of a Struct have no order, so they are sorted.
      return flows.store(sortedText(flow), dryRun);
    }),
    unary(FlowsService.GetFlow, "definition.read", ({ flowId }) => flows.get(flowId)),
    unary(FlowsService.DeleteFlow, "definition.remove", ({ flowId }) => {
      flows.checkId(flowId);
      return {};
    }),
    unary(FlowsService.GetFlowVariables, "definition.read", ({ flowId }) => flows.variables(flowId)),
  ];
}

function runMethods({ runs, events }: Services): GrpcMethod[] {
  const waitOptions = (request: { wait: boolean; timeoutSecs?: number }, call: GrpcCall) => {
    const { wait, timeoutSecs } = request;
    return { wait, gone: () => call.gone, ...(timeoutSecs === undefined ? {} : { timeoutSecs }) };
  };
  return [
    // Not async: see RunService.submit.
    unary(RunsService.CreateRun, "run.start", ({ input, ...request }, call) =>
      runs.create({ ...request, inputs: input }, waitOptions(request, call)).then(async ({ summary, ended }) => {
        const results = ended === undefined ? [] : await gathered((count) => runs.results(ended, ResultOrder.BY_INDEX, count));
        return { summary, results };
      }),
    ),
    unary(RunsService.ListRuns, "run.read", (request) => {
      if (request.status !== undefined) enumIn("status", request.status, ExecutionStatus);
      return runs.list(request);
    }),
    unary(RunsService.GetRun, "run.read", async (request, call) => {
      const { summary, run } = await runs.get(request.runId, waitOptions(request, call));
      return { summary, steps: await gathered((count) => runs.steps(run, undefined, count)) };
    }),
    unary(RunsService.DeleteRun, "run.remove", async ({ runId }) => {
      await runs.remove(runId);
      return {};
    }),
    unary(RunsService.GetRunItems, "run.read", async ({ runId, resultOrder }) => {
      const order = enumIn("result_order", resultOrder, ResultOrder) || ResultOrder.BY_INDEX;
      const run = await runs.findHead(runId);
      return { results: await gathered((count) => runs.results(run, order, count)) };
    }),
    unary(RunsService.GetRunFlow, "definition.read", ({ runId }) => runs.flow(runId)),
    unary(RunsService.GetRunSteps, "run.read", async ({ runId, itemIndex }) => {
      const run = await runs.findHead(runId);
      return { steps: await gathered((count) => runs.steps(run, itemIndex, count)) };
    }),
    unary(RunsService.GetStepDetail, "run.read", ({ runId, stepId, itemIndex, asof }) => runs.step(runId, stepId, itemIndex, asof)),
    unary(RunsService.CancelRun, "run.steer", ({ runId }) => runs.cancel(runId)),
    serverStream(RunsService.GetRunEvents, "run.read", async (request, call, sink) => {
      const types = request.eventTypes.map((type) => enumIn("event_types", type, StatusEventType));
      const { id } = await runs.findHead(request.runId);
      const options = {
        since: request.since ?? 0,
        types: new Set(types),
        withSubRuns: request.includeSubRuns,
        withResults: request.includeResults,
      };
      const leave = events.followers.places.enter(call.caller.name)(call.gone);
      try {
        for await (const next of follow(events, id, options, call.gone)) {
          let sent = Promise.resolve();
          await next.give((event) => {
            sent = sink.send(event);
          });
          await sent;
        }
      } finally {
        leave();
      }
    }),
  ];
}

function otherMethods(services: Services): GrpcMethod[] {
  return [
    unary(ComponentsService.ListRegisteredComponents, "component.read", ({ excludeSchemas }) =>
      listComponents(services.components, excludeSchemas, services.events.reader),
    ),
    unary(HealthService.HealthCheck, "server.health", () => healthOf(services)),
  ];
}
