// The messages of `stepflow.v1` that only the orchestrator's API has: flows, runs, components and health.
// The event of a StatusEvent starts at number 10.
import { type Decoded, message } from "../../../net/protobuf/protobuf.ts";
import { ItemResult, ItemStatistics } from "./messages.ts";

// components.proto

export const ListRegisteredComponentsRequest = message("ListRegisteredComponentsRequest", { excludeSchemas: [1, "bool"] });
export type ListRegisteredComponentsRequest = Decoded<typeof ListRegisteredComponentsRequest>;

export const ComponentInfoEntry = message("ComponentInfoEntry", {
  componentId: [1, "string"],
  description: [2, "string", "optional"],
  inputSchema: [3, "Struct"],
  outputSchema: [4, "Struct"],
  path: [5, "string"],
  plugin: [6, "string"],
});
export type ComponentInfoEntry = Decoded<typeof ComponentInfoEntry>;

export const PluginDiscoveryError = message("PluginDiscoveryError", { plugin: [1, "string"], error: [2, "string"] });
export type PluginDiscoveryError = Decoded<typeof PluginDiscoveryError>;

export const ListRegisteredComponentsResponse = message("ListRegisteredComponentsResponse", {
  components: [1, ComponentInfoEntry, "repeated"],
  complete: [2, "bool"],
  failedPlugins: [3, PluginDiscoveryError, "repeated"],
});
export type ListRegisteredComponentsResponse = Decoded<typeof ListRegisteredComponentsResponse>;

// flows.proto

export const DiagnosticLevel = { UNSPECIFIED: 0, FATAL: 1, ERROR: 2, WARNING: 3 } as const;

export const StoreFlowRequest = message("StoreFlowRequest", { flow: [1, "Struct"], dryRun: [2, "bool"] });
export type StoreFlowRequest = Decoded<typeof StoreFlowRequest>;

export const Diagnostic = message("Diagnostic", {
  kind: [1, "string"],
  code: [2, "uint32"],
  level: [3, "enum"],
  formatted: [4, "string"],
  data: [5, "Value"],
  path: [6, "string", "optional"],
  experimental: [7, "bool"],
});
export type Diagnostic = Decoded<typeof Diagnostic>;

export const Diagnostics = message("Diagnostics", {
  diagnostics: [1, Diagnostic, "repeated"],
  numFatal: [2, "uint32"],
  numError: [3, "uint32"],
  numWarning: [4, "uint32"],
});
export type Diagnostics = Decoded<typeof Diagnostics>;

export const StoreFlowResponse = message("StoreFlowResponse", {
  flowId: [1, "string"],
  stored: [2, "bool"],
  diagnostics: [3, Diagnostics],
});
export type StoreFlowResponse = Decoded<typeof StoreFlowResponse>;

export const GetFlowRequest = message("GetFlowRequest", { flowId: [1, "string"] });
export type GetFlowRequest = Decoded<typeof GetFlowRequest>;

export const ExampleInput = message("ExampleInput", { name: [1, "string"], description: [2, "string", "optional"], input: [3, "Value"] });
export type ExampleInput = Decoded<typeof ExampleInput>;

export const GetFlowResponse = message("GetFlowResponse", {
  flow: [1, "Struct"],
  flowId: [2, "string"],
  allExamples: [3, ExampleInput, "repeated"],
});
export type GetFlowResponse = Decoded<typeof GetFlowResponse>;

export const DeleteFlowRequest = message("DeleteFlowRequest", { flowId: [1, "string"] });
export type DeleteFlowRequest = Decoded<typeof DeleteFlowRequest>;

export const DeleteFlowResponse = message("DeleteFlowResponse", {});
export type DeleteFlowResponse = Decoded<typeof DeleteFlowResponse>;

export const GetFlowVariablesRequest = message("GetFlowVariablesRequest", { flowId: [1, "string"] });
export type GetFlowVariablesRequest = Decoded<typeof GetFlowVariablesRequest>;

export const FlowVariable = message("FlowVariable", {
  description: [1, "string", "optional"],
  defaultValue: [2, "Value"],
  required: [3, "bool"],
  schema: [4, "Struct"],
  envVar: [5, "string", "optional"],
});
export type FlowVariable = Decoded<typeof FlowVariable>;

export const GetFlowVariablesResponse = message("GetFlowVariablesResponse", { variables: [1, FlowVariable, "map"], flowId: [2, "string"] });
export type GetFlowVariablesResponse = Decoded<typeof GetFlowVariablesResponse>;

// runs.proto

