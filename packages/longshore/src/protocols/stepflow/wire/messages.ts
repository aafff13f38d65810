// The messages of `stepflow.v1` that workers and orchestrators exchange: tasks, reports, blobs, and the runs that a component may start.
// Messages that only the API uses are in api-messages.ts. Both files fit 0.12 and 0.13: the later version renamed fields (`component`
// became `component_id`) and added some, but kept every number.
//
// Numbers that are easy to get wrong: CompleteTaskRequest.list_components is 5 although it is in one oneof with 2 and 3, and raw_data is 5
// in PutBlobRequest and 6 in GetBlobResponse.
import { type Decoded, message } from "../../../net/protobuf/protobuf.ts";

// common.proto

export const ExecutionStatus = {
  UNSPECIFIED: 0,
  RUNNING: 1,
  COMPLETED: 2,
  FAILED: 3,
  CANCELLED: 4,
  PAUSED: 5,
  RECOVERY_FAILED: 6,
} as const;

export const ResultOrder = { UNSPECIFIED: 0, BY_INDEX: 1, BY_COMPLETION: 2 } as const;

export const TaskErrorCode = {
  UNSPECIFIED: 0,
  TIMEOUT: 1,
  INVALID_INPUT: 2,
  COMPONENT_FAILED: 3,
  CANCELLED: 4,
  UNREACHABLE: 5,
  COMPONENT_NOT_FOUND: 6,
  RESOURCE_UNAVAILABLE: 7,
  EXPRESSION_FAILURE: 8,
  ORCHESTRATOR_ERROR: 9,
  WORKER_ERROR: 10,
} as const;
export type TaskErrorCode = keyof typeof TaskErrorCode;

export const ObservabilityContext = message("ObservabilityContext", {
  traceId: [1, "string", "optional"],
  spanId: [2, "string", "optional"],
  runId: [3, "string", "optional"],
  flowId: [4, "string", "optional"],
  stepId: [5, "string", "optional"],
});
export type ObservabilityContext = Decoded<typeof ObservabilityContext>;

export const ItemStatistics = message("ItemStatistics", {
  total: [1, "uint32"],
  completed: [2, "uint32"],
  running: [3, "uint32"],
  failed: [4, "uint32"],
  cancelled: [5, "uint32"],
});
export type ItemStatistics = Decoded<typeof ItemStatistics>;

export const ItemResult = message("ItemResult", {
  itemIndex: [1, "uint32"],
  status: [2, "enum"],
  output: [3, "Value"],
  errorMessage: [4, "string", "optional"],
  errorCode: [5, "enum", "optional"],
  completedAt: [6, "Timestamp"],
});
export type ItemResult = Decoded<typeof ItemResult>;

// runs.proto, the part that orchestrator.proto uses

export const CreateRunRequest = message("CreateRunRequest", {
  flowId: [1, "string"],
  input: [2, "Value", "repeated"],
  overrides: [3, "Struct"],
  variables: [4, "Value", "map"],
  maxConcurrency: [5, "uint32", "optional"],
  wait: [6, "bool"],
  timeoutSecs: [7, "uint64", "optional"],
});
export type CreateRunRequest = Decoded<typeof CreateRunRequest>;

// tasks.proto

export const TaskContext = message("TaskContext", { orchestratorServiceUrl: [1, "string"], rootRunId: [2, "string"] });
export type TaskContext = Decoded<typeof TaskContext>;

export const ListComponentsRequest = message("ListComponentsRequest", {});
export type ListComponentsRequest = Decoded<typeof ListComponentsRequest>;

export const ComponentInfo = message("ComponentInfo", {
  componentId: [1, "string"],
  description: [2, "string", "optional"],
  inputSchema: [3, "string", "optional"],
  outputSchema: [4, "string", "optional"],
  path: [5, "string"],
});
export type ComponentInfo = Decoded<typeof ComponentInfo>;

export const ListComponentsResponse = message("ListComponentsResponse", { components: [1, ComponentInfo, "repeated"] });
export type ListComponentsResponse = Decoded<typeof ListComponentsResponse>;

export const ComponentInfoRequest = message("ComponentInfoRequest", { componentId: [1, "string"] });
export type ComponentInfoRequest = Decoded<typeof ComponentInfoRequest>;

export const ComponentInfoResponse = message("ComponentInfoResponse", { info: [1, ComponentInfo] });
export type ComponentInfoResponse = Decoded<typeof ComponentInfoResponse>;

export const ComponentExecuteRequest = message("ComponentExecuteRequest", {
  componentId: [1, "string"],
  input: [2, "Value"],
  attempt: [3, "uint32"],
  observability: [4, ObservabilityContext],
  pathParams: [5, "string", "map"],
});
export type ComponentExecuteRequest = Decoded<typeof ComponentExecuteRequest>;

export const ComponentExecuteResponse = message("ComponentExecuteResponse", { output: [1, "Value"] });
export type ComponentExecuteResponse = Decoded<typeof ComponentExecuteResponse>;

export const PullTasksRequest = message("PullTasksRequest", { queueName: [1, "string"], workerId: [2, "string"] });
export type PullTasksRequest = Decoded<typeof PullTasksRequest>;

