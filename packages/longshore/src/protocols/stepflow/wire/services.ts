// The services of `stepflow.v1`: the request and response message of each method. The gRPC client and server both use these tables.
import { service } from "../../../net/protobuf/protobuf.ts";
import * as api from "./api-messages.ts";
import * as messages from "./messages.ts";

export const TasksService = service("stepflow.v1.TasksService", {
  PullTasks: [messages.PullTasksRequest, messages.TaskAssignment, "stream"],
  GetOrchestratorForRun: [messages.GetOrchestratorForRunRequest, messages.GetOrchestratorForRunResponse],
});

export const OrchestratorService = service("stepflow.v1.OrchestratorService", {
  SubmitRun: [messages.OrchestratorSubmitRunRequest, messages.OrchestratorRunStatus],
  GetRun: [messages.OrchestratorGetRunRequest, messages.OrchestratorRunStatus],
  CompleteTask: [messages.CompleteTaskRequest, messages.CompleteTaskResponse],
  TaskHeartbeat: [messages.TaskHeartbeatRequest, messages.TaskHeartbeatResponse],
});

export const BlobService = service("stepflow.v1.BlobService", {
  PutBlob: [messages.PutBlobRequest, messages.PutBlobResponse],
  GetBlob: [messages.GetBlobRequest, messages.GetBlobResponse],
});

export const ComponentsService = service("stepflow.v1.ComponentsService", {
  ListRegisteredComponents: [api.ListRegisteredComponentsRequest, api.ListRegisteredComponentsResponse],
});

export const FlowsService = service("stepflow.v1.FlowsService", {
  StoreFlow: [api.StoreFlowRequest, api.StoreFlowResponse],
  GetFlow: [api.GetFlowRequest, api.GetFlowResponse],
  DeleteFlow: [api.DeleteFlowRequest, api.DeleteFlowResponse],
  GetFlowVariables: [api.GetFlowVariablesRequest, api.GetFlowVariablesResponse],
});

export const RunsService = service("stepflow.v1.RunsService", {
  CreateRun: [messages.CreateRunRequest, api.CreateRunResponse],
  ListRuns: [api.ListRunsRequest, api.ListRunsResponse],
  GetRun: [api.GetRunRequest, api.GetRunResponse],
  DeleteRun: [api.DeleteRunRequest, api.DeleteRunResponse],
  GetRunItems: [api.GetRunItemsRequest, api.GetRunItemsResponse],
  GetRunFlow: [api.GetRunFlowRequest, api.GetRunFlowResponse],
  GetRunSteps: [api.GetRunStepsRequest, api.GetRunStepsResponse],
  GetStepDetail: [api.GetStepDetailRequest, api.GetStepDetailResponse],
  GetRunEvents: [api.GetRunEventsRequest, api.StatusEvent, "stream"],
  CancelRun: [api.CancelRunRequest, api.CancelRunResponse],
});

export const HealthService = service("stepflow.v1.HealthService", {
  HealthCheck: [api.HealthCheckRequest, api.HealthCheckResponse],
});