export const StatusEventType = {
  UNSPECIFIED: 0,
  RUN_CREATED: 1,
  STEP_STARTED: 2,
  STEP_COMPLETED: 3,
  STEP_READY: 4,
  ITEM_COMPLETED: 5,
  RUN_COMPLETED: 6,
  SUB_RUN_CREATED: 7,
  STEPS_NEEDED: 8,
} as const;

export const RunSummary = message("RunSummary", {
  runId: [1, "string"],
  flowId: [2, "string"],
  flowName: [3, "string", "optional"],
  status: [4, "enum"],
  items: [5, ItemStatistics],
  createdAt: [6, "Timestamp"],
  completedAt: [7, "Timestamp"],
  rootRunId: [8, "string"],
  parentRunId: [9, "string", "optional"],
  orchestratorId: [10, "string", "optional"],
  createdAtSeqno: [11, "uint64"],
  finishedAtSeqno: [12, "uint64", "optional"],
});
export type RunSummary = Decoded<typeof RunSummary>;

export const CreateRunResponse = message("CreateRunResponse", { summary: [1, RunSummary], results: [2, ItemResult, "repeated"] });
export type CreateRunResponse = Decoded<typeof CreateRunResponse>;

export const ListRunsRequest = message("ListRunsRequest", {
  status: [1, "enum", "optional"],
  flowName: [2, "string", "optional"],
  rootRunId: [3, "string", "optional"],
  parentRunId: [4, "string", "optional"],
  rootsOnly: [5, "bool"],
  maxDepth: [6, "uint32", "optional"],
  limit: [7, "uint32", "optional"],
  offset: [8, "uint32", "optional"],
});
export type ListRunsRequest = Decoded<typeof ListRunsRequest>;

export const GetRunRequest = message("GetRunRequest", { runId: [1, "string"], wait: [2, "bool"], timeoutSecs: [3, "uint64", "optional"] });
export type GetRunRequest = Decoded<typeof GetRunRequest>;

export const StepStatus = message("StepStatus", {
  stepId: [1, "string"],
  stepIndex: [2, "uint32"],
  itemIndex: [3, "uint32"],
  status: [4, "enum"],
  component: [5, "string", "optional"],
  output: [6, "Value"],
  errorMessage: [7, "string", "optional"],
  errorCode: [8, "enum", "optional"],
  startedAt: [9, "Timestamp"],
  completedAt: [10, "Timestamp"],
  journalSeqno: [11, "uint64"],
  updatedAt: [12, "Timestamp"],
});
export type StepStatus = Decoded<typeof StepStatus>;

export const GetRunResponse = message("GetRunResponse", { summary: [1, RunSummary], steps: [2, StepStatus, "repeated"] });
export type GetRunResponse = Decoded<typeof GetRunResponse>;

export const DeleteRunRequest = message("DeleteRunRequest", { runId: [1, "string"] });
export type DeleteRunRequest = Decoded<typeof DeleteRunRequest>;

export const DeleteRunResponse = message("DeleteRunResponse", {});
export type DeleteRunResponse = Decoded<typeof DeleteRunResponse>;

export const GetRunItemsRequest = message("GetRunItemsRequest", { runId: [1, "string"], resultOrder: [2, "enum"] });
export type GetRunItemsRequest = Decoded<typeof GetRunItemsRequest>;

export const GetRunItemsResponse = message("GetRunItemsResponse", { results: [1, ItemResult, "repeated"] });
export type GetRunItemsResponse = Decoded<typeof GetRunItemsResponse>;

export const GetRunFlowRequest = message("GetRunFlowRequest", { runId: [1, "string"] });
export type GetRunFlowRequest = Decoded<typeof GetRunFlowRequest>;

export const GetRunFlowResponse = message("GetRunFlowResponse", { flow: [1, "Struct"], flowId: [2, "string"] });
export type GetRunFlowResponse = Decoded<typeof GetRunFlowResponse>;

export const GetRunStepsRequest = message("GetRunStepsRequest", { runId: [1, "string"], itemIndex: [2, "uint32", "optional"] });
export type GetRunStepsRequest = Decoded<typeof GetRunStepsRequest>;

export const GetRunStepsResponse = message("GetRunStepsResponse", { steps: [1, StepStatus, "repeated"] });
export type GetRunStepsResponse = Decoded<typeof GetRunStepsResponse>;

export const GetStepDetailRequest = message("GetStepDetailRequest", {
  runId: [1, "string"],
  stepId: [2, "string"],
  itemIndex: [3, "uint32", "optional"],
  asof: [4, "uint64", "optional"],
});
export type GetStepDetailRequest = Decoded<typeof GetStepDetailRequest>;

export const GetStepDetailResponse = message("GetStepDetailResponse", { step: [1, StepStatus] });
export type GetStepDetailResponse = Decoded<typeof GetStepDetailResponse>;