export const TaskAssignment = message("TaskAssignment", {
  taskId: [1, "string"],
  execute: [2, ComponentExecuteRequest, "oneof task"],
  listComponents: [3, ListComponentsRequest, "oneof task"],
  context: [4, TaskContext],
  heartbeatIntervalSecs: [5, "uint32"],
});
export type TaskAssignment = Decoded<typeof TaskAssignment>;

export const GetOrchestratorForRunRequest = message("GetOrchestratorForRunRequest", { runId: [1, "string"] });
export type GetOrchestratorForRunRequest = Decoded<typeof GetOrchestratorForRunRequest>;

export const GetOrchestratorForRunResponse = message("GetOrchestratorForRunResponse", { orchestratorServiceUrl: [1, "string"] });
export type GetOrchestratorForRunResponse = Decoded<typeof GetOrchestratorForRunResponse>;

// orchestrator.proto

export const TaskStatus = { UNSPECIFIED: 0, IN_PROGRESS: 1, ALREADY_CLAIMED: 2 } as const;

export const OrchestratorSubmitRunRequest = message("OrchestratorSubmitRunRequest", {
  runRequest: [1, CreateRunRequest],
  subflowKey: [2, "string", "optional"],
  rootRunId: [3, "string", "optional"],
});
export type OrchestratorSubmitRunRequest = Decoded<typeof OrchestratorSubmitRunRequest>;

export const OrchestratorGetRunRequest = message("OrchestratorGetRunRequest", {
  runId: [1, "string"],
  wait: [2, "bool"],
  includeResults: [3, "bool"],
  resultOrder: [4, "enum"],
  timeoutSecs: [5, "uint64", "optional"],
  rootRunId: [6, "string", "optional"],
});
export type OrchestratorGetRunRequest = Decoded<typeof OrchestratorGetRunRequest>;

export const OrchestratorRunStatus = message("OrchestratorRunStatus", {
  runId: [1, "string"],
  flowId: [2, "string"],
  flowName: [3, "string", "optional"],
  status: [4, "enum"],
  items: [5, ItemStatistics],
  createdAt: [6, "Timestamp"],
  completedAt: [7, "Timestamp"],
  results: [8, ItemResult, "repeated"],
  rootRunId: [9, "string"],
  parentRunId: [10, "string", "optional"],
  createdAtSeqno: [11, "uint64"],
});
export type OrchestratorRunStatus = Decoded<typeof OrchestratorRunStatus>;

export const TaskError = message("TaskError", { code: [1, "enum"], message: [2, "string"], data: [3, "Struct"] });
export type TaskError = Decoded<typeof TaskError>;

export const ListComponentsResult = message("ListComponentsResult", { components: [1, ComponentInfo, "repeated"] });
export type ListComponentsResult = Decoded<typeof ListComponentsResult>;

export const CompleteTaskRequest = message("CompleteTaskRequest", {
  taskId: [1, "string"],
  response: [2, ComponentExecuteResponse, "oneof result"],
  error: [3, TaskError, "oneof result"],
  runId: [4, "string", "optional"],
  listComponents: [5, ListComponentsResult, "oneof result"],
});
export type CompleteTaskRequest = Decoded<typeof CompleteTaskRequest>;

export const CompleteTaskResponse = message("CompleteTaskResponse", {});
export type CompleteTaskResponse = Decoded<typeof CompleteTaskResponse>;

export const TaskHeartbeatRequest = message("TaskHeartbeatRequest", {
  taskId: [1, "string"],
  workerId: [2, "string"],
  progress: [3, "float", "optional"],
  statusMessage: [4, "string", "optional"],
  runId: [5, "string", "optional"],
});
export type TaskHeartbeatRequest = Decoded<typeof TaskHeartbeatRequest>;

export const TaskHeartbeatResponse = message("TaskHeartbeatResponse", { shouldAbort: [1, "bool"], status: [2, "enum"] });
export type TaskHeartbeatResponse = Decoded<typeof TaskHeartbeatResponse>;

// blobs.proto

export const PutBlobRequest = message("PutBlobRequest", {
  jsonData: [1, "Value", "oneof content"],
  blobType: [2, "string"],
  filename: [3, "string", "optional"],
  contentType: [4, "string", "optional"],
  rawData: [5, "bytes", "oneof content"],
});
export type PutBlobRequest = Decoded<typeof PutBlobRequest>;

export const PutBlobResponse = message("PutBlobResponse", { blobId: [1, "string"], filename: [2, "string", "optional"] });
export type PutBlobResponse = Decoded<typeof PutBlobResponse>;

export const GetBlobRequest = message("GetBlobRequest", { blobId: [1, "string"] });
export type GetBlobRequest = Decoded<typeof GetBlobRequest>;

export const GetBlobResponse = message("GetBlobResponse", {
  jsonData: [1, "Value", "oneof content"],
  blobType: [2, "string"],
  blobId: [3, "string"],
  filename: [4, "string", "optional"],
  contentType: [5, "string", "optional"],
  rawData: [6, "bytes", "oneof content"],
});
export type GetBlobResponse = Decoded<typeof GetBlobResponse>;