export const GetRunEventsRequest = message("GetRunEventsRequest", {
  runId: [1, "string"],
  since: [2, "uint64", "optional"],
  eventTypes: [3, "enum", "repeated"],
  includeSubRuns: [4, "bool"],
  includeResults: [5, "bool"],
});
export type GetRunEventsRequest = Decoded<typeof GetRunEventsRequest>;

export const CancelRunRequest = message("CancelRunRequest", { runId: [1, "string"] });
export type CancelRunRequest = Decoded<typeof CancelRunRequest>;

export const CancelRunResponse = message("CancelRunResponse", { summary: [1, RunSummary] });
export type CancelRunResponse = Decoded<typeof CancelRunResponse>;

export const ListRunsResponse = message("ListRunsResponse", { runs: [1, RunSummary, "repeated"] });
export type ListRunsResponse = Decoded<typeof ListRunsResponse>;

export const RunCreatedEvent = message("RunCreatedEvent", { runId: [1, "string"], flowId: [2, "string"], itemCount: [3, "uint32"] });
export type RunCreatedEvent = Decoded<typeof RunCreatedEvent>;

export const StepStartedEvent = message("StepStartedEvent", {
  runId: [1, "string"],
  itemIndex: [2, "uint32"],
  stepIndex: [3, "uint32"],
  stepId: [4, "string", "optional"],
  attempt: [5, "uint32"],
});
export type StepStartedEvent = Decoded<typeof StepStartedEvent>;

export const StepCompletedEvent = message("StepCompletedEvent", {
  runId: [1, "string"],
  itemIndex: [2, "uint32"],
  stepIndex: [3, "uint32"],
  stepId: [4, "string", "optional"],
  status: [5, "enum"],
  result: [6, "Value"],
});
export type StepCompletedEvent = Decoded<typeof StepCompletedEvent>;

export const StepReadyEvent = message("StepReadyEvent", {
  runId: [1, "string"],
  itemIndex: [2, "uint32"],
  stepIndex: [3, "uint32"],
  stepId: [4, "string", "optional"],
});
export type StepReadyEvent = Decoded<typeof StepReadyEvent>;

export const ItemCompletedEvent = message("ItemCompletedEvent", { runId: [1, "string"], itemIndex: [2, "uint32"], result: [3, "Value"] });
export type ItemCompletedEvent = Decoded<typeof ItemCompletedEvent>;

export const RunCompletedEvent = message("RunCompletedEvent", { runId: [1, "string"], status: [2, "enum"] });
export type RunCompletedEvent = Decoded<typeof RunCompletedEvent>;

export const SubRunCreatedEvent = message("SubRunCreatedEvent", {
  runId: [1, "string"],
  parentRunId: [2, "string"],
  flowId: [3, "string"],
  itemCount: [4, "uint32"],
});
export type SubRunCreatedEvent = Decoded<typeof SubRunCreatedEvent>;

export const StepsNeededEvent = message("StepsNeededEvent", {
  runId: [1, "string"],
  itemIndex: [2, "uint32"],
  stepIds: [3, "string", "repeated"],
});
export type StepsNeededEvent = Decoded<typeof StepsNeededEvent>;

export const StatusEvent = message("StatusEvent", {
  sequenceNumber: [1, "uint64"],
  timestamp: [2, "Timestamp"],
  runCreated: [10, RunCreatedEvent, "oneof event"],
  stepStarted: [11, StepStartedEvent, "oneof event"],
  stepCompleted: [12, StepCompletedEvent, "oneof event"],
  stepReady: [13, StepReadyEvent, "oneof event"],
  itemCompleted: [14, ItemCompletedEvent, "oneof event"],
  runCompleted: [15, RunCompletedEvent, "oneof event"],
  subRunCreated: [16, SubRunCreatedEvent, "oneof event"],
  stepsNeeded: [17, StepsNeededEvent, "oneof event"],
});
export type StatusEvent = Decoded<typeof StatusEvent>;

// health.proto

export const HealthCheckRequest = message("HealthCheckRequest", {});
export type HealthCheckRequest = Decoded<typeof HealthCheckRequest>;

export const BuildInfo = message("BuildInfo", {
  gitVersion: [1, "string"],
  dirty: [2, "bool"],
  rustcVersion: [3, "string"],
  profile: [4, "string"],
  features: [5, "string", "repeated"],
  target: [6, "string"],
});
export type BuildInfo = Decoded<typeof BuildInfo>;

export const HealthCheckResponse = message("HealthCheckResponse", {
  status: [1, "string"],
  timestamp: [2, "Timestamp"],
  build: [3, BuildInfo],
});
export type HealthCheckResponse = Decoded<typeof HealthCheckResponse>;
